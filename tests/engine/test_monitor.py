"""When a deployment is over: all are ready, and stay so where nothing but running makes them so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, service_status
from composeplat.cluster.dependencies import dependency_cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.codes.causes import CauseCode
from composeplat.engine import monitor as monitor_module, rollout_end
from composeplat.engine.events import Change, Events, Operation
from composeplat.engine.monitor import Monitor
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.progress import Phase
from tests.cluster.objects import deployment, job, pod, replica_set, running, snapshot
from tests.conftest import Project

URN = "urn:pulumi:team::shop::composeplat:index:ComposeStack$kubernetes:apps/v1:Deployment::shop-workload/web"
APPLIED, LATER = 3, 9
WEB = deployment("web")
OWNER = replica_set(WEB)
READY = snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=True))
STARTING = snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=False))


def monitor(*, operation: Operation = Operation.UPDATE, has_health_check: bool = False) -> Monitor:
    """One that was reported that the workload is applied."""
    web = ServicePlan(
        name="web",
        cluster_name="web",
        workload_kind="Deployment",
        image="x",
        objects=(),
        has_health_check=has_health_check,
    )
    made = Monitor(
        plan=Plan(environment="shop", namespace="team", services=(web,)),
        on_progress=lambda _: None,
        chosen=frozenset({"web"}),
    )
    change = Change(urn=URN, operation=operation, kind="Deployment", name="web")
    made.handle(URN, Events(changes={URN: change}, done={URN}), lambda: APPLIED)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time, as the monitor sees it."""
    now = [100.0]
    with monkeypatch.context() as within:
        within.setattr(time, "monotonic", lambda: now[0])
        within.setattr(time, "thread_time", lambda: now[0])
        yield now


def test_ready_for_a_moment(clock: list[float]) -> None:
    """What runs without a health check is waited for until it has stayed ready; once it is not, that begins again."""
    item = monitor()
    seen = []
    for second, view in ((0, READY), (1, READY), (1.2, STARTING), (2, READY), (3, READY), (3.5, READY)):
        clock[0] = 100.0 + second
        seen.append(item.is_over(view, LATER))

    assert seen == [False, False, False, False, False, True]


def test_ready_before_the_round(clock: list[float]) -> None:
    """The time counts from the first snapshot with the ready pod, also if no round has shown the workload yet."""
    item = monitor()
    item.judge_services(READY, APPLIED - 1)
    clock[0] += 1.4
    early = item.is_over(READY, LATER)
    clock[0] += 0.2

    assert (early, item.is_over(READY, LATER)) == (False, True)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(snapshot(WEB, OWNER, pod(OWNER, "older", state=running(), ready=True)), id="another-pod"),
        pytest.param(snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=True, restarts=1)), id="restarted"),
        pytest.param(STARTING, id="not-ready"),
    ],
)
def test_other_containers_were_ready_before(clock: list[float], before: Snapshot) -> None:
    """Another pod, other containers of the same pod, and a pod that was not ready, don't count."""
    item = monitor()
    item.judge_services(before, APPLIED - 1)
    seen = []
    for second in (1.6, 3.0, 3.2):
        clock[0] = 100.0 + second
        seen.append(item.is_over(READY, LATER))

    assert seen == [False, False, True]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"has_health_check": True}, id="health check"),
        pytest.param({"operation": Operation.SAME}, id="unchanged"),
    ],
)
def test_ready_for_good(parameters: dict[str, Any]) -> None:
    """What a health check found ready, or what did not change, is waited for no longer."""
    assert monitor(**parameters).is_over(READY, LATER)


JOB = job()
JOB_RUNS = (JOB, pod(JOB, state=running(), ready=True))


def monitor_with_job(*, job_operation: Operation) -> Monitor:
    """One of a service and a Job, both reported as applied."""
    item = monitor()
    (web,) = item.plan.services
    migrate = ServicePlan(name="migrate", cluster_name="migrate", workload_kind="Job", image="x", objects=())
    made = Monitor(
        plan=Plan(environment="shop", namespace="team", services=(web, migrate)),
        on_progress=lambda _: None,
        chosen=frozenset({"web", "migrate"}),
    )
    urn = URN.replace("apps/v1:Deployment", "batch/v1:Job").replace("/web", "/migrate")
    changes = {
        URN: Change(urn=URN, operation=Operation.UPDATE, kind="Deployment", name="web"),
        urn: Change(urn=urn, operation=job_operation, kind="Job", name="migrate"),
    }
    for changed in changes:
        made.handle(changed, Events(changes=changes, done=set(changes)), lambda: APPLIED)
    return made


def test_a_running_job(clock: list[float]) -> None:
    """It is waited for until ten seconds after its start, whenever the other services became ready."""
    item = monitor_with_job(job_operation=Operation.CREATE)
    starting = snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=False), *JOB_RUNS)
    ready = snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=True), *JOB_RUNS)
    seen = []
    for second, view in ((0, starting), (6, starting), (7, ready), (9.9, ready), (10, ready)):
        clock[0] = 100.0 + second
        seen.append(item.is_over(view, LATER))

    assert seen == [False, False, False, False, True]


def test_a_job_that_runs_from_a_deployment_before(clock: list[float]) -> None:
    """Only the other services are waited for."""
    item = monitor_with_job(job_operation=Operation.SAME)
    ready = snapshot(WEB, OWNER, pod(OWNER, state=running(), ready=True), *JOB_RUNS)
    seen = []
    for second in (0, 1.5):
        clock[0] = 100.0 + second
        seen.append(item.is_over(ready, LATER))

    assert seen == [False, True]


@pytest.mark.usefixtures("clock")
def test_an_unchanged_service_is_noted_once() -> None:
    """A service that Pulumi leaves alone is ready already when Pulumi's event about it comes."""
    progress: list[tuple[str, str]] = []
    item = monitor(operation=Operation.SAME)
    item.on_progress = lambda found: progress.append((found.phase, found.message))
    item.judge_services(READY, LATER)
    change = Change(urn=URN, operation=Operation.SAME, kind="Deployment", name="web")
    item.handle(URN, Events(changes={URN: change}, done={URN}), lambda: LATER)
    item.judge_services(READY, LATER + 1)

    assert progress == [(Phase.READY, "1/1 ready")]


def test_a_view_from_before() -> None:
    """A view that is older than the change shows nothing of it."""
    assert not monitor(has_health_check=True).is_over(READY, APPLIED - 1)


def progress_of(*phases: tuple[str, str]) -> list[tuple[str, str]]:
    """What a listener gets where a monitor is reported this of one service."""
    received: list[tuple[str, str]] = []
    monitor = Monitor(
        plan=Plan(environment="shop", namespace="team"),
        chosen=frozenset({"web"}),
        on_progress=lambda progress: received.append((progress.phase, progress.message)),
    )
    for phase, message in phases:
        monitor.emit("web", Phase(phase), message)
    return received


def test_changes_are_reported_once() -> None:
    """The same phase with the same message is reported once; another message again."""
    waiting, other = ("waiting", "its pod is pending"), ("waiting", "its pod starts")

    assert progress_of(waiting, waiting, other, other, waiting) == [waiting, other, waiting]


def test_a_failure_is_final() -> None:
    """Whatever comes after a failure is not reported."""
    assert progress_of(("applying", ""), ("failed", "crashes"), ("waiting", ""), ("ready", "")) == [
        ("applying", ""),
        ("failed", "crashes"),
    ]


def test_the_first_cause_holds() -> None:
    """What a service fails of first is what it failed of."""
    item = monitor()
    first, second = (Cause(code=CauseCode.CRASH_LOOP, message=text, hint="") for text in ("first", "second"))
    item.fail("web", first)
    item.fail("web", second)

    assert item.causes == {"web": first}


SHARED = """\
services:
  db: {image: x}
  api: {image: x, depends_on: [db]}
  side: {image: x, network_mode: 'service:api'}
  web: {image: x, depends_on: [side]}
"""


def test_a_service_in_the_pods_of_one_that_waits(project: Project) -> None:
    """What holds back a workload holds back all services of its pods, and each says so."""
    plan = project(SHARED).read(full=True).plan
    assert plan is not None
    seen: list[tuple[str, Phase, str]] = []
    item = Monitor(
        plan=plan,
        on_progress=lambda progress: seen.append((progress.service, progress.phase, progress.message)),
        chosen=frozenset(plan.select_services(())),
    )

    item.emit_waiting("api", "waits for db: 0/1 ready")
    item.fail("db", Cause(code=CauseCode.CRASH_LOOP, message="crashes"))
    item.fail("api", dependency_cause("db", "which crashes"))
    item.fail("side", Cause(code=CauseCode.REFUSED, message="could not be created"))

    assert seen == [
        ("api", Phase.WAITING, "waits for db: 0/1 ready"),
        ("side", Phase.WAITING, "is in the pods of api, which waits for db: 0/1 ready"),
        ("db", Phase.FAILED, "crashes"),
        ("api", Phase.FAILED, "waits for db, which crashes"),
        ("side", Phase.FAILED, "is in the pods of api, which waits for db, which crashes"),
    ]
    assert {name: cause.code for name, cause in item.causes.items()} == {
        "db": CauseCode.CRASH_LOOP,
        "api": CauseCode.DEPENDENCY,
        "side": CauseCode.DEPENDENCY,
    }


def test_a_failed_container_beside_others_of_its_pods(project: Project) -> None:
    """A failure of one container alone is not that of the others."""
    plan = project(SHARED).read(full=True).plan
    assert plan is not None
    item = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset(plan.select_services(())))

    item.fail("api", Cause(code=CauseCode.CRASH_LOOP, message="crashes"))

    assert list(item.causes) == ["api"]


@pytest.mark.usefixtures("clock")
def test_a_round_from_before_the_workload_was_applied() -> None:
    """Only a round that shows the workload as applied counts, and none while nothing is known of it."""
    made = monitor(has_health_check=True)
    made.applied["web"] = 3

    assert [made.is_over(READY, rounds) for rounds in (2, 3)] == [False, True]

    made.applied.clear()

    assert not made.is_over(READY, 4)


SERVICES = [f"web{number}" for number in range(4)]
WORKLOADS = {name: deployment(name) for name in SERVICES}
REPLICA_SETS = {name: replica_set(workload) for name, workload in WORKLOADS.items()}
PODS = {name: pod(owner, state=running(), ready=True) for name, owner in REPLICA_SETS.items()}
UNREADY = {name: pod(owner, state=running(), ready=False) for name, owner in REPLICA_SETS.items()}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The services whose status was looked at."""
    seen: list[str] = []

    def status(kind: str, name: str, container: str, view: Snapshot) -> ServiceStatus:
        seen.append(name)
        return service_status(kind, name, container, view)

    for module in (monitor_module, rollout_end):
        monkeypatch.setattr(module, "service_status", status)
    return seen


def monitor_of_many() -> Monitor:
    """One of several services with health checks, all of which are applied."""
    services = tuple(
        ServicePlan(
            name=name, cluster_name=name, workload_kind="Deployment", image="x", objects=(), has_health_check=True
        )
        for name in SERVICES
    )
    plan = Plan(environment="shop", namespace="team", services=services)
    made = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset(SERVICES))
    made.applied.update(dict.fromkeys(SERVICES, APPLIED))
    return made


def view_of_many(**pods: dict[str, Any]) -> Snapshot:
    """All services with ready pods, but for those that are given."""
    return snapshot(*WORKLOADS.values(), *REPLICA_SETS.values(), *{**PODS, **pods}.values())


def test_news(clock: list[float], judged: list[str]) -> None:
    """A judgement is repeated for another snapshot or round, and after a moment: causes depend on time too."""
    item = monitor(has_health_check=True)
    counts = []
    for view, rounds, seconds in ((READY, 9, 0), (READY, 9, 0), (STARTING, 9, 0), (STARTING, 10, 0), (STARTING, 10, 1)):
        clock[0] += seconds
        item.judge_news(view, rounds)
        counts.append(len(judged))

    assert counts == [1, 1, 2, 3, 4]


def test_news_of_many_services(clock: list[float], judged: list[str]) -> None:
    """A judgement of all that takes long has a pause after it, in which services with changed workloads are judged."""
    item = monitor_of_many()

    def report(_: object) -> None:
        clock[0] += 0.1

    item.on_progress = report
    item.judge_news(view_of_many(), LATER)
    item.on_progress = lambda _: None
    changed = view_of_many()
    changed.workloads = {**changed.workloads, ("Deployment", "web1"): deployment("web1", replicas=2)}
    item.judge_news(changed, LATER)
    in_between = judged[len(SERVICES) :]
    clock[0] += 10
    item.judge_news(changed, LATER)

    assert judged[: len(SERVICES)] == SERVICES
    assert in_between == ["web1"]
    assert judged[len(SERVICES) + 1 :] == SERVICES


def test_ready_services_are_looked_at_once(judged: list[str]) -> None:
    """Until the last one is ready; then all of them once more, by the same snapshot."""
    item = monitor_of_many()
    early = [item.is_over(view_of_many(web2=UNREADY["web2"]), LATER) for _ in range(3)]
    seen = list(judged)
    last = view_of_many()
    late = [item.is_over(last, LATER) for _ in range(3)]

    assert early == [False, False, False]
    assert seen == ["web0", "web1", "web2", "web2", "web2"]
    assert late == [True, True, True]
    assert judged[len(seen) :] == ["web2", "web3", *SERVICES]


def test_a_service_that_was_ready_before_the_last(judged: list[str]) -> None:
    """Its pod is not ready any more, which its workload does not show yet."""
    item = monitor_of_many()
    item.is_over(view_of_many(web2=UNREADY["web2"]), LATER)
    lost = item.is_over(view_of_many(web0=UNREADY["web0"]), LATER)
    again = item.is_over(view_of_many(web0=UNREADY["web0"]), LATER)
    at_last = judged[-1]

    assert (lost, again, at_last) == (False, False, "web0")
    assert item.is_over(view_of_many(), LATER)
