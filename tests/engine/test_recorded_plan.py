"""A plan that a revision keeps is a plan again: its objects as the state had them, and the order of its services."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from composeplat.engine.preflight import LiveState, changes_of_claim
from composeplat.engine.recorded_plan import (
    Facts,
    Inputs,
    inputs_of,
    left_claims,
    record_plan,
    restore_plan,
    with_present_claims,
)
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.conftest import Project

TEXT = """\
x-platform: {full: true}
services:
  My_Web:
    image: nginx:1
    ports: ['8080:80']
    environment: {A: b}
    depends_on: {db: {condition: service_healthy}}
    healthcheck: {test: 'true', start_period: 7s}
    configs: [site]
    networks: [front]
  db: {image: postgres, volumes: ['data:/data'], networks: [front, back]}
  helper: {image: busybox, network_mode: 'service:db'}
  job: {image: x, restart: 'no', networks: [back]}
volumes: {data: {size: 2Gi}}
configs: {site: {content: hello}}
secrets: {password: {external: true}}
networks: {front: {}, back: {}}
endpoints: [{path: /, service: My_Web, port: 80}]
"""


@pytest.fixture
def plan(project: Project) -> Plan:
    found = project(TEXT).read().plan
    assert found
    return found


def state_of(plan: Plan, *more: dict[str, Any]) -> dict[str, Any]:
    """A state with the objects of a plan, and resources that are no objects of it."""
    stack = f"urn:pulumi:team::demo::composeplat:index:ComposeStack$x::{plan.environment}"
    objects = [
        {"urn": f"{stack}-{desired.key}", "type": "kubernetes:x:X", "inputs": plain(desired.manifest)}
        for desired in plan.objects
    ]
    others = [
        {"urn": f"{stack}-service/db", "type": "composeplat:index:Service"},
        {"urn": f"{stack}-workload/going", "type": "kubernetes:x:X", "inputs": {}, "delete": True},
        {"urn": "urn:pulumi:team::demo::kubernetes:x:X::other-workload/theirs", "type": "kubernetes:x:X", "inputs": {}},
    ]
    return {"resources": [*others, *objects, *more]}


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def kept(facts: Facts) -> Facts:
    """Facts after they were kept."""
    found: Facts = json.loads(json.dumps(facts))
    return found


def restored(facts: Facts, present: Plan) -> Plan:
    found = kept(facts)
    return restore_plan(found["plan"], found["inputs"], present)


def test_a_plan_is_restored(plan: Plan) -> None:
    """All of its parts with their objects, and how its services are waited for; the file has changed since."""
    present = replace(plan, services=(), volumes=(), networks=(), files=(), endpoints=(), edges=(), required=())

    found = restored(record_plan(plan, state_of(plan), (), None), present)

    assert [plain(desired.manifest) for desired in found.objects] == [
        plain(desired.manifest) for desired in plan.objects
    ]
    assert [(o.key, o.needs) for o in found.objects] == [(o.key, o.needs) for o in plan.objects]
    assert found.edges == plan.edges
    assert found.edges
    assert found.required == plan.required
    assert list(found.groups) == list(plan.groups)
    assert [replace(service, objects=(), image="") for service in found.services] == [
        replace(service, objects=(), image="") for service in plan.services
    ]
    assert [service.image for service in found.services if not service.pod_of] == ["postgres", "nginx:1", "x"]
    assert [(e.name, e.urls, e.routes) for e in found.endpoints] == [(e.name, e.urls, e.routes) for e in plan.endpoints]
    assert found.start_delays == plan.start_delays


def test_only_objects_of_the_stack_are_kept(plan: Plan) -> None:
    """Not those that are still to be deleted, or of another program in the same stack."""
    assert inputs_of(state_of(plan)).keys() == {str(desired.key) for desired in plan.objects}


def test_parts_without_objects_are_left_out(plan: Plan) -> None:
    """A service that the state does not have did not run; an edge to it waits for nothing."""
    state = state_of(plan)
    state["resources"] = [
        found for found in state["resources"] if not found["urn"].endswith(("/db", "/data", "/helper"))
    ]

    found = restored(record_plan(plan, state, (), None), plan)

    assert {service.name for service in found.services} == {"My_Web", "job"}
    assert found.volumes == ()
    assert found.edges == ()


def test_a_service_in_pods_that_did_not_run(plan: Plan) -> None:
    """A deploy of another service leaves it out with the service of its pods: a rollback would wait for it."""
    state = state_of(plan)
    whole = restored(record_plan(plan, state, ["job"], None), plan)
    state["resources"] = [found for found in state["resources"] if "workload/job" in found["urn"]]

    alone = restored(record_plan(plan, state, ["job"], None), plan)

    assert "helper" in {service.name for service in whole.services}
    assert {service.name for service in alone.services} == {"job"}


def test_a_service_without_objects_in_the_pods_of_another(plan: Plan) -> None:
    """Its container is in the pods that are restored."""
    state = state_of(plan)
    state["resources"] = [found for found in state["resources"] if not found["urn"].endswith("/helper")]

    found = restored(record_plan(plan, state, (), None), plan)

    assert "helper" in {service.name for service in found.services}


def test_a_deploy_of_some_services(project: Project, plan: Plan) -> None:
    """The others are kept as the last revision had them."""
    before = record_plan(plan, state_of(plan), (), None)
    later = project(TEXT.replace("start_period: 7s", "start_period: 9s")).read().plan
    assert later

    chosen = record_plan(later, state_of(later), ["db"], kept(before))["plan"]["services"]
    whole = record_plan(later, state_of(later), (), kept(before))["plan"]["services"]

    assert (chosen["my-web"]["start_period"], whole["my-web"]["start_period"]) == (7, 9)
    assert chosen["db"] == whole["db"]
    alone = record_plan(later, state_of(later), ["db"], None)["plan"]["services"]
    assert alone["my-web"]["start_period"] == 9


@pytest.mark.parametrize(
    ("services", "edges"),
    [
        pytest.param(["job"], [("My_Web", "db")], id="left-alone"),
        pytest.param(["db"], [("db", "My_Web")], id="deployed"),
    ],
)
def test_dependencies_of_a_deploy_of_some_services(
    project: Project, plan: Plan, services: list[str], edges: list[tuple[str, str]]
) -> None:
    """Each service has its own as it was deployed last: with those of another deploy, two could wait for each other."""
    turned = TEXT.replace("    depends_on: {db: {condition: service_healthy}}\n", "").replace(
        "{image: postgres,", "{image: postgres, depends_on: [My_Web],"
    )
    later = project(turned).read().plan
    assert later

    facts = record_plan(later, state_of(plan), services, kept(record_plan(plan, state_of(plan), (), None)))

    assert [(edge.service, edge.dependency) for edge in restored(facts, later).edges] == edges


def test_objects_of_others_in_a_deploy_of_some_services(project: Project, plan: Plan) -> None:
    """What the services that were deployed do not need any more is not looked for; what others need is."""
    needs = TEXT.replace("{image: postgres,", "{image: postgres, secrets: [password],")
    both = needs.replace("{image: x,", "{image: x, secrets: [password],")
    first, second, third = (found for text in (both, needs, TEXT) if (found := project(text).read().plan))
    before = record_plan(first, state_of(first), (), None)

    part = record_plan(second, state_of(second), ["job"], kept(before))
    rest = record_plan(third, state_of(third), ["db"], kept(part))

    required = [restored(facts, plan).required for facts in (before, part, rest)]
    assert [[sorted(each.services) for each in found] for found in required] == [[["db", "job"]], [["db"]], []]


def test_a_service_that_no_plan_has(plan: Plan) -> None:
    """A deploy of another service leaves it in the state: it is restored as the state has it."""
    workload = {"kind": "Deployment", "metadata": {"name": "old"}, "spec": pods("old:1")}
    urn = "urn:pulumi:team::demo::composeplat:index:ComposeStack$x::demo-workload/old"
    state = state_of(plan, {"urn": urn, "type": "kubernetes:x:X", "inputs": workload})

    found = restored(record_plan(plan, state, ["db"], None), plan)

    old = next(service for service in found.services if service.name == "old")
    assert (old.workload_kind, old.image, len(old.objects)) == ("Deployment", "old:1", 1)


def test_a_service_that_was_under_development(plan: Plan) -> None:
    """It had no pods of its own in the state; a rollback gives it those of the plan."""
    state = state_of(plan)
    for resource in state["resources"]:
        if resource["urn"].endswith("workload/my-web"):
            resource["inputs"]["spec"]["replicas"] = 0

    found = restored(record_plan(plan, state, (), None), plan)

    manifest = next(desired.manifest for desired in found.objects if str(desired.key) == "workload/my-web")
    assert manifest["spec"]["replicas"] == 1


def claim(size: str, **spec: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "gone"}, "spec": spec}


def test_data_stays_as_it_is(plan: Plan) -> None:
    """A claim is the one of now: it has grown since, and never shrinks. One that left both is as it was."""
    recorded: Inputs = {"claim/data": {"size": 1}, "claim/gone": claim("1Gi"), "workload/web": {"image": 1}}
    now = state_of(plan)
    size = inputs_of(now)["claim/data"]

    assert left_claims(recorded, now) == ["gone"]
    assert with_present_claims(recorded, now, {"gone": None}) == {**recorded, "claim/data": size}


@pytest.mark.parametrize("storage_class", [None, "slow"])
def test_a_volume_that_left_the_file(storage_class: str | None) -> None:
    """Its claim is in the cluster, and may have grown before: the rollback must not be refused for its data."""
    named = {} if storage_class is None else {"storageClassName": storage_class}
    live = claim("3Gi", accessModes=["ReadWriteMany"], storageClassName="fast", volumeName="pvc-1")

    found = with_present_claims({"claim/gone": claim("1Gi", **named)}, {}, {"gone": live})["claim/gone"]

    assert found == claim("3Gi", accessModes=["ReadWriteMany"], **({"storageClassName": "fast"} if named else {}))
    desired = DesiredObject(key=ResourceKey(ResourceKind.CLAIM, "gone"), manifest=found)
    assert changes_of_claim(desired, LiveState(claims={"gone": live})) == []


def pods(image: str) -> dict[str, Any]:
    return {"replicas": 1, "template": {"spec": {"containers": [{"name": "old", "image": image}]}}}
