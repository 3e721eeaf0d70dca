"""Volumes with the files of an image, in full mode: a pod reads them, and those of another digest after a deploy."""

from __future__ import annotations

from composeplat.local.images import File, Image, push
from tests.deploy.conftest import SLEEP, Environment

FOLDER = "/sites"


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


def push_site(environment: Environment, version: str) -> str:
    """Push an image with a file that holds its version, and return its digest."""
    site = Image(files={"public/version": File(f"{version}\n".encode())})
    return push(site, "sites:1", ("127.0.0.1", environment.cluster.layout.host_ports.registry))
