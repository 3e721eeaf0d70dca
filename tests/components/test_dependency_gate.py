"""What holds a service back: its dependencies, until they meet their conditions or never will."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.cause import Cause
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.watching import Watcher
from composeplat.components.dependency_gate import DependencyFailed, DependencyGate
from composeplat.components.stack import ComposeStack
from composeplat.compose.model import DependencyCondition
from composeplat.names import SERVICE_LABEL
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.system.deadline import Deadline
from tests.cluster.objects import (
    NAMESPACE,
    Answer,
    Server,
    deployment,
    ended,
    job,
    lost,
    pod,
    refusal,
    replica_set,
    running,
    snapshot,
    waiting,
)
from tests.components.test_stack import run
from tests.conftest import Project

NOWHERE = Access(host="127.0.0.1", port=9, plain=True)
DB = deployment("db")
OWNER = replica_set(DB)
KILLED = pod(OWNER, state=waiting("CrashLoopBackOff"), last=ended(137, "OOMKilled"), restarts=2)
STARTING = pod(OWNER, state=running())
READY = pod(OWNER, state=running(), ready=True)


class View(Watcher):
    """A watcher that shows one view for ever."""

    def __init__(self, view: Snapshot) -> None:
        super().__init__(NOWHERE, "team", "shop")
        self._view = view

    @property
    def latest(self) -> Snapshot | None:
        self._rounds += 1
        return self._view


def held(
    *objects: Object,
    deadline: Deadline,
    required: bool = True,
    restarts: bool = False,
    ports: tuple[int, ...] = (),
    access: Access = NOWHERE,
) -> tuple[str, dict[str, Cause], list[str]]:
    """Hold a service back: return why it is not created, the reported failures, and what it waited for."""
    services = tuple(
        ServicePlan(name=name, cluster_name=name, workload_kind="Deployment", image="i", objects=(), ports=ports)
        for name in ("db", "api")
    )
    edge = Edge(service="api", dependency="db", condition=DependencyCondition.HEALTHY, required=required)
    failures: dict[str, Cause] = {}
    messages: list[str] = []
    gate = DependencyGate(
        plan=Plan(environment="shop", namespace="team", services=services, edges=(edge,)), access=access,
        watcher=View(snapshot(DB, OWNER, *objects)), deadline=deadline, on_failure=failures.__setitem__,
        on_waiting=lambda _, reason: messages.append(reason), restarts_deadline=restarts,
    )  # fmt: skip

    async def before_create() -> None:
        hooks: Any = gate.hooks(services[1], "shop")
        (hook,) = hooks.before_create
        await hook.callback(None)

    try:
        asyncio.run(before_create())
    except DependencyFailed as error:
        return str(error), failures, messages
    return "", failures, messages


def test_a_cluster_that_is_silent_until_the_deadline() -> None:
    """A deadline that passes before the cluster has shown anything is a failure of the cluster, with its reason."""
    api = ServicePlan(name="api", cluster_name="api", workload_kind="Deployment", image="i", objects=())
    db = ServicePlan(name="db", cluster_name="db", workload_kind="Deployment", image="i", objects=())
    edge = Edge(service="api", dependency="db", condition=DependencyCondition.STARTED)
    plan = Plan(environment="shop", namespace="team", services=(db, api), edges=(edge,))
    gate = DependencyGate(plan=plan, access=NOWHERE, watcher=Watcher(NOWHERE, "team", "shop"), deadline=Deadline(1))

    async def before_create() -> None:
        hooks: Any = gate.hooks(api, "shop")
        await hooks.before_create[0].callback(None)

    with pytest.raises(DependencyFailed, match=r"^api waits for db, whose status can't be read: .*127\.0\.0\.1:9"):
        asyncio.run(before_create())


def test_a_dependency_that_fails() -> None:
    """Both are reported as data, and as a sentence, whatever the first word of the message is."""
    why, failures, messages = held(KILLED, deadline=Deadline(60))

    assert messages == []
    assert why == "api waits for db, which was killed: out of memory (3 times)"
    assert {name: (diagnostic.code, diagnostic.message) for name, diagnostic in failures.items()} == {
        "db": ("crash-loop", "was killed: out of memory (3 times)"),
        "api": ("dependency", "waits for db, which was killed: out of memory (3 times)"),
    }


def test_a_dependency_that_was_deleted() -> None:
    """It was applied before the wait, so nothing makes it again once it is gone for longer than a moment."""
    db = ServicePlan(name="db", cluster_name="db", workload_kind="Deployment", image="i", objects=())
    api = ServicePlan(name="api", cluster_name="api", workload_kind="Deployment", image="i", objects=())
    edge = Edge(service="api", dependency="db", condition=DependencyCondition.STARTED)
    plan = Plan(environment="shop", namespace="team", services=(db, api), edges=(edge,))
    failures: dict[str, Cause] = {}
    gate = DependencyGate(
        plan=plan, access=NOWHERE, watcher=View(snapshot(age={"deleted": 5.0})), deadline=Deadline(60),
        on_failure=failures.__setitem__,
    )  # fmt: skip

    async def before_create() -> None:
        hooks: Any = gate.hooks(api, "shop")
        await hooks.before_create[0].callback(None)

    with pytest.raises(DependencyFailed, match=r"^api waits for db, which failed: Deployment 'db' was deleted"):
        asyncio.run(before_create())
    assert failures["db"].code == "deleted"


def test_a_dependency_that_may_fail() -> None:
    """One that is not required holds nobody back once it has failed."""
    why, failures, _ = held(KILLED, deadline=Deadline(60), required=False)

    assert (why, list(failures)) == ("", ["db"])


@pytest.mark.parametrize(
    ("listening", "expected"),
    [
        pytest.param(15672, "", id="the-first"),
        pytest.param(5672, "", id="another"),
        pytest.param(None, "nothing answers on ports 15672, 5672 yet", id="none"),
    ],
)
def test_a_dependency_with_several_ports(monkeypatch: pytest.MonkeyPatch, listening: int | None, expected: str) -> None:
    """Without a health check it is healthy once any of them answers."""
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)
    name = READY["metadata"]["name"]
    with Server(otherwise=refusal(503, "dial tcp 10.0.0.1: connect: connection refused")) as server:
        server.answers[f"/api/v1/namespaces/team/pods/{name}:{listening}/proxy/"] = Answer(b"")
        why, _, _ = held(READY, deadline=Deadline(1), ports=(15672, 5672), access=server.access)

    assert why == (f"api waits for db, which is not healthy after 1 s ({expected})" if expected else "")


@pytest.mark.parametrize(
    ("deadline", "seconds"),
    [pytest.param(Deadline(0.3), 0, id="time"), pytest.param(Deadline(0.3, {"db": 1.0}), 1, id="after-start-period")],
)
def test_a_dependency_that_is_late(deadline: Deadline, seconds: int) -> None:
    """The time is over once the dependency has had its own, which begins when its health checks do."""
    deadline.restart()
    why, failures, messages = held(STARTING, deadline=deadline)
    reason = "0/1 ready, started, not ready yet"

    assert why == f"api waits for db, which is not healthy after {seconds} s ({reason})"
    assert failures["api"].message == why.removeprefix("api ")
    assert messages[0] == f"waits for db: {reason}"


def test_what_came_before_takes_no_time() -> None:
    """In a program of others, the time begins with the wait: a build before it may have taken all of it."""
    deadline = Deadline(-1)
    deadline.seconds = 1

    assert held(STARTING, deadline=deadline)[2] == []
    assert held(STARTING, deadline=deadline, restarts=True)[2]


def test_the_time_of_a_program(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``ComposeStack`` that makes its own gate lets the time begin with each wait."""
    folder = project("services: {web: {image: x, depends_on: [db]}, db: {image: x}}")
    config: dict[str, Any] = {"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}]}
    config |= {"contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}
    monkeypatch.setenv("KUBECONFIG", str(folder.write({"config": json.dumps(config)}).path / "config"))
    gates: list[DependencyGate] = []
    monkeypatch.setattr(DependencyGate, "hooks", lambda gate, *_: gates.append(gate))

    run(lambda: ComposeStack("shop", file=folder.path / "compose.yaml", namespace="team", waits=True))

    assert [gate.restarts_deadline for gate in gates] == [True, True]


def test_a_pull_that_failed_before() -> None:
    """The pods of a dependency that wait for their image are replaced once, for all services that wait for it."""
    stuck = pod(OWNER, state=waiting("ImagePullBackOff", "not found"))
    stuck["metadata"]["labels"] = {SERVICE_LABEL: "db"}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{stuck['metadata']['name']}"
    edges = tuple(Edge(service=name, dependency="db", condition=DependencyCondition.HEALTHY) for name in ("api", "web"))
    services = tuple(
        ServicePlan(name=name, cluster_name=name, workload_kind="Deployment", image="i", objects=())
        for name in ("db", "api", "web")
    )
    plan = Plan(environment="shop", namespace=NAMESPACE, services=services, edges=edges)

    class Cured(View):
        @property
        def latest(self) -> Snapshot | None:
            deleted = [query.path for query in server.asked if query.method == "DELETE"]
            self._rounds += 1
            return snapshot(DB, OWNER, READY if deleted else stuck)

    async def create_both(gate: DependencyGate) -> None:
        hooks: list[Any] = [gate.hooks(service, "shop") for service in services[1:]]
        await asyncio.gather(*(binding.before_create[0].callback(None) for binding in hooks))

    with Server(otherwise=Answer()) as server:
        views, deadline = Cured(snapshot()), Deadline(60)
        asyncio.run(
            create_both(
                DependencyGate(plan=plan, access=server.access, watcher=views, deadline=deadline, retries_pulls=True)
            )
        )
        assert [query.path.partition("?")[0] for query in server.asked if query.method == "DELETE"] == [path]
    assert held(stuck, deadline=Deadline(60))[0].startswith("api waits for db, which failed: image ")


@pytest.mark.parametrize(
    ("old", "waits"),
    [
        pytest.param(pod(job("web"), state=running(), going=True), True, id="ending"),
        pytest.param(pod(job("web"), state=running()), True, id="not-asked-to-end-yet"),
        pytest.param(pod(job("web"), state=ended(0)), False, id="completed"),
        pytest.param(pod(job("other"), state=running()), False, id="of-another-job"),
        pytest.param(
            lost(pod(job("web"), state=running(), ready=True, going=True)), False, id="on-a-node-that-is-gone"
        ),
    ],
)
def test_a_job_that_is_replaced(old: Object, *, waits: bool) -> None:
    """It is created once the pods of the old one have ended: two of them would do its work twice at once."""
    service = ServicePlan(name="web", cluster_name="web", workload_kind="Job", image="i", objects=())
    messages: list[str] = []
    gate = DependencyGate(
        plan=Plan(environment="shop", namespace="team", services=(service,)), access=NOWHERE,
        watcher=View(snapshot(old)), deadline=Deadline(0.2), existing={("Job", "web"): True},
        on_waiting=lambda _, reason: messages.append(reason),
    )  # fmt: skip

    async def before_create() -> None:
        hooks: Any = gate.hooks(service, "shop")
        await hooks.before_create[0].callback(SimpleNamespace(old_inputs=None))

    asyncio.run(before_create())
    assert set(messages) == ({"waits until its old pods have ended"} if waits else set())
