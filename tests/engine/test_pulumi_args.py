"""How Pulumi is reported what to work on: all of it, some services, jobs again, images or none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.pulumi_args import deploy_args, image_urn, parents, resources_except, targets
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


def test_targets(plan: Plan) -> None:
    """One service brings its volume and what its parts are children of, and nothing of the others."""
    named = list(targets(plan, ("api",)))

    assert {"**::demo-service/api", "**::demo-volume/data", "**::demo-claim/data", "**::demo", "**::cluster"} <= {
        *named
    }
    assert [item for item in named if "web" in item or "job" in item] == []


def test_targets_bring_dependencies(plan: Plan) -> None:
    """What a service depends on is deployed along with it, and its endpoint and image too."""
    named = set(targets(plan, ("web",)))

    assert {"**::demo-service/web", "**::demo-service/api", "**::demo-endpoints/web", image("web")} <= named
    assert image("job") not in named


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
    """When only images are built all of the cluster is left out, and images that are not asked for."""
    gone = f"{SERVICE}::demo-service/gone"
    left = list(resources_except(plan, [image("web")], state(gone, f"{SERVICE}::demo-service/web")))

    assert left[:2] == ["**$kubernetes:**", "**::pulumi:providers:kubernetes::**"]
    assert left[2:] == sorted([gone, image("job")])


def test_parents(plan: Plan) -> None:
    """An image's parents are the stack and its service, by its full name: an object of the cluster has the same."""
    assert list(parents(plan, [image for image in plan.images if image.service == "web"])) == [
        "**::demo",
        f"{SERVICE}::demo-service/web",
    ]


def test_image_urn(plan: Plan) -> None:
    """An image is known by its service."""
    assert {image_urn(plan, item) for item in plan.images} == {image("web"), image("job")}
