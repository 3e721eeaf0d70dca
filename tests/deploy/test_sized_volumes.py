"""Volumes whose size holds, on the real cluster: a pod can't write more, and a larger size is more room."""

from __future__ import annotations

from pathlib import Path

from composeplat.cluster.api import Api, kind_path
from composeplat.local.sized_volumes import data_folder
from tests.deploy.conftest import SLEEP, Environment, until

FILE = f"""\
services:
  app: {{image: 'busybox:1.37', command: "{SLEEP}", volumes: ['data:/data'], stop_grace_period: 0}}
volumes:
  data: {{driver_opts: {{size: %s, class: local-sized}}}}
"""
WRITE = "dd if=/dev/zero of=/data/%s bs=1M count=%d 2>&1 || true"


def claim_path(environment: Environment) -> str:
    return f"{kind_path('v1', 'PersistentVolumeClaim', environment.namespace)}/data"


def capacity(api: Api, environment: Environment) -> str:
    return str(api.get(claim_path(environment))["status"]["capacity"]["storage"])


def test_a_size_holds_and_grows(environment: Environment) -> None:
    """A write past the size fails in the pod; after the size was raised there is room, and the data is still there."""
    environment.deploy(FILE % "16Mi").expect()
    environment.exec("app-0", "sh", "-c", "ls -A /data | wc -l > /tmp/n; (cat /tmp/n; echo kept) > /data/first")
    assert "No space left on device" in environment.exec("app-0", "sh", "-c", WRITE % ("much", 20))
    environment.exec("app-0", "rm", "/data/much")

    environment.deploy(FILE % "48Mi").expect()
    # Some kernels let nobody grow a file system that is in use.
    environment.platform("sleep").expect()
    until(lambda: not environment.objects("v1", "Pod"))
    with environment.api() as api:
        until(lambda: poke(api, environment) == "48Mi")
    environment.platform("wake").expect()
    assert "No space left on device" not in environment.exec("app-0", "sh", "-c", WRITE % ("more", 30))
    assert environment.exec("app-0", "cat", "/data/first") == "0\nkept\n"


def poke(api: Api, environment: Environment) -> str:
    """Change the claim, so that it is looked at again at once; return its capacity."""
    labels = {"poked": str(api.get(claim_path(environment))["metadata"]["resourceVersion"])}
    api.patch(claim_path(environment), {"metadata": {"annotations": labels}})
    return capacity(api, environment)


def test_it_goes_with_its_claim(environment: Environment) -> None:
    """When the claim is deleted, its mount and its file go too; a volume that is too large for the disk says so."""
    environment.deploy(FILE % "8Mi").expect()
    with environment.api() as api:
        name = str(api.get(claim_path(environment))["spec"]["volumeName"])
        folder = environment.cluster.layout.volumes / name
        assert (folder / "disk").stat().st_blocks * 512 >= 8 * 1024 * 1024
        environment.platform("destroy", "--volumes", "--yes").expect()
        until(lambda: not folder.exists())

    refused = environment.deploy(FILE % "900Ti").expect(1)
    assert "volume 'data' is not provisioned: the disk of the local cluster has no space for it" in refused.stderr
    assert not data_folder(Path(folder)).exists()
