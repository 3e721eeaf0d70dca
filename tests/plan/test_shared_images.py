"""Services that run the image which another service builds, and the names under which built images are pushed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from composeplat.plan import BuiltImage, Plan
from tests.conftest import Project

DOCKERFILE = {"Dockerfile": "FROM busybox\n"}


def plan_of(project: Project, text: str, **settings: Any) -> Plan:
    plan = project({"compose.yaml": text, **DOCKERFILE}).read(**settings).plan
    assert plan is not None
    return plan


def images_of(plan: Plan) -> dict[str, BuiltImage | str]:
    return {service.name: service.image for service in plan.services}


# who runs what --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "used"),
    [
        pytest.param("shop:dev", "shop:dev", id="the same text"),
        pytest.param("shop", "shop:latest", id="the default tag"),
        pytest.param("shop", "docker.io/library/shop", id="the whole name"),
        pytest.param("index.docker.io/team/shop:1", "team/shop:1", id="another host of the registry"),
        pytest.param("registry.example.com/shop:1", "registry.example.com/shop:1", id="a registry"),
    ],
)
def test_the_image_of_another_service(project: Project, built: str, used: str) -> None:
    """The image is that of the build, however it is named, so it runs by digest and is pulled from where it is."""
    plan = plan_of(project, f"services: {{web: {{build: ., image: '{built}'}}, worker: {{image: '{used}'}}}}")

    found = images_of(plan)
    assert isinstance(found["worker"], BuiltImage)
    assert found["worker"] == found["web"]
    assert [image.service for image in plan.images] == ["web"]


@pytest.mark.parametrize("used", ["shop:1", "team/shop:dev", "registry.example.com/shop:dev", "other"])
def test_another_image(project: Project, used: str) -> None:
    """Another tag, repository or registry is another image, and pulled."""
    plan = plan_of(project, f"services: {{web: {{build: ., image: 'shop:dev'}}, worker: {{image: '{used}'}}}}")

    assert images_of(plan)["worker"] == used


@pytest.mark.parametrize("count", [1, 2])
def test_the_image_of_a_service_with_hooks(project: Project, count: int) -> None:
    """The service builds it, not the job that runs a hook before several replicas, whose image is no other."""
    hooks = "pre_start: [{command: [migrate]}, {command: [check], image: shop, per_replica: true}]"
    web, worker = f"web: {{build: ., image: shop, scale: {count}, {hooks}}}", "worker: {image: shop}"
    plan = plan_of(project, f"services: {{{web}, {worker}}}", full=True, registry="r.example.com")

    assert [image.service for image in plan.images] == ["web"]
    assert {
        image.service for service in plan.services for image in service.images if isinstance(image, BuiltImage)
    } == {"web"}
    assert plan.images_for({"worker"}) == plan.images


def test_a_build_of_its_own(project: Project) -> None:
    """A service with a build runs what it builds, whatever the others build."""
    text = "services: {a: {build: ., image: shop}, b: {build: ., image: shop}, c: {image: shop}}"
    plan = plan_of(project, text, registry="r.example.com")

    assert {name: image.service for name, image in images_of(plan).items() if isinstance(image, BuiltImage)} == {
        "a": "a",
        "b": "b",
        "c": "a",
    }


def test_jobs_of_hooks(project: Project) -> None:
    """A job that runs before a service has the image of the service, or its own, and both may be built elsewhere."""
    text = """\
services:
  web: {build: ., image: shop}
  worker: {image: shop, scale: 2, pre_start: [{command: [a]}]}
  db: {image: postgres, scale: 2, pre_start: [{command: [a], image: shop}, {command: [b]}]}
"""
    plan = plan_of(project, text, full=True)

    found = images_of(plan)
    assert [name for name, image in found.items() if image == found["web"]] == [
        "web",
        "worker-pre-start-0",
        "worker",
        "db-pre-start-0",
    ]
    assert found["db-pre-start-1"] == found["db"] == "postgres"


def test_never_pulled(project: Project) -> None:
    """That an image is never pulled means that it is built here: the nodes still pull it from its registry."""
    text = "services: {web: {build: ., image: shop}, worker: {image: shop, pull_policy: never}}"
    reading = project({"compose.yaml": text, **DOCKERFILE}).read(full=True, registry="r.example.com")

    assert reading.messages == []
    assert "imagePullPolicy" not in reading.container("Deployment", "worker")


def test_with_large_content(project: Project) -> None:
    """What is too large for a Secret is added to the built image, after that is built."""
    files = {f"site/{number}": "x" for number in range(80)}
    text = "services: {worker: {image: shop, volumes: ['./site:/site']}, web: {build: ., image: shop}}"
    plan = project({"compose.yaml": text, **DOCKERFILE, **files}).read(registry="r.example.com").plan
    assert plan is not None

    assert images_of(plan)["worker"] == BuiltImage("worker", "r.example.com/demo-worker")
    first, second = plan.images
    assert (first.service, second.service) == ("web", "worker")
    assert second.bases == {"service-image": BuiltImage("web", "r.example.com/shop")}
    assert second.build.dockerfile_inline.startswith("FROM service-image\n")


def test_one_of_the_services(project: Project) -> None:
    """A deploy of a service alone builds its image too, and nothing else."""
    text = "services: {web: {build: ., image: shop}, worker: {image: shop}, other: {build: .}}"
    plan = plan_of(project, text)

    assert [image.service for image in plan.limited_to(["worker"]).images] == ["web"]
    assert [image.service for image in plan.images_for(["other"])] == ["other"]


def test_an_earlier_revision(project: Project) -> None:
    """Its services run images by digest, and the images that the state has are still theirs: none is built again."""
    plan = plan_of(project, "services: {web: {build: ., image: shop}, worker: {image: shop}}")
    services = tuple(replace(service, image="shop@sha256:1") for service in plan.services)

    assert [image.service for image in replace(plan, services=services).limited_to([]).images] == ["web"]


# names ----------------------------------------------------------------------------------------------------------------

GIVEN, LOCAL = {"registry": "r.example.com/team/"}, {"default_registry": "localhost:5001"}


@pytest.mark.parametrize(
    ("image", "settings", "expected"),
    [
        pytest.param("shop:dev", GIVEN, "r.example.com/team/shop:dev", id="one word"),
        pytest.param("shop:dev", LOCAL, "localhost:5001/shop:dev", id="one word in the cluster's registry"),
        pytest.param("shop:dev", {}, "shop:dev", id="one word without a registry"),
        pytest.param("team/shop", GIVEN, "team/shop", id="Docker Hub"),
        pytest.param("team/shop", LOCAL, "localhost:5001/team/shop", id="a local cluster's registry"),
        pytest.param("team/shop", {"registry": "127.0.0.1:5001/x"}, "127.0.0.1:5001/x/team/shop", id="this machine"),
        pytest.param("team/shop", {"registry": "k3d.localhost:5001"}, "k3d.localhost:5001/team/shop", id="its name"),
        pytest.param("team/shop", {**LOCAL, **GIVEN}, "team/shop", id="Docker Hub where a registry is given"),
        pytest.param("team/shop", {}, "team/shop", id="Docker Hub without a registry"),
        pytest.param("ghcr.io/team/shop", LOCAL, "ghcr.io/team/shop", id="another registry"),
        pytest.param("localhost/shop", GIVEN, "localhost/shop", id="localhost"),
        pytest.param("docker.io/team/shop", LOCAL, "docker.io/team/shop", id="Docker Hub by its name"),
        pytest.param("", GIVEN, "r.example.com/team/demo-web", id="no name"),
        pytest.param("", {}, "demo-web", id="no name and no registry"),
    ],
)
def test_names_of_built_images(project: Project, image: str, settings: dict[str, str], expected: str) -> None:
    """A name that says where to push is kept, and any other is one of the registry."""
    plan = plan_of(
        project,
        f"services: {{web: {{build: ., image: '{image}'}}}}" if image else "services: {web: {build: .}}",
        **settings,
    )

    assert [found.reference for found in plan.images] == [expected]
    assert plan.services[0].image == BuiltImage("web", expected)
