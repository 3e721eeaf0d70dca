"""Who waits for whom, and services with their dependencies first."""

from __future__ import annotations

from composeplat.compose.model import DependencyCondition
from composeplat.plan import Edge, Plan
from composeplat.plan.resource_keys import ResourceKey
from tests.conftest import Project

SHOP = """\
services:
  web:
    image: x
    depends_on:
      api: {condition: service_healthy}
      cache: {required: false}
  api:
    image: x
    ports: ['80']
    depends_on: {setup: {condition: service_completed_successfully}, absent: {required: false}}
  setup: {image: x, restart: 'no', depends_on: [db]}
  cache: {image: x}
  db: {image: x}
"""


def plan_of(project: Project, text: str) -> Plan:
    reading = project(text).read()
    assert [message for message in reading.messages if not message.endswith("[optional-service]")] == []
    assert reading.plan is not None
    return reading.plan


def test_edges(project: Project) -> None:
    """Every dependency on a service that is there is an edge, with its condition."""
    assert plan_of(project, SHOP).edges == (
        Edge(service="web", dependency="api", condition=DependencyCondition.HEALTHY),
        Edge(service="web", dependency="cache", condition=DependencyCondition.STARTED, required=False),
        Edge(service="api", dependency="setup", condition=DependencyCondition.COMPLETED),
        Edge(service="setup", dependency="db", condition=DependencyCondition.STARTED),
    )


def test_order(project: Project) -> None:
    """Each service comes after its dependencies, else as in the file."""
    assert [service.name for service in plan_of(project, SHOP).services] == ["db", "setup", "api", "cache", "web"]


def test_order_without_dependencies(project: Project) -> None:
    """Services without dependencies stay as the file has them."""
    text = "services: {c: {image: x}, a: {image: x}, b: {image: x}}"

    assert [service.name for service in plan_of(project, text).services] == ["c", "a", "b"]


def test_a_long_chain(project: Project) -> None:
    """A chain of very many services is put in order."""
    count = 2000
    text = "services:\n" + "".join(
        f"  s{n}: {{image: x{f', depends_on: [s{n + 1}]' if n < count - 1 else ''}}}\n" for n in range(count)
    )

    names = [service.name for service in plan_of(project, text).services]

    assert names == [f"s{n}" for n in reversed(range(count))]


def test_needs_of_a_workload(project: Project) -> None:
    """A workload needs its own objects, its claims, and the workloads it depends on."""
    text = """\
services:
  My_Web:
    image: x
    environment: {A: b}
    volumes: ['Shop_Data:/data', './conf:/etc/conf']
    depends_on: [db]
  db: {image: x}
volumes: {Shop_Data: {}}
"""
    plan = project(text).write({"conf": "x"}).read().plan
    assert plan is not None

    needs = {str(desired.key): tuple(map(str, desired.needs)) for desired in plan.objects}

    assert needs == {
        "claim/shop-data": (),
        "service/db": (),
        "workload/db": ("service/db",),
        "environment/my-web": (),
        "files/my-web": (),
        "service/my-web": (),
        "workload/my-web": (
            "environment/my-web",
            "files/my-web",
            "service/my-web",
            "claim/shop-data",
            "workload/db",
        ),
    }


def test_needs_of_an_endpoint(project: Project) -> None:
    """An endpoint needs the cluster services it leads to, each once."""
    text = """\
services: {web: {image: x, ports: ['80']}, api: {image: x, ports: ['80']}}
endpoints:
  - {path: /, service: web, port: 80}
  - {path: /api, service: api, port: 80}
  - {path: /img, service: web, port: 80}
"""
    plan = plan_of(project, text)

    assert tuple(map(str, plan.endpoints[0].objects[0].needs)) == ("service/web", "service/api")
    assert plan.endpoints[0].urls == (
        "https://demo-default.example.com",
        "https://demo-default.example.com/api",
        "https://demo-default.example.com/img",
    )


def test_every_need_is_in_the_plan(project: Project) -> None:
    """What is needed is there, and comes before what needs it."""
    seen: set[ResourceKey] = set()
    for desired in plan_of(project, SHOP).objects:
        assert set(desired.needs) <= seen
        seen.add(desired.key)


def test_groups(project: Project) -> None:
    """Objects are grouped by volume, service and endpoint, and the groups hold them all, in order."""
    text = """\
services: {web: {image: x, ports: ['8080:80'], volumes: ['My_Data:/data']}, db: {image: x}}
volumes: {My_Data: {}}
endpoints: {shop: [{path: /, service: web, port: 80}]}
"""
    plan = project(text).read().plan
    assert plan is not None

    assert {name: [str(desired.key) for desired in group] for name, group in plan.groups.items()} == {
        "volume-my-data": ["claim/my-data"],
        "service-web": ["service/web", "workload/web"],
        "service-db": ["service/db", "workload/db"],
        "endpoint-web": ["endpoint/web"],
        "endpoint-shop": ["endpoint/shop"],
    }
    assert [desired for group in plan.groups.values() for desired in group] == list(plan.objects)


def test_start_periods_add_up(project: Project) -> None:
    """Who waits for a healthy service has its start period before its own; who waits for a started one has not."""
    check = "healthcheck: {test: [CMD, x], start_period"
    text = f"""\
services:
  web:
    image: x
    {check}: 5s}}
    depends_on: {{api: {{condition: service_healthy}}, cache: {{condition: service_started}}}}
  api: {{image: x, {check}: 100s}}, depends_on: {{db: {{condition: service_healthy}}}}}}
  cache: {{image: x, {check}: 1h}}}}
  db: {{image: x, {check}: 20s}}}}
  task: {{image: x, restart: 'no', {check}: 9s}}}}
  alone: {{image: x, depends_on: [web]}}
"""
    assert plan_of(project, text).start_delays == {
        "db": 20, "api": 120, "cache": 3600, "web": 125, "alone": 120, "task": 0,
    }  # fmt: skip
