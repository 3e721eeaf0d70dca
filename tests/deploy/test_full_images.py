"""Volumes with the files of an image, in full mode: the pod has them, if its node's containerd knows such volumes."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, until

PROJECT = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    volumes:
      - {{type: image, source: "busybox:1.37", target: /files}}
      - {{type: image, source: "busybox:1.37", target: /passwords, image: {{subpath: etc}}}}
      - {{type: volume, target: /kept, volume: {{labels: {{example.com/team: shop}}}}}}
"""


def test_an_image_is_a_volume(environment: Environment) -> None:
    """The API server keeps the volume; the claim of an anonymous volume has its labels.

    The files themselves need containerd 2.1, and most machines have an older one, which says so.
    """
    environment.deploy(PROJECT, "--no-wait").expect()

    (pod,) = until(lambda: environment.pods("web"))
    images = [volume["image"]["reference"] for volume in pod["spec"]["volumes"] if "image" in volume]
    assert images == ["busybox:1.37", "busybox:1.37"]
    mounts = {mount["mountPath"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["/passwords"]["subPath"] == "etc"
    (claim,) = environment.objects("v1", "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"]["example.com/team"] == "shop"
    if until(lambda: _state(environment, "web")) != "running":
        return
    script = "test -x /files/bin/busybox && head -n 1 /passwords/passwd; touch /files/new 2>&1 || true"
    root, refused = environment.exec(pod["metadata"]["name"], "sh", "-c", script).splitlines()
    assert root.startswith("root:")
    assert "Read-only file system" in refused


def _state(environment: Environment, service: str) -> str:
    """Whether the container runs, or why it can't be created; empty before that is known."""
    (pod,) = environment.pods(service)
    (status,) = pod["status"].get("containerStatuses") or [{}]
    state = status.get("state", {})
    reason = state.get("waiting", {}).get("reason", "")
    return "running" if "running" in state else reason if reason == "CreateContainerError" else ""
