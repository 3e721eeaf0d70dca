"""`platform cluster prune` on the real cluster: it deletes what is not used, and what runs can start again."""

from __future__ import annotations

import http.client
import os
import subprocess
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from composeplat.local.prune import Scope, delete_leftovers, find_leftovers
from tests.deploy.conftest import PLATFORM, PORTS, SLEEP, Environment, Ran, until

FILE = f"""\
services:
  app:
    build: .
    command: "{SLEEP}"
    stop_grace_period: 0
"""
WITH_VOLUME = f"""\
services:
  app: {{image: 'busybox:1.37', command: "{SLEEP}", volumes: ['data:/data'], stop_grace_period: 0}}
volumes: {{data: }}
"""
DOCKERFILE = (
    f"FROM localhost:{PORTS['registry']}/library/busybox:1.37\nRUN dd if=/dev/urandom of=/made bs=1M count=2 # "
)


def age(folder: Path) -> None:
    """Make everything in the registry older than a push can be."""
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))


def ask_registry(repository: str, digest: str) -> int:
    accept = {"Accept": "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"}
    with closing(http.client.HTTPConnection("127.0.0.1", PORTS["registry"], timeout=10)) as connection:
        connection.request("HEAD", f"/v2/{repository}/manifests/{digest}", headers=accept)
        return connection.getresponse().status


def image_of(environment: Environment) -> tuple[str, str]:
    """The repository and digest of the image that runs."""
    (pod,) = until(lambda: environment.pods("app"))
    name, _, digest = pod["spec"]["containers"][0]["image"].partition("@")
    return name.partition("/")[2].partition(":")[0], digest


def prune(environment: Environment, *args: str) -> Ran:
    done = subprocess.run(
        [str(PLATFORM), "cluster", "prune", *args], env=environment.variables, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr, 0.0)


def test_unused_images(environment: Environment, cluster: LocalCluster) -> None:
    """An image goes when no revision of a workload names it any more, with the builder's cache, after a question."""
    images = []
    for number in (1, 2):
        environment.write(f"{DOCKERFILE}{number}\n", "Dockerfile")
        environment.deploy(FILE).expect()
        images.append(image_of(environment))
    with environment.api() as api:
        path = kind_path("apps/v1", "ReplicaSet", environment.namespace)
        (earlier,) = [found for found in api.items(path) if not found["spec"]["replicas"]]
        age(cluster.layout.folder / "registry")
        refused = prune(environment).expect(1)
        assert images[0][0] not in refused.stdout
        assert "layers of the builder" in refused.stdout
        assert "error: nothing was deleted: there is no terminal to confirm that on" in refused.stderr
        api.delete(f"{path}/{earlier['metadata']['name']}")
        until(lambda: api.find(f"{path}/{earlier['metadata']['name']}") is None)

    listed = prune(environment, "--yes").expect()
    assert f"{images[0][0]}, 1 version" in listed.stdout
    assert "freed " in listed.stderr
    assert [ask_registry(*image) for image in images] == [404, 200]
    assert f"@{images[0][1]}" in listed.stdout
    assert images[1][1] not in listed.stdout
    (pod,) = environment.pods("app")
    environment.platform("restart", "app").expect()
    assert environment.pods("app")[0]["metadata"]["name"] != pod["metadata"]["name"]
    assert "layers of the builder" not in prune(environment, "--yes").expect().stdout


def test_volumes_of_a_destroyed_environment(
    environment: Environment, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its volumes stay until they are asked for by name."""
    monkeypatch.setattr("composeplat.cluster.leftovers._MIN_AGE", timedelta(0))
    scope = Scope(volumes=True)
    name = f"data of {environment.name} in namespace {environment.namespace}"
    environment.deploy(WITH_VOLUME).expect()
    assert name not in [found.name for found in find_leftovers(cluster, scope)]
    environment.platform("destroy").expect()
    assert name not in [found.name for found in find_leftovers(cluster, Scope())]
    (volume,) = [found for found in find_leftovers(cluster, scope) if found.name == name]
    folder = cluster.layout.volumes / str(environment.objects("v1", "PersistentVolumeClaim")[0]["spec"]["volumeName"])

    assert folder.exists()
    delete_leftovers(cluster, scope, [volume])
    until(lambda: not folder.exists())
    assert environment.objects("v1", "PersistentVolumeClaim") == []
