"""An environment is looked at again and again, with few questions; what its pods say and whether they listen."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from queue import Queue
from typing import Any
from urllib.parse import quote

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.object_cache import ObjectCache
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.watching import Watcher, find_autoscaler
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
    until,
)

APPS, CORE = f"/apis/apps/v1/namespaces/{NAMESPACE}", f"/api/v1/namespaces/{NAMESPACE}"
DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS = f"{APPS}/deployments", f"{APPS}/statefulsets", f"{APPS}/replicasets"
JOBS, PODS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"{CORE}/pods"
CLAIMS, EVENTS = f"{CORE}/persistentvolumeclaims", f"{CORE}/events"
_USUAL_REASONS = [
    "Scheduled",
    "Created",
    "Started",
    "Killing",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "ScalingReplicaSet",
    "Completed",
]
UNUSUAL_EVENTS = f"{EVENTS}?fieldSelector={quote(','.join(f'reason!={reason}' for reason in _USUAL_REASONS))}"
OWN_SELECTOR = "?labelSelector=dev.platform.com/environment%3Dshop"
USUAL = [path + OWN_SELECTOR for path in (DEPLOYMENTS, STATEFUL_SETS, JOBS, REPLICA_SETS, PODS)]

WEB = deployment()
SET = replica_set(WEB)
ILL = refusal(503, "etcd is ill")


@pytest.fixture
def watcher(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    """A watcher that takes little time between its rounds."""
    monkeypatch.setattr("composeplat.cluster.watching._MIN_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr("composeplat.cluster.watching._MIN_ROUND_INTERVAL_S", 0.01)
    watcher = Watcher(server.access, NAMESPACE, "shop")
    yield watcher
    watcher.stop()


def wait_a_round(watcher: Watcher) -> None:
    """Wait for a round that was begun after this moment."""
    shown_by = watcher.request_round()
    until(lambda: watcher.rounds >= shown_by)


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
    """Workloads and pods are asked for by the environment's label; claims have none; of events, those that explain."""
    with Api(server.access) as api:
        Watcher(server.access, NAMESPACE, "shop").take_snapshot(api)

    assert [*USUAL, CLAIMS, UNUSUAL_EVENTS] == server.paths


@pytest.mark.parametrize(
    ("answers", "more"),
    [
        pytest.param({}, [CLAIMS, UNUSUAL_EVENTS], id="nothing-there"),
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
            [CLAIMS, UNUSUAL_EVENTS],
            id="a-pod-not-ready",
        ),
        pytest.param({DEPLOYMENTS: given(with_ready(WEB, 0))}, [CLAIMS, UNUSUAL_EVENTS], id="a-pod-missing"),
        pytest.param({STATEFUL_SETS: given(stateful_set())}, [CLAIMS, UNUSUAL_EVENTS], id="no-pod-ready-yet"),
        pytest.param({DEPLOYMENTS: given(deployment(replicas=0))}, [], id="scaled-to-nothing"),
        pytest.param({JOBS: given(job()), PODS: given(pod(job(), state=ended(0)))}, [], id="job-ended"),
        pytest.param({JOBS: given(job(condition="Complete"))}, [], id="job-completed"),
        pytest.param({JOBS: given(job())}, [CLAIMS, UNUSUAL_EVENTS], id="job-without-a-pod"),
        pytest.param(
            {JOBS: given(job()), PODS: given(pod(job(), state=ended(1)))}, [CLAIMS, UNUSUAL_EVENTS], id="job-failed"
        ),
    ],
)
def test_events_are_asked_for_only_in_trouble(server: Server, answers: dict[str, Answer], more: list[str]) -> None:
    """Events and claims, which are many, are asked for only where something is not as it should be."""
    server.answers = answers

    with Api(server.access) as api:
        Watcher(server.access, NAMESPACE, "shop").take_snapshot(api)

    assert [*USUAL, *more] == server.paths


def test_what_explains_may_not_be_listed(server: Server, watcher: Watcher) -> None:
    """A role for deploys often lacks events: what a service waits for is less clear then, and nothing fails."""
    forbidden = refusal(403, "events is forbidden")
    server.answers = {DEPLOYMENTS: given(WEB), EVENTS: forbidden, UNUSUAL_EVENTS: forbidden, CLAIMS: forbidden}

    until(lambda: watcher.latest is not None)
    wait_a_round(watcher)
    view = watcher.latest

    assert (watcher.unreachable, view and view.workloads) == ("", {("Deployment", "web"): WEB})
    assert server.paths.count(UNUSUAL_EVENTS) == 1


@pytest.mark.parametrize("kinds", [("Deployment",), ("Deployment", "Job")])
def test_a_kind_that_may_not_be_listed(server: Server, kinds: tuple[str, ...]) -> None:
    """Jobs need not be listable in an environment without jobs."""
    server.answers = {DEPLOYMENTS: given(WEB), JOBS: refusal(403, "jobs.batch is forbidden")}
    watcher = Watcher(server.access, NAMESPACE, "shop", kinds)

    with Api(server.access) as api, contextlib.ExitStack() as expected:
        if "Job" in kinds:
            expected.enter_context(pytest.raises(ApiError, match="forbidden"))
        assert list(watcher.take_snapshot(api).workloads) == [("Deployment", "web")]


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


def test_age_since_creation(server: Server) -> None:
    """A condition of a pod or claim counts from when that was created; any other from the first look."""
    made = datetime.now(UTC) - timedelta(minutes=5)
    server.answers[PODS] = given(pod(SET, created=made.isoformat()))
    watcher = Watcher(server.access, NAMESPACE, "shop", since_creation=True)

    with Api(server.access) as api:
        view = watcher.take_snapshot(api)
    (found,) = view.pods

    assert 299 < view.age(f"unscheduled/{found['metadata']['uid']}") < 330
    assert view.age("no-room/other") < 1


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


def test_a_round_without_a_pause(server: Server, watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that somebody waits for is not put off by the pause after the last one."""
    monkeypatch.setattr("composeplat.cluster.watching._MIN_ROUND_INTERVAL_S", 60.0)
    monkeypatch.setattr("composeplat.cluster.watching._MAX_POLL_INTERVAL_S", 60.0)
    until(lambda: watcher.latest is not None)
    shown_by = watcher.request_round()
    time.sleep(0.2)

    assert watcher.rounds < shown_by

    watcher.hurry()
    until(lambda: watcher.rounds >= shown_by)

    assert server.paths.count(USUAL[0]) == 2


def test_many_waits_share_a_reader(server: Server, watcher: Watcher) -> None:
    """However often a view is wished for, one connection lists the objects."""
    for _ in range(20):
        watcher.latest  # noqa: B018 -- the wish is what is tested
    until(lambda: watcher.rounds > 1)

    assert len({request.connection for request in server.asked if "watch=1" not in request.path}) == 1


def test_counts_that_end(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody asked about for some time is not so any more: its count begins again."""
    monkeypatch.setattr("composeplat.cluster.watching.AGE_KEPT_S", 0.1)
    until(lambda: watcher.latest is not None)
    view = watcher.latest
    assert view is not None
    view.age("unscheduled/a")
    time.sleep(0.2)
    asked = time.monotonic()

    assert view.age("unscheduled/a") <= time.monotonic() - asked


# out of reach ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_pauses")
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


@pytest.mark.usefixtures("no_pauses")
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
    replace_objects = ObjectCache.replace

    def slow(cache: ObjectCache, items: list[Object], version: str, *, is_watched: bool) -> None:
        looked.append(time.monotonic())
        if len(looked) == 1:
            time.sleep(1)
        replace_objects(cache, items, version, is_watched=is_watched)

    monkeypatch.setattr(ObjectCache, "replace", slow)
    assert watcher.latest is None
    # Claims and events too, as there is nothing yet.
    until(lambda: len(looked) > len(USUAL) + 2)

    assert looked[len(USUAL) + 2] - looked[0] < 2.9


# watches --------------------------------------------------------------------------------------------------------------

ALL = (DEPLOYMENTS, STATEFUL_SETS, JOBS, REPLICA_SETS, PODS)


def change(kind: str, item: Object, version: int) -> Object:
    return {"type": kind, "object": with_version(item, version)}


def with_version(item: Object, version: int) -> Object:
    return {**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}


def workloads(watcher: Watcher) -> dict[str, str]:
    """The versions of the workloads in the latest snapshot, by name."""
    view = watcher.latest
    found = {} if view is None else view.workloads
    return {name: item["metadata"]["resourceVersion"] for (_, name), item in found.items()}


@pytest.fixture
def watched(server: Server) -> Iterator[dict[str, Queue[Object | None]]]:
    """The events of each kind, which the server sends to watches; a ready ``web`` is there at version 5."""
    events: dict[str, Queue[Object | None]] = {path: Queue() for path in (*ALL, CLAIMS, EVENTS)}
    server.watches = {path: Answer(events=queue) for path, queue in events.items()}
    server.otherwise = given(version="7")
    server.answers = {DEPLOYMENTS: given(with_version(with_ready(WEB, 1), 5), version="7")}
    yield events
    for queue in events.values():
        # For a watch that was opened, and for one that may still come.
        for _ in range(2):
            queue.put(None)


@pytest.mark.usefixtures("watched")
def test_nothing_is_asked_while_nothing_changes(server: Server, watcher: Watcher) -> None:
    """After the first round there is one watch of each kind from the version of its list on, and nothing else."""
    until(lambda: watcher.latest is not None)
    until(lambda: len(server.asked) == 2 * len(ALL))
    time.sleep(0.5)

    query = f"{OWN_SELECTOR}&watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300"
    assert sorted(server.paths) == sorted([*USUAL, *(path + query for path in ALL)])


def test_changes(watched: dict[str, Queue[Object | None]], server: Server, watcher: Watcher) -> None:
    """What is made, changed and deleted is in the latest snapshot, without another list."""
    until(lambda: workloads(watcher) == {"web": "5"})
    other, changed = with_ready(deployment("api"), 1), with_ready(WEB, 1)
    watched[DEPLOYMENTS].put(change("ADDED", other, 8))
    until(lambda: workloads(watcher) == {"web": "5", "api": "8"})
    watched[DEPLOYMENTS].put(change("MODIFIED", changed, 9))
    until(lambda: workloads(watcher) == {"web": "9", "api": "8"})
    watched[DEPLOYMENTS].put(change("DELETED", other, 10))
    until(lambda: workloads(watcher) == {"web": "9"})

    assert watcher.rounds == 1
    assert server.paths.count(USUAL[0]) == 1


def test_a_round_that_may_wait(
    watched: dict[str, Queue[Object | None]], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after a long pause, which ends as soon as somebody needs it."""
    monkeypatch.setattr("composeplat.cluster.watching._PAUSE_IF_NOT_NEEDED", 1_000_000)
    assert watched
    until(lambda: workloads(watcher) == {"web": "5"})
    number = watcher.request_round(may_wait=True)
    time.sleep(0.3)
    has_waited = watcher.rounds < number
    began = time.monotonic()
    needed = watcher.request_round()
    until(lambda: watcher.rounds >= needed)

    assert has_waited
    assert needed == number
    assert time.monotonic() - began < 1


def test_snapshots_that_take_long(
    watched: dict[str, Queue[Object | None]], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots of many objects take long: after each there is a pause, and the last event is shown all the same."""
    until(lambda: workloads(watcher) == {"web": "5"})
    made: list[float] = []
    make = watcher._make_snapshot  # noqa: SLF001 -- to make it slow

    def make_slowly(caches: Any) -> Snapshot:
        made.append(time.monotonic())
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return make(caches)

    monkeypatch.setattr(watcher, "_make_snapshot", make_slowly)
    for version in range(8, 58):
        watched[DEPLOYMENTS].put(change("MODIFIED", with_ready(WEB, 1), version))
        time.sleep(0.01)
        assert watcher.latest is not None
    until(lambda: workloads(watcher) == {"web": "57"})

    assert len(made) > 1
    assert all(after - before > 20 * 0.01 for before, after in itertools.pairwise(made))


def test_trouble_is_explained(watched: dict[str, Queue[Object | None]], server: Server, watcher: Watcher) -> None:
    """Events are listed when the first pod is not ready, and watched from then on."""
    made = with_version(pod(SET, state=running()), 8)
    until(lambda: workloads(watcher) == {"web": "5"})
    assert UNUSUAL_EVENTS not in server.paths
    server.answers |= {PODS: given(made, version="8")}
    watched[PODS].put(change("ADDED", made, 8))
    until(lambda: (view := watcher.latest) is not None and view.pods)
    until(lambda: any(path.startswith(f"{UNUSUAL_EVENTS}&watch=1") for path in server.paths))
    failing = with_version(event(made, "Unhealthy"), 9)
    watched[EVENTS].put({"type": "ADDED", "object": failing})
    until(lambda: (view := watcher.latest) is not None and view.events == [failing])

    assert server.paths.count(UNUSUAL_EVENTS) == 1


def test_a_watch_that_ends(watched: dict[str, Queue[Object | None]], server: Server, watcher: Watcher) -> None:
    """A watch is continued from its last version when the server ends it, and no list is needed."""
    until(lambda: workloads(watcher) == {"web": "5"})
    watched[DEPLOYMENTS].put(change("MODIFIED", with_ready(WEB, 1), 11))
    watched[DEPLOYMENTS].put({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "15"}}})
    watched[DEPLOYMENTS].put(None)
    watched[DEPLOYMENTS].put(change("MODIFIED", with_ready(WEB, 1), 16))
    until(lambda: workloads(watcher) == {"web": "16"})

    versions = [path.partition("resourceVersion=")[2].partition("&")[0] for path in server.paths if "ments?" in path]
    assert versions == ["", "7", "15"]


@pytest.mark.parametrize("way", ["event", "refusal"])
def test_a_version_that_is_gone(
    watched: dict[str, Queue[Object | None]],
    server: Server,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """When the server does not have the events any more, the kind is listed and watched from there."""
    monkeypatch.setattr("composeplat.cluster.watch_stream._MIN_WATCH_S", 0.0)
    until(lambda: workloads(watcher) == {"web": "5"})
    until(lambda: len(server.asked) == 2 * len(ALL))
    server.answers = {DEPLOYMENTS: given(with_version(with_ready(WEB, 1), 40), version="41")}
    if way == "event":
        watched[DEPLOYMENTS].put({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
    else:
        server.first = [refusal(410, "too old resource version")]
    watched[DEPLOYMENTS].put(None)
    until(lambda: workloads(watcher) == {"web": "40"})
    watched[DEPLOYMENTS].put(change("MODIFIED", with_ready(WEB, 1), 42))
    until(lambda: workloads(watcher) == {"web": "42"})

    assert server.paths.count(USUAL[0]) == 2
    assert watcher.rounds == 1


@pytest.mark.parametrize("status", [400, 403, 404, 405])
@pytest.mark.usefixtures("watched")
def test_who_may_not_watch(server: Server, watcher: Watcher, status: int) -> None:
    """Who may list a kind and not watch it polls, as before; the other kinds are watched."""
    server.watches[PODS] = refusal(status, "you may not")
    until(lambda: watcher.latest is not None)
    until(lambda: watcher.rounds > 3)

    assert not watcher.unreachable
    assert len([path for path in server.paths if path.startswith(f"{PODS}?") and "watch=1" in path]) == 1


def test_a_watch_that_holds_back(
    watched: dict[str, Queue[Object | None]], server: Server, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that keeps the events to itself is noticed by a list with news, and the kind is polled from then on."""
    monkeypatch.setattr("composeplat.cluster.object_cache._DELIVERED_WITHIN_S", 0.2)
    until(lambda: workloads(watcher) == {"web": "5"})
    server.answers = {DEPLOYMENTS: given(with_version(with_ready(WEB, 1), 8), version="8")}
    wait_a_round(watcher)
    server.answers = {DEPLOYMENTS: given(with_version(with_ready(WEB, 1), 9), version="9")}
    until(lambda: workloads(watcher) == {"web": "9"})

    assert watched[DEPLOYMENTS].empty()


@pytest.mark.usefixtures("no_pauses")
def test_a_cluster_that_restarts(
    watched: dict[str, Queue[Object | None]], server: Server, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While watches can't be opened the cluster is polled; when they can, it is not any more."""
    monkeypatch.setattr("composeplat.cluster.watch_stream._RETRY_INTERVAL_S", 0.2)
    until(lambda: workloads(watcher) == {"web": "5"})
    until(lambda: len(server.asked) == 2 * len(ALL))
    healthy = dict(server.watches)
    server.watches = dict.fromkeys(ALL, ILL)
    server.otherwise, server.answers = ILL, {}
    for path in ALL:
        watched[path].put(None)
    until(lambda: watcher.unreachable == "etcd is ill")
    server.otherwise = given(version="20")
    server.answers = {DEPLOYMENTS: given(with_version(with_ready(WEB, 1), 19), version="20")}
    until(lambda: workloads(watcher) == {"web": "19"})
    server.watches = healthy
    watched[DEPLOYMENTS].put(change("MODIFIED", with_ready(WEB, 1), 22))
    until(lambda: workloads(watcher) == {"web": "22"})
    until(lambda: not watcher.unreachable)
    until(lambda: _is_quiet(server))


def _is_quiet(server: Server) -> bool:
    """Return whether nothing is asked for a moment."""
    asked = len(server.asked)
    time.sleep(0.3)
    return len(server.asked) == asked


# the end --------------------------------------------------------------------------------------------------------------


def watchers(before: Collection[threading.Thread] = ()) -> list[threading.Thread]:
    """Return the threads of watchers but those of tests before, which may end at any moment."""
    return [t for t in threading.enumerate() if t.name in ("watcher", "watch") and t not in before]


@pytest.mark.usefixtures("watched")
def test_stop(server: Server, watcher: Watcher) -> None:
    """A watcher that is stopped asks nothing more, watches nothing more, and keeps its last view."""
    before = watchers()
    until(lambda: watcher.latest is not None)
    until(lambda: len(watchers(before)) == 1 + len(ALL))

    watcher.stop()
    until(lambda: watchers(before) == [])
    asked = len(server.asked)
    time.sleep(0.1)

    assert watcher.latest is not None
    assert len(server.asked) == asked


def test_stopped_before_the_first_wish(server: Server, watcher: Watcher) -> None:
    """A watcher that was stopped does not begin."""
    before = watchers()
    watcher.stop()

    assert (watcher.latest, watchers(before), server.asked) == (None, [], [])


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
