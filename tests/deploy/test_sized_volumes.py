"""Volumes whose size holds, on the real cluster: a pod can't write more, and a larger size is more room."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.local.sized_volumes import data_folder
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, until
from tests.schemas import checked

FILE = f"""\
services:
  app: {{image: 'busybox:1.37', command: "{SLEEP}", volumes: ['data:/data'], stop_grace_period: 0}}
volumes:
  data: {{driver_opts: {{size: %s, class: local-sized}}}}
"""
MIB = 1024 * 1024
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


TWO = f"""\
services:
  app:
    image: busybox:1.37
    command: "{SLEEP}"
    volumes: ['data:/data', 'plain:/plain']
    stop_grace_period: 0
volumes:
  data: {{driver_opts: {{size: 16Mi, class: local-sized}}}}
  plain: {{driver_opts: {{size: 1Mi, class: local}}}}
"""


def cluster_status(environment: Environment, *args: str) -> str:
    command = [str(PLATFORM), "cluster", "status", *args]
    done = subprocess.run(command, env=environment.variables, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_status_shows_sizes(environment: Environment) -> None:
    """The status has each volume with what it takes, and says which class enforces sizes."""
    environment.deploy(TWO).expect()
    for path in ("/data/file", "/plain/file"):
        environment.exec("app-0", "dd", "if=/dev/urandom", f"of={path}", "bs=1M", "count=4")
        environment.exec("app-0", "sync")

    lines = [" ".join(line.split()) for line in cluster_status(environment).splitlines()]
    assert "local not enforced: a volume can fill the disk" in lines
    assert "local-sized enforced" in lines
    assert f"{environment.namespace}/plain local 4.0 MiB of 1.0 MiB" in lines
    found = checked(json.loads(cluster_status(environment, "--json")))
    volumes = {volume["claim"]: volume for volume in found["volumes"] if volume["namespace"] == environment.namespace}
    assert {name: (volume["storage_class"], volume["size"]) for name, volume in volumes.items()} == {
        "data": ("local-sized", 16 * MIB), "plain": ("local", MIB),
    }  # fmt: skip
    assert all(4 * MIB <= volume["used"] < 6 * MIB for volume in volumes.values())
    assert found["storage_classes"] == {"local": {"enforces_sizes": False}, "local-sized": {"enforces_sizes": True}}
    assert 0 < found["objects"]["used"] <= found["objects"]["size"] < found["objects"]["limit"] == 8 * 1024 * MIB
    assert not found["objects"]["full"]


def poke(api: Api, environment: Environment) -> str:
    """Change the claim, so that it is looked at again at once; return its capacity."""
    labels = {"poked": str(api.get(claim_path(environment))["metadata"]["resourceVersion"])}
    api.patch(claim_path(environment), {"metadata": {"annotations": labels}})
    return capacity(api, environment)


@pytest.mark.endurance
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
