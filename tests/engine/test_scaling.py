"""What can sleep, what sleeps, and that no sign of it is left; waking in order, with views of a cluster."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.cause import Cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Watcher
from composeplat.codes.causes import CauseCode
from composeplat.compose.model import DependencyCondition
from composeplat.engine.monitor import Monitor
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.scaling import (
    WakeUp,
    by_service,
    can_sleep,
    is_sleep_entry,
    read_workloads,
    remembered_replicas,
    remove_sleep_mark,
    running_pods,
    scale_down,
    scale_up,
    service_names,
    sleeping_workloads,
)
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.plan.identity import Identity
from composeplat.system.deadline import Deadline
from tests.cluster.objects import (
    NAMESPACE,
    Answer,
    Server,
    daemon_set,
    deployment,
    given,
    job,
    pod,
    refusal,
    replica_set,
    running,
    snapshot,
    stateful_set,
    waiting,
)

MARK = "dev.platform.com/asleep"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
DAEMON_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CRON_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def answer(item: dict[str, Any]) -> Answer:
    return Answer(json.dumps(item).encode())


def head(environment: str = "shop", marked: str | None = "2", **labels: str) -> dict[str, Any]:
    identity = Identity(environment=environment, namespace=NAMESPACE)
    annotations = {"annotations": {MARK: marked}} if marked is not None else {}
    return {"metadata": {"name": "web", "labels": {**identity.labels("web"), **labels}, **annotations}}


def changes(server: Server) -> list[Any]:
    return [json.loads(request.body) for request in server.asked if request.method == "PATCH"]


def on_no_node(workload: dict[str, Any]) -> dict[str, Any]:
    return {**workload, "spec": {"template": {"spec": {"nodeSelector": {MARK: "true"}}}}}


# what sleeps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        pytest.param(deployment(replicas=2), True, id="deployment"),
        pytest.param(stateful_set(), True, id="stateful-set"),
        pytest.param(deployment(replicas=0), False, id="none"),
        pytest.param(job(), True, id="job"),
        pytest.param({**job(), "spec": {"suspend": True}}, False, id="suspended-job"),
        pytest.param(daemon_set(), True, id="daemon-set"),
        pytest.param(on_no_node(daemon_set()), False, id="daemon-set-on-no-node"),
        pytest.param(job(condition="Complete"), False, id="completed-job"),
        pytest.param(job(condition="Failed"), False, id="failed-job"),
        pytest.param({**deployment(), "metadata": {"deletionTimestamp": "now"}}, False, id="going-away"),
    ],
)
def test_workloads_that_can_sleep(workload: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """What has no pods, or has ended, is left as it is."""
    assert expected is can_sleep(workload)


@pytest.mark.parametrize(
    ("marked", "count"),
    [
        pytest.param(None, None, id="awake"),
        pytest.param("3", 3, id="number"),
        pytest.param("many", 1, id="spoiled"),
        pytest.param("9" * 5000, 1, id="huge"),
    ],
)
def test_a_broken_annotation_counts_as_one_pod(marked: str | None, count: int | None) -> None:
    """A mark that someone has spoiled counts as one pod."""
    assert count == remembered_replicas(head(marked=marked))


def test_sleepers() -> None:
    """Marked workloads of this environment sleep: no others, no development containers, no other kinds."""
    object_metadata = {
        ("Deployment", "web"): head(),
        ("StatefulSet", "db"): head(marked="1"),
        ("Deployment", "api"): head(marked=None),
        ("Deployment", "other"): head("blog"),
        ("Deployment", "web-platform-up"): head(**{"dev.platform.com/up": "web"}),
        ("Service", "web"): head(),
    }
    assert sleeping_workloads(LiveState(object_metadata=object_metadata), "shop") == {
        ("Deployment", "web"): 2,
        ("StatefulSet", "db"): 1,
    }


def with_service(kind: str) -> Plan:
    service = ServicePlan(name="web", cluster_name="web", workload_kind=kind, image="x", objects=())
    return Plan(environment="shop", namespace=NAMESPACE, services=(service,))


@pytest.mark.parametrize(("kind", "is_refused"), [("Deployment", False), ("Job", True), ("DaemonSet", True)])
def test_workloads_that_may_not_be_listed(server: Server, kind: str, *, is_refused: bool) -> None:
    """Kinds that the definition does not have need not be listable: a role for deploys often lacks jobs."""
    forbidden = refusal(403, "not for you")
    server.answers = {DEPLOYMENTS: given(), SETS: forbidden, DAEMON_SETS: forbidden, JOBS: forbidden}
    server.otherwise = given()
    with Api(server.access) as api, contextlib.ExitStack() as expected:
        if is_refused:
            expected.enter_context(pytest.raises(ApiError, match="not for you"))
        assert read_workloads(api, with_service(kind)) == {}


def test_workloads_of_an_environment(server: Server) -> None:
    """They are listed by label; development containers are none of them, and not everyone may list all kinds."""
    developed = head(**{"dev.platform.com/up": "web"})
    developed["metadata"]["name"] = "web-up"
    server.answers = {
        DEPLOYMENTS: given({**deployment(), **head()}, {**deployment(), **developed}),
        SETS: given(),
        DAEMON_SETS: refusal(403, "not for you"),
        JOBS: given({**job(), **head("blog")}),
        CRON_JOBS: refusal(403, "not for you"),
    }
    with Api(server.access) as api:
        assert list(read_workloads(api, with_service("Deployment"))) == [("Deployment", "web")]
    selector = "?labelSelector=dev.platform.com/environment%3Dshop"
    assert server.paths == [path + selector for path in (DEPLOYMENTS, SETS, DAEMON_SETS, JOBS, CRON_JOBS)]


def test_pods_that_are_left() -> None:
    """Pods that have ended, of services that are left alone, and of others don't count."""

    def make_pod(phase: str, name: str = "web", environment: str = "shop") -> dict[str, Any]:
        labels = Identity(environment=environment, namespace=NAMESPACE).pod_labels(name)
        return {"metadata": {"labels": labels}, "status": {"phase": phase}}

    found = [
        make_pod("Running"),
        make_pod("Pending"),
        make_pod("Succeeded"),
        make_pod("Failed"),
        make_pod("Running", "api"),
        make_pod("Running", environment="blog"),
    ]
    assert running_pods(found, "shop", {"api"}) == found[:2]


def test_a_service_that_left_the_file_goes_by_its_own_name() -> None:
    """Anyone who is reported of it knows its workload."""
    assert service_names(plan("Web.One"), [("Deployment", "web-one"), ("Job", "old")]) == ["Web.One", "old"]


def with_sidecar(*names: str) -> Plan:
    """A plan whose service `log` runs in the pods of `web`."""
    whole = plan(*names)
    services = (replace(service, pod_of="web") if service.name == "log" else service for service in whole.services)
    return replace(whole, services=tuple(services))


@pytest.mark.parametrize("names", [("web", "log"), ("log", "web")])
def test_services_in_the_pods_of_another(names: tuple[str, ...]) -> None:
    """They are named with it, as they sleep with it; what wakes, by its own dependencies, is the other one."""
    whole = with_sidecar(*names)

    assert service_names(whole, [("Deployment", "web")]) == [*names]
    assert by_service(whole, {("Deployment", "web"): 2, ("Job", "old"): 1}) == {"web": (("Deployment", "web"), 2)}


# the mark -------------------------------------------------------------------------------------------------------------


def test_number_and_mark_in_one_request(server: Server) -> None:
    """A kill can't come between them."""
    with Api(server.access) as api:
        scale_down(api, NAMESPACE, ("Deployment", "web"), 3)
        scale_down(api, NAMESPACE, ("Job", "batch"), 1)
        scale_down(api, NAMESPACE, ("DaemonSet", "agent"), 1)
    assert changes(server) == [
        {"metadata": {"annotations": {MARK: "3"}}, "spec": {"replicas": 0}},
        {"metadata": {"annotations": {MARK: "1"}}, "spec": {"suspend": True}},
        {
            "metadata": {"annotations": {MARK: "1"}},
            "spec": {"template": {"spec": {"nodeSelector": {MARK: "true"}}}},
        },
    ]


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [pytest.param(0, {"spec": {"replicas": 3}}, id="asleep"), pytest.param(1, {}, id="scaled-by-someone")],
)
def test_waking_a_workload(server: Server, replicas: int, expected: dict[str, Any]) -> None:
    """Its pods come back and its mark goes; pods that someone has given it meanwhile are let be."""
    server.otherwise = answer(deployment(replicas=replicas))
    with Api(server.access) as api:
        scale_up(api, NAMESPACE, ("Deployment", "web"), 3)
    assert changes(server) == [{"metadata": {"annotations": {MARK: None}}, **expected}]


def test_waking_a_daemon_set(server: Server) -> None:
    """What keeps it from all nodes goes, and nothing else of its selector."""
    server.otherwise = answer(on_no_node(daemon_set()))
    with Api(server.access) as api:
        scale_up(api, NAMESPACE, ("DaemonSet", "agent"), 1)
    spec = {"template": {"spec": {"nodeSelector": {MARK: None}}}}
    assert changes(server) == [{"metadata": {"annotations": {MARK: None}}, "spec": spec}]


def test_no_owner_is_left(server: Server) -> None:
    """What sleeping noted of fields is taken away, once more where its controller has written meanwhile."""
    ours = {"operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    theirs = {"operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
    live = deployment(replicas=0)
    live["metadata"] |= {"managedFields": [ours, theirs], "resourceVersion": "7"}
    gone = {**live, "metadata": {**live["metadata"], "managedFields": [theirs]}}
    server.first = [*[answer(live)] * 3, refusal(409, "it was changed"), answer(live), answer(live), answer(gone)]
    with Api(server.access) as api:
        scale_up(api, NAMESPACE, ("Deployment", "web"), 1)
    change = {"metadata": {"managedFields": [theirs], "resourceVersion": "7"}}
    assert changes(server)[1:] == [change, change]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"f:spec": {"f:replicas": {}}}, True, id="number"),
        pytest.param({"f:spec": {"f:suspend": {}}}, True, id="suspension"),
        pytest.param({"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}, True, id="nodes"),
        pytest.param({"f:spec": {"f:template": {"f:spec": {"f:volumes": {}}}}}, False, id="more-of-pods"),
        pytest.param({"f:spec": {"f:template": {"f:metadata": {}}}}, False, id="annotations-of-pods"),
        pytest.param({"f:metadata": {"f:annotations": {".": {}, f"f:{MARK}": {}}}}, True, id="mark"),
        pytest.param({"f:metadata": {"f:annotations": {"f:note": {}}}}, False, id="another-annotation"),
        pytest.param({"f:metadata": {"f:labels": {"f:a": {}}}}, False, id="label"),
        pytest.param({"f:spec": {"f:replicas": {}, "f:template": {}}}, False, id="more"),
        pytest.param({"f:status": {}}, False, id="status"),
    ],
)
def test_annotations_of_sleep(fields: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """Only what sleeping sets, and what was set by no apply and no subresource."""
    entry = {"operation": "Update", "fieldsV1": fields}
    assert expected is is_sleep_entry(entry)
    assert not is_sleep_entry({**entry, "operation": "Apply"})
    assert not is_sleep_entry({**entry, "subresource": "scale"})


@pytest.mark.parametrize(
    ("live", "is_certain", "patched"),
    [
        pytest.param({"spec": {"replicas": 2}}, False, True, id="has-pods"),
        pytest.param({"spec": {"replicas": 0}}, False, False, id="held-back"),
        pytest.param({"spec": {"replicas": 0}}, True, True, id="is-to-have-none"),
        pytest.param({"spec": {"replicas": 2}, "metadata": {}}, True, False, id="was-made-anew"),
    ],
)
def test_services_that_a_deploy_wakes(server: Server, live: dict[str, Any], is_certain: bool, patched: bool) -> None:  # noqa: FBT001 -- cases
    """Its mark goes once it has its pods, or once the deploy has ended well."""
    server.otherwise = answer({"kind": "Deployment", **head(), **live})
    with Api(server.access) as api:
        remove_sleep_mark(api, NAMESPACE, ("Deployment", "web"), is_certain=is_certain)
    assert changes(server) == ([{"metadata": {"annotations": {MARK: None}}}] if patched else [])


def test_objects_that_a_deploy_deletes(server: Server) -> None:
    """A workload that is not there any more has no mark."""
    server.otherwise = refusal(404, "not found")
    with Api(server.access) as api:
        remove_sleep_mark(api, NAMESPACE, ("Deployment", "web"), is_certain=True)
    assert changes(server) == []


# in order -------------------------------------------------------------------------------------------------------------


def plan(*names: str, edges: tuple[Edge, ...] = ()) -> Plan:
    services = tuple(
        ServicePlan(
            name=name, cluster_name=name.lower().replace(".", "-"), workload_kind="Deployment", image="i", objects=()
        )
        for name in names
    )
    return Plan(environment="shop", namespace=NAMESPACE, services=services, edges=edges)


class Views(Watcher):
    """A watcher that shows the views it is given, the last one for ever."""

    def __init__(self, server: Server, *views: Snapshot) -> None:
        super().__init__(server.access, NAMESPACE, "shop")
        self._views = list(views)

    @property
    def latest(self) -> Snapshot | None:
        self._rounds += 1
        return self._views.pop(0) if len(self._views) > 1 else self._views[0]


def awake(
    name: str, *, ready: bool = True, state: dict[str, Any] | None = None, restarts: int = 0, last: Any = None
) -> list[Any]:
    workload = deployment(name)
    owner = replica_set(workload)
    return [workload, owner, pod(owner, state=state or running(), ready=ready, restarts=restarts, last=last)]


def wake(
    server: Server, whole: Plan, *views: Snapshot, asleep: tuple[str, ...], deadline: float = 60, in_order: bool = True
) -> Monitor:
    server.otherwise = answer(deployment(replicas=0))
    monitor = Monitor(plan=whole, on_progress=lambda _: None, chosen=frozenset(asleep))
    keys: dict[str, tuple[Key, int]] = {name: (("Deployment", name), 1) for name in asleep}
    with Api(server.access) as api:
        WakeUp(
            plan=whole,
            api=api,
            monitor=monitor,
            watcher=Views(server, *views),
            deadline=Deadline(deadline),
            check=lambda: None,
            asleep=keys,
        ).run(in_order=in_order)
    return monitor


def woken(server: Server) -> list[str]:
    return [request.path.rpartition("/")[2] for request in server.asked if request.method == "PATCH"]


HEALTHY = (Edge(service="web", dependency="db", condition=DependencyCondition.HEALTHY),)
OPTIONAL = (Edge(service="web", dependency="db", condition=DependencyCondition.HEALTHY, required=False),)
CRASHED: dict[str, Any] = {
    "state": waiting("CrashLoopBackOff"),
    "ready": False,
    "restarts": 3,
    "last": {"terminated": {"exitCode": 3, "reason": "Error"}},
}
CRASHES = "crashes with exit status 3 (4 times)"


def test_a_dependent_wakes_when_its_dependency_is_ready(server: Server) -> None:
    """It sleeps while the other only runs, whichever the file names first."""
    views = (snapshot(*awake("db", ready=False)), snapshot(*awake("db", ready=False)), snapshot(*awake("db")))
    monitor = wake(server, plan("web", "db", edges=HEALTHY), *views, asleep=("web", "db"))
    assert woken(server) == ["db", "web"]
    assert monitor.causes == {}


def test_a_dependency_is_healthy_if_one_of_its_ports_answers(server: Server) -> None:
    """Without a health check, any port will do: the first may be that of a part which is switched off."""
    whole = plan("db", "web", edges=HEALTHY)
    db, web = (replace(service, ports=(15672, 5672)) for service in whole.services)
    view = snapshot(*awake("db"))
    (name,) = (pod["metadata"]["name"] for pod in view.pods)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    server.answers[f"{pods}/{name}:15672/proxy/"] = refusal(503, "dial tcp 10.0.0.1:15672: connect: connection refused")

    wake(server, replace(whole, services=(db, web)), view, asleep=("web",))

    assert woken(server) == ["web"]
    assert [path for path in server.paths if path.startswith(pods)] == [
        f"{pods}/{name}:{port}/proxy/" for port in (15672, 5672)
    ]


def test_a_dependency_that_is_not_ready_in_time(server: Server) -> None:
    """The dependent sleeps on, and that is reported."""
    monitor = wake(
        server,
        plan("db", "web", edges=HEALTHY),
        snapshot(*awake("db", ready=False)),
        asleep=("db", "web"),
        deadline=0.5,
    )
    assert woken(server) == ["db"]
    message = "still waits after 0 s, and stays asleep"
    assert monitor.causes == {
        "web": Cause(code=CauseCode.TIMEOUT, message=message, hint="give it more time with --timeout")
    }


def test_a_dependency_that_fails(server: Server) -> None:
    """All that waits for it sleeps on, one behind the other; each is reported, with the reason."""
    edges = (*HEALTHY, Edge(service="page", dependency="web", condition=DependencyCondition.STARTED))
    monitor = wake(
        server, plan("db", "web", "page", edges=edges), snapshot(*awake("db", **CRASHED)), asleep=("db", "web", "page")
    )
    assert woken(server) == ["db"]
    assert {name: cause.message for name, cause in monitor.causes.items()} == {
        "db": CRASHES,
        "web": f"waits for db, which {CRASHES}",
        "page": "waits for web, which stays asleep",
    }


def test_a_dependency_that_may_fail(server: Server) -> None:
    """One that is not required holds nobody back once it has failed."""
    monitor = wake(server, plan("db", "web", edges=OPTIONAL), snapshot(*awake("db", **CRASHED)), asleep=("db", "web"))
    assert woken(server) == ["db", "web"]
    assert list(monitor.causes) == ["db"]


def test_a_dependency_that_is_not_deployed(server: Server) -> None:
    """There is nothing to wait for."""
    wake(server, plan("db", "web", edges=HEALTHY), snapshot(deployment("web", replicas=0)), asleep=("web",))
    assert woken(server) == ["web"]


def test_without_order(server: Server) -> None:
    """All wake at once, and the cluster is not asked how they get on."""
    wake(server, plan("web", "db", edges=HEALTHY), snapshot(), asleep=("web", "db"), in_order=False)
    assert woken(server) == ["web", "db"]
