"""A part of a plan: some services, and what belongs to them."""

from __future__ import annotations

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.plan import Plan
from tests.conftest import Project

TEXT = """\
services:
  web: {image: nginx, ports: ['8080:80'], depends_on: [api]}
  api: {image: x, build: ., depends_on: [db]}
  db: {image: postgres, volumes: ['data:/data']}
  other: {image: x, build: ., ports: ['9000:90'], volumes: ['more:/data']}
volumes: {data: {}, more: {}}
"""


@pytest.fixture
def plan(project: Project) -> Plan:
    made = project(TEXT).write({"Dockerfile": "FROM scratch\n"}).read().plan
    assert made is not None
    return made


def test_all(plan: Plan) -> None:
    """No service named means all, and the whole plan."""
    assert plan.select_services(()) == {"web", "api", "db", "other"}
    assert plan.limited_to(()) == plan


def test_with_dependencies(plan: Plan) -> None:
    """A service brings those it depends on, near and far."""
    assert plan.select_services(["web"]) == {"web", "api", "db"}
    assert plan.select_services(["db", "other"]) == {"db", "other"}


def test_a_part_of_a_plan(plan: Plan) -> None:
    """A part has the volumes, endpoints, images and conditions of its services, and no others."""
    part = plan.limited_to(["api"])

    assert [service.name for service in part.services] == ["db", "api"]
    assert [volume.name for volume in part.volumes] == ["data"]
    assert part.endpoints == ()
    assert [image.service for image in part.images] == ["api"]
    assert [(edge.service, edge.dependency) for edge in part.edges] == [("api", "db")]


def test_endpoints_that_lead_to_them(plan: Plan) -> None:
    """An endpoint belongs to the services it leads to."""
    (endpoint,) = plan.limited_to(["other"]).endpoints

    assert endpoint.routes == (("other", 90),)


def test_an_unknown_service(plan: Plan) -> None:
    """A name that no service has is refused, with the one that was meant, and those there are."""
    with pytest.raises(ComposeplatError, match="there is no service 'wbe'") as caught:
        plan.select_services(["wbe"])
    assert caught.value.hint == "did you mean 'web'? services are: api, db, other, web"


def test_a_compose_file_for_a_service(plan: Plan) -> None:
    """A Compose file that was named without its option is reported how to be."""
    with pytest.raises(ComposeplatError, match=r"there is no service 'web\.yml'") as caught:
        plan.select_services(["web.yml"])
    assert caught.value.hint == ("use an option for a Compose file: --file web.yml; services are: api, db, other, web")


def test_for_a_build_alone(plan: Plan) -> None:
    """What is left for a build is its images and the names of all else, without an object and without a wait."""
    part = plan.images_only

    assert part.images == plan.images
    assert (part.objects, part.edges) == ((), ())
    assert plan.edges
    assert [service.name for service in part.services] == [service.name for service in plan.services]
    assert [endpoint.urls for endpoint in part.endpoints] == [endpoint.urls for endpoint in plan.endpoints]


def test_users_of_a_volume(plan: Plan) -> None:
    """The users of a volume are the services that mount it."""
    assert [item.name for item in plan.users_of("data")] == ["db"]


@pytest.mark.parametrize(
    ("number", "expected"), [pytest.param(8080, 80, id="mapped"), pytest.param(80, 80, id="as it is")]
)
def test_the_port_behind_an_address(plan: Plan, number: int, expected: int) -> None:
    """A port of a service's address leads to one of its container."""
    (web,) = (service for service in plan.services if service.name == "web")

    assert web.container_port(number) == expected


def test_further_names_of_the_services_in_a_pod(project: Project) -> None:
    """In a one-off pod, they lead to the service and to its neighbors in the pod, not to that pod itself."""
    text = (
        "x-platform: {full: true}\n"
        "services:\n"
        "  web: {image: nginx, container_name: front}\n"
        "  side: {image: nginx, network_mode: 'service:web', container_name: wing}\n"
        "  other: {image: nginx, container_name: third}\n"
    )
    plan = project(text).read().plan
    assert plan is not None

    assert sorted(plan.aliases_of("web")) == sorted(plan.aliases_of("side")) == ["front", "wing"]
    assert plan.aliases_of("other") == ["third"]
