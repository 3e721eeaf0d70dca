"""Volumes with the files of an image, in full mode: a pod reads them, and those of another digest after a deploy."""

from __future__ import annotations

import time

import pytest

from composeplat.local.base_images import fill_image
from composeplat.local.images import File, Image, push
from tests.deploy.conftest import SLEEP, Environment

FOLDER = "/sites"

WITH_BUILT = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    stop_grace_period: 0
    command: "{SLEEP}"
    volumes: [{{type: image, source: shop-site, target: /site}}, "copied:/copied"]
    pre_start:
      - {{image: shop-site, command: sh -c "cp /version /copied/version", per_replica: true}}
  site: {{build: ., image: shop-site, restart: "no", command: "true"}}
volumes: {{copied: {{}}}}
"""


def project(digest: str, registry: int) -> str:
    return f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    volumes:
      - {{type: image, source: "localhost:{registry}/sites@{digest}", target: {FOLDER}}}
      - {{type: image, source: "localhost:{registry}/sites@{digest}", target: /public, image: {{subpath: public}}}}
      - {{type: volume, target: /kept, volume: {{labels: {{example.com/team: shop}}}}}}
"""


def test_an_image_is_a_volume(environment: Environment) -> None:
    """Its files, or those of a folder, are read and not written; the claim of an anonymous volume has its labels."""
    registry = environment.cluster.layout.host_ports.registry
    digests = [push_site(environment, version) for version in ("first", "second")]
    read = "cat /public/version; touch /sites/new /public/new 2>&1; ls /sites/public /public"
    seen = []
    for digest in digests:
        environment.deploy(project(digest, registry)).expect()
        (pod,) = [pod for pod in environment.pods("web") if pod["status"]["phase"] == "Running"]
        seen.append(environment.exec(pod["metadata"]["name"], "sh", "-c", read).splitlines())

    for version, lines in zip(("first", "second"), seen, strict=True):
        assert lines[0] == version
        assert [line.rpartition(": ")[2] for line in lines[1:3]] == ["Read-only file system"] * 2
        assert lines[3:] == ["/public:", "version", "", "/sites/public:", "version"]
    (claim,) = environment.objects("v1", "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"]["example.com/team"] == "shop"


def test_an_image_that_another_service_builds(environment: Environment) -> None:
    """A volume and a hook of each pod have it by its digest, also where one service is deployed, and after a rollback.

    Its name alone is that of an image of Docker Hub, which does not exist, or is someone else's.
    """
    environment.write(WITH_BUILT)

    def deploy(version: str, *services: str) -> str:
        environment.write(f"FROM busybox:1.37\nRUN echo {version} > /version\n", "Dockerfile")
        environment.deploy("", *services).expect()
        return seen()

    def seen() -> str:
        (pod,) = [pod for pod in environment.pods("web") if pod["status"]["phase"] == "Running"]
        return environment.exec(pod["metadata"]["name"], "cat", "/site/version", "/copied/version")

    assert deploy("first") == "first\nfirst\n"
    assert deploy("second", "web") == "second\nsecond\n"
    environment.deploy().expect()
    assert "nothing changed" in environment.deploy().expect().stderr
    environment.platform("rollback", "1", "--yes").expect()
    assert seen() == "first\nfirst\n"


def push_site(environment: Environment, version: str) -> str:
    """Push an image with a file that holds its version, and return its digest."""
    site = Image(files={"public/version": File(f"{version}\n".encode())})
    return push(site, "sites:1", ("127.0.0.1", environment.cluster.layout.host_ports.registry))


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        pytest.param("", "Deployment", id="deployment"),
        pytest.param(", volumes: ['/data']", "StatefulSet", id="stateful-set", marks=pytest.mark.endurance),
        pytest.param(", deploy: {mode: global}", "DaemonSet", id="daemon-set", marks=pytest.mark.endurance),
    ],
)
def test_a_newer_image_is_deployed_after_its_time(environment: Environment, more: str, kind: str) -> None:
    """A deploy replaces the pods once their image is old enough, and another one in the registry; else they stay."""
    port = environment.cluster.layout.host_ports.registry
    registry = ("127.0.0.1", port)
    reference = f"{environment.namespace}/timed:1"
    web = f"{{image: 'localhost:{port}/{reference}', stop_grace_period: 0, pull_policy: every_2s{more}}}"
    text = f"x-platform: {{full: true}}\nservices: {{web: {web}}}"

    def running() -> tuple[str, str]:
        (pod,) = [pod for pod in environment.pods("web") if "deletionTimestamp" not in pod["metadata"]]
        status = pod["status"]["containerStatuses"][0]
        return pod["metadata"]["uid"], status["imageID"].rpartition("@")[2]

    first = push(fill_and_sleep(environment, "1"), reference, registry)
    environment.deploy(text).expect()
    assert len(environment.objects("apps/v1", kind)) == 1
    before = running()
    assert before[1] == first
    time.sleep(2)
    environment.deploy(text).expect()
    assert running() == before

    second = push(fill_and_sleep(environment, "2"), reference, registry)
    environment.deploy(text.replace("every_2s", "weekly")).expect()
    assert running() == before
    done = environment.deploy(text).expect()
    assert "web: its image has changed in the registry, and its pods are replaced" in done.stderr
    assert running()[1] == second


def fill_and_sleep(environment: Environment, version: str) -> Image:
    """Make an image of busybox that sleeps."""
    base = fill_image(File(), environment.variables)
    return Image(files=base.files, command=("/bin/busybox", "sleep", "3600"), environment={"VERSION": version})
