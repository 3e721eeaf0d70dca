"""Why services fail, by what Pulumi's events say of their objects: refusals, builds, and those that only waited."""

from __future__ import annotations

import pytest

from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.compose.model import DependencyCondition
from composeplat.engine.events import Change, Events, Operation
from composeplat.engine.failure_causes import find_blocked, find_refusals
from composeplat.plan.desired import Edge, ImageBuild, Plan
from tests.conftest import Project
from tests.steps import count_steps

TEXT = """\
services:
  web: {build: ., depends_on: [api]}
  api: {image: x, depends_on: [db]}
  db: {image: x}
"""
SERVICES = ("api", "db", "web")
SERVICE = "urn:pulumi:team::demo::composeplat:index:ComposeStack$composeplat:index:Service"
WORKLOAD = f"{SERVICE}$kubernetes:apps/v1:Deployment::demo-workload"


@pytest.fixture
def plan(project: Project) -> Plan:
    found = project(TEXT).write({"Dockerfile": "FROM x\n"}).read(namespace="team", registry="localhost:5000").plan
    assert found is not None
    return found


def not_built(image: ImageBuild, text: str) -> Cause:
    return Cause(code=CauseCode.BUILD, message=f"{image.service}: {text}")


def test_refused_by_the_server(plan: Plan) -> None:
    """What the API server says of an object is reported of its service, without what Pulumi puts around it."""
    urn = f"{WORKLOAD}/api"
    change = Change(urn=urn, operation=Operation.CREATE, kind="Deployment", name="api")
    made = f'resource "{urn}" was not successfully created by the Kubernetes API server: '
    text = made + '1 error occurred:\n\t* deployments.apps "api" is forbidden:\n  quota'
    events = Events(changes={urn: change}, messages={urn: ["update failed", text]})

    message = "Deployment 'api' could not be created: deployments.apps \"api\" is forbidden: quota"
    assert list(find_refusals(events, plan, SERVICES, not_built)) == [
        ("api", Cause(code=CauseCode.REFUSED, message=message, has_subject=True))
    ]


@pytest.mark.parametrize(
    ("operation", "done"),
    [(Operation.UPDATE, "updated"), (Operation.REPLACE, "replaced"), (Operation.DELETE, "deleted")],
)
def test_refused_changes(plan: Plan, operation: Operation, done: str) -> None:
    """The message has what was tried: an object that was there is not one that could not be created."""
    urn = f"{WORKLOAD}/api"
    change = Change(urn=urn, operation=operation, kind="Deployment", name="api")
    ((_, cause),) = find_refusals(Events(changes={urn: change}, messages={urn: ["quota"]}), plan, SERVICES, not_built)

    assert cause.message == f"Deployment 'api' could not be {done}: quota"


def test_an_object_that_no_event_has_reported_of(plan: Plan) -> None:
    """An object without a change goes by the end of its URN."""
    events = Events(messages={f"{WORKLOAD}/api": ["no"]})

    message = "demo-workload/api could not be created: no"
    assert list(find_refusals(events, plan, SERVICES, not_built)) == [
        ("api", Cause(code=CauseCode.REFUSED, message=message, has_subject=True))
    ]


SHARED = """\
services:
  web: {image: x, configs: [web], volumes: ['data:/data']}
  api: {image: x, volumes: ['data:/data']}
  app: {image: x, configs: [web], depends_on: [other]}
  sidecar: {image: x, network_mode: 'service:app', environment: {A: b}}
  other: {image: x}
configs: {web: {content: c}}
volumes: {data: }
"""
STACK = "urn:pulumi:team::demo::composeplat:index:ComposeStack"


@pytest.mark.parametrize(
    ("resource", "services"),
    [
        pytest.param("kubernetes:core/v1:ConfigMap::demo-config/web", ["app", "sidecar", "web"], id="config"),
        pytest.param("kubernetes:core/v1:PersistentVolumeClaim::demo-claim/data", ["api", "web"], id="claim"),
        pytest.param("kubernetes:core/v1:Secret::demo-environment/sidecar", ["sidecar", "app"], id="of one in a pod"),
        pytest.param("kubernetes:apps/v1:Deployment::demo-workload/app", ["app", "sidecar"], id="shared pod"),
        pytest.param("kubernetes:apps/v1:Deployment::demo-workload/other", ["other"], id="dependency"),
        pytest.param("kubernetes:core/v1:ConfigMap::demo-config/unused", ["unused"], id="of no service"),
    ],
)
def test_a_refused_object_fails_its_users(project: Project, resource: str, services: list[str]) -> None:
    """Each service that needs a refused object has failed, as Pulumi does not create its pods."""
    plan = project(SHARED).read(namespace="team", full=True).plan
    assert plan is not None
    events = Events(messages={f"{STACK}${resource}": ["no"]})

    found = list(find_refusals(events, plan, plan.select_services(()), not_built))
    assert [service for service, _ in found] == services
    assert {cause.code for _, cause in found} == {CauseCode.REFUSED}


def test_many_refused_objects(project: Project) -> None:
    """Ten times the refused objects take ten times the work."""

    def steps(count: int) -> int:
        services = "".join(f"  s{i}: {{image: x, environment: {{A: b}}}}\n" for i in range(count))
        plan = project(f"services:\n{services}").read(namespace="team").plan
        assert plan is not None
        messages = {f"{STACK}$kubernetes:core/v1:Secret::demo-environment/s{i}": ["no"] for i in range(count)}
        chosen, found = plan.select_services(()), list[object]()
        work = count_steps(lambda: found.extend(find_refusals(Events(messages=messages), plan, chosen, not_built)))
        assert len(found) == count
        return work

    assert steps(200) < 12 * steps(20)


def test_only_chosen_users_fail(project: Project) -> None:
    """A deploy of some services says nothing of others that use the same object."""
    plan = project(SHARED).read(namespace="team", full=True).plan
    assert plan is not None
    events = Events(messages={f"{STACK}$kubernetes:core/v1:PersistentVolumeClaim::demo-claim/data": ["no"]})

    assert [service for service, _ in find_refusals(events, plan, {"api"}, not_built)] == ["api"]


def test_a_build(plan: Plan) -> None:
    """Why an image was not built is asked of who knows builds."""
    events = Events(messages={f"{SERVICE}$docker-build:index:Image::demo-image/web": ["exit code: 1"]})

    assert list(find_refusals(events, plan, SERVICES, not_built)) == [
        ("web", Cause(code=CauseCode.BUILD, message="web: exit code: 1"))
    ]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param({"": ["something"]}, id="of no object"),
        pytest.param({f"{WORKLOAD}/api": ["update failed"]}, id="of the whole"),
        pytest.param({f"{WORKLOAD}/api": []}, id="nothing"),
    ],
)
def test_no_refusal(plan: Plan, messages: dict[str, list[str]]) -> None:
    """The message about no object, or of the whole, blames no service."""
    assert list(find_refusals(Events(messages=messages), plan, SERVICES, not_built)) == []


def test_those_that_wait_are_held_up(plan: Plan) -> None:
    """Anyone who waits for one that failed is held up, and anyone who waits for that one too."""
    assert find_blocked(plan, {"db"}, {"web", "api"}) == {
        "api": Cause(code=CauseCode.DEPENDENCY, message="waits for db, which failed"),
        "web": Cause(code=CauseCode.DEPENDENCY, message="waits for api, which failed"),
    }


def test_an_existing_object_is_not_delayed(plan: Plan) -> None:
    """A service that was applied already continues, and holds nobody up."""
    assert find_blocked(plan, {"db"}, {"web"}) == {}


def test_a_cycle_ends() -> None:
    """Services that wait for each other are each reported of once."""
    plan = Plan(
        environment="demo",
        namespace="team",
        edges=(
            Edge(service="a", dependency="b", condition=DependencyCondition.STARTED),
            Edge(service="b", dependency="a", condition=DependencyCondition.STARTED),
            Edge(service="a", dependency="c", condition=DependencyCondition.STARTED),
        ),
    )

    assert list(find_blocked(plan, {"c"}, {"a", "b"})) == ["a", "b"]
