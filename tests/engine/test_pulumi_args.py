"""How Pulumi is reported what to work on: all of it, some services, jobs again, images or none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from composeplat.engine.changed_parts import find_parts
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.pulumi_args import (
    deploy_args,
    former_urns,
    part_of_images,
    registered_part,
    resources_besides_images,
    resources_outside,
)
from composeplat.plan import Plan
from tests.conftest import Project

TEXT = """\
services:
  web:
    build: .
    depends_on: [api]
    ports: ['8080:80']
  api: {image: x, volumes: ['data:/data']}
  job: {build: ., restart: 'no'}
volumes: {data: }
"""
STACK = "urn:pulumi:team::demo::composeplat:index:ComposeStack"
SERVICE = f"{STACK}$composeplat:index:Service"


@pytest.fixture
def plan(project: Project) -> Plan:
    found = project(TEXT).write({"Dockerfile": "FROM x\n"}).read(namespace="team", registry="localhost:5000").plan
    assert found is not None
    return found


def make_args(
    plan: Plan, *services: str, state: dict[str, Any] | None = None, live_state: Collection[Key] = (), **asked: Any
) -> list[str]:
    """The words for what is asked, where the state and the cluster hold so much."""
    there = LiveState(object_metadata={key: {} for key in live_state})
    return deploy_args(plan, state or {}, there, DeployOptions(services=services, **asked))


def state(*urns: str) -> dict[str, Any]:
    """A state that knows these, each of which has been made."""
    return {
        "resources": [
            {
                "urn": urn,
                "id": "x",
                "type": urn.split("$")[-1].split("::")[0],
                "inputs": {
                    "kind": urn.split("$")[-1].split("::")[0].split(":")[-1],
                    "metadata": {
                        "name": urn.rpartition("/")[2],
                    },
                },
            }
            for urn in urns
        ]
    }


def image(service: str) -> str:
    return f"{SERVICE}$docker-build:index:Image::demo-image/{service}"


def job(service: str) -> str:
    return f"{SERVICE}$kubernetes:batch/v1:Job::demo-workload/{service}"


def test_all(plan: Plan) -> None:
    """A deploy of all names nothing; there are places enough for those that wait."""
    assert make_args(plan) == ["--stack", "team", "--parallel", "33", "--suppress-outputs"]


def test_one_service(plan: Plan) -> None:
    """One service brings its volume and what it has lost, and leaves the others alone."""
    kept = [job("job"), f"{SERVICE}::demo-service/web", f"{SERVICE}::demo-service/gone"]
    touched = [
        "urn:pulumi:team::demo::pulumi:pulumi:Stack::demo-team",
        STACK,
        f"{SERVICE}::demo-service/api",
        f"{SERVICE}$kubernetes:core/v1:Secret::demo-environment/api",
        f"{STACK}$composeplat:index:Volume$kubernetes:core/v1:PersistentVolumeClaim::demo-claim/data",
    ]
    left = list(resources_outside(plan, ("api",), state(*touched, *kept)))

    assert left == kept


def test_a_service_with_its_dependencies(plan: Plan) -> None:
    """What a service depends on is deployed along with it, and its endpoint and image too."""
    workloads = [f"{SERVICE}$kubernetes:apps/v1:Deployment::demo-workload/{name}" for name in ("web", "api")]
    endpoints = f"{STACK}$composeplat:index:Endpoints::demo-endpoints/web"
    left = list(resources_outside(plan, ("web",), state(*workloads, endpoints, image("web"), job("job"))))

    assert left == [job("job")]


def test_what_is_registered(plan: Plan) -> None:
    """A deploy of some services registers no other one; one of parts these, and one of everything all."""
    part = registered_part(plan, ("api",))

    assert [service.name for service in part.services] == ["api"]
    assert ([volume.name for volume in part.volumes], part.images, part.endpoints) == (["data"], (), ())
    assert registered_part(plan, ()) is plan
    parts = find_parts(plan, ["service-api"])
    assert registered_part(plan, (), parts) is parts.needed


def test_jobs_again(plan: Plan) -> None:
    """A job that is in the state and in the cluster is replaced; one that is gone is recreated anyhow."""
    known = state(job("job"))

    there = make_args(plan, state=known, live_state=[("Job", "job")], rerun_jobs=True)
    gone = make_args(plan, state=known, live_state=[], rerun_jobs=True)

    assert there[-2:] == ["--replace", job("job")]
    assert "--replace" not in gone


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(True, ["--replace", image("web")], id="all"),
        pytest.param(False, ["--exclude", image("job"), "--exclude", image("web")], id="none"),
    ],
)
def test_images(plan: Plan, expected: list[str], *, build: bool) -> None:
    """To build all replaces those that were built before; to build none leaves every image out."""
    assert make_args(plan, state=state(image("web")), build=build)[5:] == expected


def test_images_alone(plan: Plan) -> None:
    """A build leaves all of the cluster out, and all images and services that it does not register."""
    part = part_of_images(plan.images_only, plan.images_for(["web"]))
    kept = [f"{SERVICE}::demo-service/gone", f"{SERVICE}::demo-service/job", image("job"), image("gone")]
    left = list(resources_besides_images(part, state(*kept, f"{SERVICE}::demo-service/web", image("web"), job("job"))))

    assert left[:2] == ["**$kubernetes:**", "**::pulumi:providers:kubernetes::**"]
    assert left[2:] == sorted(kept)


def test_what_a_build_registers(project: Project) -> None:
    """A build of some services registers their images and those below, and no image that it leaves alone."""
    text = """\
services:
  web: {build: {context: ., additional_contexts: {base: 'service:base'}}, ports: ['80:80']}
  base: {build: .}
  other: {build: .}
  db: {image: x}
"""
    plan = project(text).write({"Dockerfile": "FROM x\n"}).read(namespace="team", registry="localhost:5000").plan
    assert plan is not None

    part = part_of_images(plan.images_only, plan.images_for(["web"]))

    assert [found.service for found in part.images] == ["base", "web"]
    assert sorted(service.name for service in part.services) == ["base", "web"]
    assert (part.objects, part.endpoints) == ((), ())


def test_the_image_of_another_service(project: Project) -> None:
    """An image that a build of a chosen service uses is built too, below the component of its own service."""
    text = """\
services:
  web: {build: {context: ., additional_contexts: {base: 'service:base'}}}
  base: {build: .}
"""
    plan = project(text).write({"Dockerfile": "FROM x\n"}).read(namespace="team", registry="localhost:5000").plan
    assert plan is not None

    workload = f"{SERVICE}$kubernetes:apps/v1:Deployment::demo-workload/base"
    built = [f"{SERVICE}::demo-service/base", image("base"), image("web")]
    assert list(resources_outside(plan, ("web",), state(*built, workload))) == [workload]
    assert [(found.name, bool(found.objects)) for found in registered_part(plan, ("web",)).services] == [
        ("web", True),
        ("base", False),
    ]


RENAMED = """\
x-platform: {full: true}
services:
  web: {image: x, configs: [new, {source: kept}], ports: [80]}
configs: {new: {name: settings, content: a}, kept: {name: kept, content: b}}
"""
CONFIG = f"{STACK}$kubernetes:core/v1:ConfigMap::demo-config"


def made(urn: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"urn": urn, "type": urn.rpartition("$")[2], "inputs": {"kind": kind, "metadata": {"name": name}}, **more}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(
            [made(f"{CONFIG}/old", "ConfigMap", "settings"), made(f"{CONFIG}/kept", "ConfigMap", "kept")],
            {"ConfigMap/settings": f"{CONFIG}/old"},
            id="another-key",
        ),
        pytest.param(
            [made(f"{SERVICE}$kubernetes:core/v1:Service::demo-alias/web", "Service", "web")],
            {"Service/web": f"{SERVICE}$kubernetes:core/v1:Service::demo-alias/web"},
            id="alias-that-becomes-a-service",
        ),
        pytest.param(
            [made(f"{CONFIG}/old", "ConfigMap", "settings"), made(f"{CONFIG}/new", "ConfigMap", "settings")],
            {},
            id="has-its-own",
        ),
        pytest.param([made(f"{CONFIG}/kept", "ConfigMap", "settings")], {}, id="of-a-part-that-stays"),
        pytest.param([made(f"{CONFIG}/old", "ConfigMap", "settings", delete=True)], {}, id="is-being-deleted"),
        pytest.param(
            [made("urn:pulumi:team::demo::kubernetes:core/v1:ConfigMap::x", "ConfigMap", "settings")],
            {},
            id="of-others",
        ),
    ],
)
def test_objects_of_another_part(project: Project, resources: list[dict[str, Any]], expected: dict[str, str]) -> None:
    """An object that the state has from another part of the definition is found by its URN there, and not deleted."""
    plan = project(RENAMED).read(namespace="team").plan
    assert plan is not None

    assert former_urns(plan, {"resources": resources}) == expected
