"""An environment is looked at again and again, with few questions; what its pods say and whether they listen."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.watching import HealthMonitor, Watcher, find_autoscaler, probe_port, read_last_lines
from tests.cluster.objects import (
    NAMESPACE,
    Answer,
    Server,
    claim,
    deployment,
    ended,
    event,
    given,
    job,
    no_server,
    pod,
    refusal,
    replica_set,
    running,
    stateful_set,
)

APPS, CORE = f"/apis/apps/v1/namespaces/{NAMESPACE}", f"/api/v1/namespaces/{NAMESPACE}"
DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS = f"{APPS}/deployments", f"{APPS}/statefulsets", f"{APPS}/replicasets"
JOBS, PODS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"{CORE}/pods"
CLAIMS, EVENTS = f"{CORE}/persistentvolumeclaims", f"{CORE}/events"
OWN_SELECTOR = "?labelSelector=dev.platform.com/environment%3Dshop"
USUAL = [path + OWN_SELECTOR for path in (DEPLOYMENTS, STATEFUL_SETS, JOBS, REPLICA_SETS, PODS)]

WEB = deployment()
SET = replica_set(WEB)
ILL = refusal(503, "etcd is ill")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def watcher(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    """A watcher that takes little time between its views."""
    monkeypatch.setattr("composeplat.cluster.watching._MIN_POLL_INTERVAL_S", 0.01)
    watcher = Watcher(server.access, NAMESPACE, "shop")
    yield watcher
    watcher.stop()


def until(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    limit = time.monotonic() + 30
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.005)


def wait_a_round(watcher: Watcher) -> None:
    """Wait for a view that was begun after this moment."""
    seen = watcher.rounds
    until(lambda: watcher.rounds > seen + 1)


def with_ready(workload: Object, count: int) -> Object:
    return {**workload, "status": {**workload["status"], "readyReplicas": count}}


# one view -------------------------------------------------------------------------------------------------------------


def test_view(server: Server) -> None:
    """A view holds what the environment has, of every kind that is judged."""
    web, database, migrate = with_ready(WEB, 1), stateful_set(), job()
    made = pod(SET)
    output = event(made, "Pulling")
    server.answers = {
        DEPLOYMENTS: given(web),
        STATEFUL_SETS: given(database),
        JOBS: given(migrate),
        REPLICA_SETS: given(SET),
        PODS: given(made),
        CLAIMS: given(claim()),
        EVENTS: given(output),
    }

    with Api(server.access) as api:
        view = Watcher(server.access, NAMESPACE, "shop").take_snapshot(api)

    assert {("Deployment", "web"): web, ("StatefulSet", "db"): database, ("Job", "migrate"): migrate} == view.workloads
    assert ([SET], [made], [claim()], [output]) == (view.replica_sets, view.pods, view.claims, view.events)


def test_only_the_environments_objects_are_asked_for(server: Server) -> None:
    """Workloads and pods are asked for by the environment's label; claims and events have none to ask for."""
    with Api(server.access) as api:
        Watcher(server.access, NAMESPACE, "shop").take_snapshot(api)

    assert [*USUAL, CLAIMS, EVENTS] == server.paths


@pytest.mark.parametrize(
    ("answers", "more"),
    [
        pytest.param({}, [CLAIMS, EVENTS], id="nothing-there"),
        pytest.param(
            {DEPLOYMENTS: given(with_ready(WEB, 1)), PODS: given(pod(SET, state=running(), ready=True))},
            [],
            id="all-ready",
        ),
        pytest.param(
            {
                DEPLOYMENTS: given(with_ready(WEB, 1)),
                PODS: given(pod(SET, state=running(), ready=True), pod(SET, "other", state=running())),
            },
            [CLAIMS, EVENTS],
            id="a-pod-not-ready",
        ),
        pytest.param({DEPLOYMENTS: given(with_ready(WEB, 0))}, [CLAIMS, EVENTS], id="a-pod-missing"),
        pytest.param({STATEFUL_SETS: given(stateful_set())}, [CLAIMS, EVENTS], id="no-pod-ready-yet"),
        pytest.param({DEPLOYMENTS: given(deployment(replicas=0))}, [], id="scaled-to-nothing"),
        pytest.param({JOBS: given(job()), PODS: given(pod(job(), state=ended(0)))}, [], id="job-ended"),
        pytest.param({JOBS: given(job()), PODS: given(pod(job(), state=ended(1)))}, [CLAIMS, EVENTS], id="job-failed"),
    ],
)
def test_events_are_asked_for_only_in_trouble(server: Server, answers: dict[str, Answer], more: list[str]) -> None:
    """Events and claims, which are many, are asked for only where something is not as it should be."""
    server.answers = answers

    with Api(server.access) as api:
        Watcher(server.access, NAMESPACE, "shop").take_snapshot(api)

    assert [*USUAL, *more] == server.paths


def test_age(server: Server) -> None:
    """How long something has been so is counted from the first time it is asked, over all views."""
    watcher = Watcher(server.access, NAMESPACE, "shop")

    with Api(server.access) as api:
        first = watcher.take_snapshot(api).age("unscheduled/a")
        time.sleep(0.05)
        view = watcher.take_snapshot(api)
    second = view.age("unscheduled/a")
    began = time.monotonic()
    other = view.age("unscheduled/b")

    assert second >= first + 0.05
    assert other <= time.monotonic() - began


# again and again ------------------------------------------------------------------------------------------------------


def test_first_view(server: Server, watcher: Watcher) -> None:
    """The first wish for a view begins the watching, and nothing is asked before it."""
    server.answers = {DEPLOYMENTS: given(WEB)}

    assert (watcher.rounds, server.paths) == (0, [])
    until(lambda: watcher.latest is not None)
    view = watcher.latest

    assert view is not None
    assert view.workloads == {("Deployment", "web"): WEB}


def test_rounds(server: Server, watcher: Watcher) -> None:
    """Rounds are counted, and each is a new view."""
    until(lambda: watcher.latest is not None)
    server.answers = {DEPLOYMENTS: given(WEB)}
    wait_a_round(watcher)
    view = watcher.latest

    assert view is not None
    assert view.workloads == {("Deployment", "web"): WEB}
    assert 2 <= watcher.rounds <= server.paths.count(USUAL[0])


def test_many_waits_share_a_reader(server: Server, watcher: Watcher) -> None:
    """However often a view is wished for, one connection asks for it."""
    for _ in range(20):
        watcher.latest  # noqa: B018 -- the wish is what is tested
    until(lambda: watcher.rounds > 1)

    assert len({request.connection for request in server.asked}) == 1


def test_counts_that_end(watcher: Watcher) -> None:
    """What nobody asked about for some rounds is not so any more: its count begins again."""
    until(lambda: watcher.latest is not None)
    view = watcher.latest
    assert view is not None
    view.age("unscheduled/a")
    seen = watcher.rounds
    until(lambda: watcher.rounds > seen + 9)
    asked = time.monotonic()

    assert view.age("unscheduled/a") <= time.monotonic() - asked


# out of reach ---------------------------------------------------------------------------------------------------------


def test_unreachable(server: Server, watcher: Watcher) -> None:
    """Why the cluster could not be asked is noted, with since when, and the last view stays."""
    began = time.monotonic()
    server.answers = {DEPLOYMENTS: given(WEB)}
    until(lambda: watcher.latest is not None)
    server.answers = {DEPLOYMENTS: ILL}
    until(lambda: bool(watcher.unreachable))
    since, asked = watcher.unreachable_since, len(server.asked)
    until(lambda: len(server.asked) > asked + 3)
    view = watcher.latest

    assert view is not None
    assert view.workloads == {("Deployment", "web"): WEB}
    assert watcher.unreachable == "etcd is ill"
    assert watcher.unreachable_since == since
    assert began <= since <= time.monotonic()


def test_reachable_again(server: Server, watcher: Watcher) -> None:
    """A cluster that can be asked again is not out of reach any more, and is the next time from then on."""
    server.otherwise = ILL
    assert watcher.latest is None
    until(lambda: bool(watcher.unreachable))
    first = watcher.unreachable_since
    server.otherwise = Answer()
    until(lambda: watcher.latest is not None)
    until(lambda: not watcher.unreachable)
    server.otherwise = ILL
    until(lambda: bool(watcher.unreachable))

    assert watcher.unreachable_since > first


def test_never_reached() -> None:
    """Where there is no cluster there is no view, and it is reported why."""
    with no_server() as access:
        watcher = Watcher(access, NAMESPACE, "shop")
        assert watcher.latest is None
        until(lambda: bool(watcher.unreachable))
        watcher.stop()

    output = f"the API server at http://127.0.0.1:{access.port} can't be reached: connection refused"
    assert (output, None, 0) == (watcher.unreachable, watcher.latest, watcher.rounds)


def test_after_an_outage(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a view took, as over an outage, the next one is not much later."""
    monkeypatch.setattr("composeplat.cluster.watching._MAX_POLL_INTERVAL_S", 0.01)
    looked: list[float] = []
    take = watcher.take_snapshot

    def slow(api: Api) -> Snapshot:
        looked.append(time.monotonic())
        if len(looked) == 1:
            time.sleep(1)
        return take(api)

    monkeypatch.setattr(watcher, "take_snapshot", slow)
    assert watcher.latest is None
    until(lambda: len(looked) > 1)

    assert looked[1] - looked[0] < 2.9


# the health monitor ---------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask often, and let silence be long soon."""
    for name, seconds in (("_PING_INTERVAL_S", 0.01), ("_WARN_AFTER_S", 0.2), ("_MAX_SILENCE_S", 1.0)):
        monkeypatch.setattr(f"composeplat.cluster.watching.{name}", seconds)
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)


@pytest.fixture
def mute() -> Iterator[Access]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Access(host="127.0.0.1", port=listening.getsockname()[1], plain=True)


def check_until(health: HealthMonitor, what: Callable[[], bool]) -> None:
    def is_so() -> bool:
        health.check()
        return what()

    until(is_so)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [Answer(), refusal(404, "none"), refusal(403, "no"), refusal(401, "who")])
def test_health(server: Server, answer: Answer) -> None:
    """A cluster that answers is not silent, whatever it says; nothing is reported about it."""
    output: list[str] = []
    server.otherwise = answer

    with HealthMonitor(server.access, NAMESPACE, output.append) as health:
        check_until(health, lambda: len(server.asked) > 5)

    assert output == []
    assert set(server.paths) == {f"/api/v1/namespaces/{NAMESPACE}"}


@pytest.mark.usefixtures("quick")
def test_health_of_a_mute_cluster(mute: Access) -> None:
    """A cluster that does not answer is reported once, and given up after a time, with a fix."""
    output: list[str] = []

    with HealthMonitor(mute, NAMESPACE, output.append) as health, pytest.raises(ApiError) as caught:
        check_until(health, lambda: False)

    assert output == [f"the API server at {mute.address} does not answer; waiting for it, 1 s at most"]
    assert str(caught.value) == f"the API server at {mute.address} has not answered for 1 s"
    assert caught.value.hint == "repair the cluster, then run this again: finished work is recorded"
    assert caught.value.exit_code == 4


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [ILL, Answer(silent=True)], ids=["server-error", "broken"])
def test_health_that_comes_back(server: Server, answer: Answer) -> None:
    """A cluster that answers again is reported as well, and silence is counted again."""
    output: list[str] = []
    server.otherwise = answer

    with HealthMonitor(server.access, NAMESPACE, output.append) as health:
        check_until(health, lambda: len(output) == 1)
        server.otherwise = Answer()
        check_until(health, lambda: len(output) == 2)
        silence = health.silence

    assert output[1] == "the API server answers again"
    assert silence < 0.2


def test_health_in_doubt(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where someone else got no answer, the cluster counts as silent until it has given one more."""
    monkeypatch.setattr("composeplat.cluster.watching._PING_INTERVAL_S", 0.3)

    with HealthMonitor(server.access, NAMESPACE, print) as health:
        before = health.silence
        health.mark_silent()
        time.sleep(0.01)
        doubted, asked = health.silence, len(server.asked)
        until(lambda: not health.silence)

    assert before == 0.0
    assert (doubted > 0, asked) == (True, 0)
    assert len(server.asked) == 1


# the end --------------------------------------------------------------------------------------------------------------


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watcher"]


def test_stop(server: Server, watcher: Watcher) -> None:
    """A watcher that is stopped asks nothing more, and keeps its last view."""
    before = watchers()
    until(lambda: watcher.latest is not None)
    assert len(watchers()) == len(before) + 1

    watcher.stop()
    asked, view = len(server.asked), watcher.latest

    assert before == watchers()
    assert view is not None
    assert len(server.asked) == asked


def test_stopped_before_the_first_wish(server: Server, watcher: Watcher) -> None:
    """A watcher that was stopped does not begin."""
    before = watchers()
    watcher.stop()

    assert (watcher.latest, watchers(), server.asked) == (None, before, [])


# logs -----------------------------------------------------------------------------------------------------------------

LOG = f"{PODS}/web-x7k2p/log?container=web&tailLines=20"
BEFORE = f"{LOG}&previous=true"


@pytest.mark.parametrize(
    ("answers", "previous", "lines", "asked"),
    [
        pytest.param({LOG: Answer(b"one\ntwo\n")}, False, ["one", "two"], [LOG], id="present"),
        pytest.param({BEFORE: Answer(b"last\n"), LOG: Answer(b"now\n")}, True, ["last"], [BEFORE], id="before"),
        pytest.param(
            {BEFORE: refusal(400, "previous terminated container not found"), LOG: Answer(b"now\n")},
            True,
            ["now"],
            [BEFORE, LOG],
            id="none-before",
        ),
        pytest.param({BEFORE: Answer(b""), LOG: Answer(b"now\n")}, True, ["now"], [BEFORE, LOG], id="empty-before"),
        pytest.param({LOG: Answer(b"")}, False, [], [LOG], id="empty"),
        pytest.param(
            {BEFORE: refusal(404, "gone"), LOG: refusal(404, "gone")}, True, [], [BEFORE, LOG], id="pod-is-gone"
        ),
    ],
)
def test_last_lines(
    server: Server, answers: dict[str, Answer], *, previous: bool, lines: list[str], asked: list[str]
) -> None:
    """A container's last lines are those of the run before where these are wanted and there are any."""
    server.answers = answers

    with Api(server.access) as api:
        assert lines == read_last_lines(api, NAMESPACE, "web-x7k2p", "web", previous=previous)

    assert asked == server.paths


# ports ----------------------------------------------------------------------------------------------------------------

TRYING = "error trying to reach service: "


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Answer(b"<html>welcome</html>"), True, id="ok"),
        pytest.param(Answer(b"no such page", 404), True, id="not-found"),
        pytest.param(Answer(b"log in", 401), True, id="wants-a-password"),
        pytest.param(Answer(b"keep out", 403), True, id="forbidden-by-the-service"),
        pytest.param(Answer(b"oh no", 500), True, id="server-error"),
        pytest.param(
            refusal(503, f'{TRYING}net/http: HTTP/1.x transport connection broken: malformed HTTP response "-ERR"'),
            True,
            id="no-http",
        ),
        pytest.param(refusal(503, f"{TRYING}EOF"), True, id="hangs-up"),
        pytest.param(
            refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: connect: connection refused"), False, id="refused"
        ),
        pytest.param(
            refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: connect: no route to host"), False, id="no-route"
        ),
        pytest.param(refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: i/o timeout"), False, id="timeout"),
        pytest.param(Answer(silent=True), False, id="no-answer"),
        pytest.param(
            refusal(403, 'pods "web-x7k2p:8080" is forbidden: User "me" cannot get resource "pods/proxy"'),
            None,
            id="may-not-be-asked",
        ),
    ],
)
def test_port_answers(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Answer, *, expected: bool | None
) -> None:
    """Whatever answers on a port listens; what nobody may ask is not known."""
    server.otherwise = answer

    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)

    with Api(server.access) as api:
        assert expected is probe_port(api, NAMESPACE, "web-x7k2p", 8080)

    assert set(server.paths) == {f"{PODS}/web-x7k2p:8080/proxy/"}


def test_port_of_a_cluster_out_of_reach() -> None:
    """Where the cluster does not answer, no port does."""
    with no_server() as access, Api(access) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is False


def test_port_behind_a_prefix(server: Server) -> None:
    """A cluster behind a path is asked behind it."""
    with Api(replace(server.access, prefix="/k8s")) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is True

    assert server.paths == [f"/k8s{PODS}/web-x7k2p:8080/proxy/"]


# autoscalers ----------------------------------------------------------------------------------------------------------

KARPENTER = "/apis/karpenter.sh"
STATUS = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"
FORBIDDEN, ABSENT = refusal(403, "you may not"), refusal(404, "not found")


@pytest.mark.parametrize(
    ("karpenter", "status", "found"),
    [
        pytest.param(ABSENT, ABSENT, False, id="none"),
        pytest.param(Answer(), ABSENT, True, id="karpenter"),
        pytest.param(ABSENT, Answer(), True, id="cluster-autoscaler"),
        pytest.param(FORBIDDEN, Answer(), True, id="one-is-enough"),
        pytest.param(ABSENT, FORBIDDEN, None, id="not-told"),
    ],
)
def test_find_autoscaler(server: Server, karpenter: Answer, status: Answer, found: bool | None) -> None:  # noqa: FBT001 -- a case
    """An autoscaler is known by what it leaves in a cluster; who may not read that can't show."""
    server.answers = {KARPENTER: karpenter, STATUS: status}
    with Api(server.access) as api:
        assert find_autoscaler(api) is found


def test_autoscalers_are_asked_for_once(server: Server) -> None:
    """Only where a pod has no node, and once for all views."""
    made = pod(SET, scheduling_failure="0/1 nodes are available")
    server.answers = {DEPLOYMENTS: given(WEB), PODS: given(pod(SET)), STATUS: FORBIDDEN}
    server.otherwise = given()
    watcher = Watcher(server.access, NAMESPACE, "shop")
    with Api(server.access) as api:
        views = [watcher.take_snapshot(api)]
        server.answers[PODS] = given(made)
        server.answers[KARPENTER] = ABSENT
        views += [watcher.take_snapshot(api), watcher.take_snapshot(api)]

    assert [view.has_autoscaler for view in views] == [False, None, None]
    assert server.paths.count(KARPENTER) == 1
