"""The pods of images that are loaded into the nodes: they use no registry."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

from composeplat.plan.desired import BuiltImage
from composeplat.plan.templates import pod_template
from tests.conftest import Project

FILE = """\
services:
  web: {build: ., image: shop, volumes: ["data:/data"]}
  worker: {image: shop}
  db: {image: postgres}
volumes: {data: {}}
"""


def policies(project: Project, **settings: Any) -> dict[str, str]:
    """The pull policy of each container, those of init containers too."""
    reading = project({"compose.yaml": FILE, "Dockerfile": "FROM busybox\n"}).read(**settings)
    assert reading.plan is not None, reading.messages
    workloads = [desired.manifest["spec"] for desired in reading.plan.objects if desired.key.kind.value == "workload"]
    pods = [spec["template"]["spec"] for spec in workloads]
    containers = [found for pod in pods for found in (*pod.get("initContainers", ()), *pod["containers"])]
    return {container["name"]: container.get("imagePullPolicy", "") for container in containers}


def test_only_loaded_images_are_never_pulled(project: Project) -> None:
    """The policy is on every container with the built image, and on no other."""
    found = policies(project, load_policy="Never")

    assert found == {"platform-tools": "", "platform-fill": "Never", "web": "Never", "worker": "Never", "db": ""}


def test_a_loaded_image_is_like_no_pulled_one(project: Project) -> None:
    """Its label changes its ID: the kubelet never starts without a pull what it once pulled by another name."""
    for policy, labels in (("Never", {"dev.platform.com/loaded": "true", "a": "b"}), ("", {"a": "b"})):
        text = "services: {web: {build: {context: ., labels: {a: b}}}}\n"
        reading = project({"compose.yaml": text, "Dockerfile": "FROM busybox\n"}).read(load_policy=policy)
        assert reading.plan is not None, reading.messages
        assert [image.build.labels for image in reading.plan.images] == [labels]


def test_a_registry_comes_first(project: Project) -> None:
    """With a registry, of the user or of the cluster, images are pushed and pulled."""
    assert set(policies(project, load_policy="Never", registry="localhost:5001").values()) == {""}
    assert set(policies(project, load_policy="Never", default_registry="localhost:5001").values()) == {""}


def test_a_hook_and_a_volume_with_a_loaded_image(project: Project) -> None:
    """No registry has an image that another service builds and that is loaded, so neither of them pulls it."""
    text = """\
services:
  web:
    image: busybox
    volumes: [{type: image, source: site, target: /site}]
    pre_start: [{image: site, command: [copy], per_replica: true}]
  site: {build: ., image: site}
"""
    reading = project({"compose.yaml": text, "Dockerfile": "FROM scratch\n"}).read(full=True, load_policy="Never")
    assert reading.plan is not None, reading.messages
    web = next(service for service in reading.plan.services if service.name == "web")
    (spec,) = (pod_template(found.manifest)["spec"] for found in web.objects if found.kind == "Deployment")
    built = BuiltImage("site", "site", is_loaded=True)

    assert [(found["image"], found["imagePullPolicy"]) for found in spec["initContainers"]] == [(built, "Never")]
    assert spec["volumes"] == [{"name": ANY, "image": {"reference": built, "pullPolicy": "Never"}}]
    assert [image.service for image in reading.plan.images_for(["web"])] == ["site"]
