"""A list that one reader keeps reading costs the server one watch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.health import HealthMonitor
from composeplat.cluster.live_list import LiveList, wait_for
from composeplat.cluster.snapshot import Object
from composeplat.system.deadline import Deadline
from tests.cluster.objects import Answer, Server, given, no_server, refusal, until

PATH = "/api/v1/namespaces/team/pods?labelSelector=x"


def item(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(otherwise=given(item("a", 3), version="5")) as server:
        yield server


def names(live: LiveList, api: Api) -> list[str]:
    return [str(found["metadata"]["name"]) for found in live.read(api)]


def test_changes(server: Server) -> None:
    """A reader that waits continues with the next event, and the list is asked for once."""
    events: Queue[Object | None] = Queue()
    server.watches = {PATH.partition("?")[0]: Answer(events=events)}
    live = LiveList(server.access, PATH)
    with Api(server.access) as api:
        seen = [names(live, api)]
        for kind, name, version in (("ADDED", "b", 6), ("DELETED", "a", 7)):
            events.put({"type": kind, "object": item(name, version)})
            live.wait()
            seen.append(names(live, api))
    live.stop()
    live.wait()
    events.put(None)

    assert seen == [["a"], ["a", "b"], ["b"]]
    assert server.paths.count(PATH) == 1


def test_without_a_watch(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the list can't be watched it is polled."""
    monkeypatch.setattr("composeplat.cluster.live_list._POLL_INTERVAL_S", 0.01)
    server.watches = {PATH.partition("?")[0]: refusal(403, "you may not")}
    live = LiveList(server.access, PATH)
    with Api(server.access) as api:
        assert names(live, api) == ["a"]
        server.otherwise = given(item("b", 6), version="6")

        def has_changed() -> bool:
            live.wait()
            return names(live, api) == ["b"]

        until(has_changed)
    live.stop()


def test_a_cluster_that_goes_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the next list, a reader that comes back early gets the failure of the last one, and not old objects."""
    server.watches = {PATH.partition("?")[0]: refusal(403, "you may not")}
    live = LiveList(server.access, PATH)
    with Api(server.access) as api:
        assert names(live, api) == ["a"]
        until(lambda: live.is_broken)
        server.otherwise = refusal(500, "etcd is ill")
        monkeypatch.setattr("composeplat.cluster.live_list._POLL_INTERVAL_S", 0)
        for interval in (60, 60, 0):
            with pytest.raises(ApiError, match="etcd is ill"):
                live.read(api)
            monkeypatch.setattr("composeplat.cluster.live_list._POLL_INTERVAL_S", interval)
        server.otherwise = given(item("b", 6), version="6")
        assert names(live, api) == ["b"]
    live.stop()

    assert server.paths.count(PATH) == 3


def test_a_watch_that_comes_back_during_a_list(server: Server) -> None:
    """Its events are newer than the list that was requested before, and stay."""
    events: Queue[Object | None] = Queue()
    changed = threading.Event()

    class Slow(Api):
        def list_with_version(self, path: str) -> tuple[list[Object], str]:
            found = super().list_with_version(path)
            if live.is_broken:
                server.watches = {PATH.partition("?")[0]: Answer(events=events)}
                until(lambda: not live.is_broken)
                changed.clear()
                events.put({"type": "DELETED", "object": item("a", 6)})
                assert changed.wait(30)
            return found

    server.watches = {PATH.partition("?")[0]: Answer(silent=True)}
    live = LiveList(server.access, PATH, changed)
    with Slow(server.access) as api:
        assert names(live, api) == ["a"]
        until(lambda: live.is_broken and not names(live, api))
    live.stop()
    events.put(None)


def test_a_watch_that_becomes_silent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues over a new connection from its last version, and counts as broken at no time."""
    monkeypatch.setattr("composeplat.cluster.api._MAX_WATCH_SILENCE_S", 0.7)
    events: Queue[Object | None] = Queue()
    server.watches = {PATH.partition("?")[0]: Answer(events=events)}
    live = LiveList(server.access, PATH)
    with Api(server.access) as api:
        assert names(live, api) == ["a"]
        events.put({"type": "ADDED", "object": item("b", 6)})
        seen: list[bool] = []

        def has_continued() -> bool:
            seen.append(live.is_broken)
            return sum("resourceVersion=6" in path for path in server.paths) > 1

        until(has_continued)
        assert (names(live, api), any(seen), server.paths.count(PATH)) == (["a", "b"], False, 1)
    live.stop()
    for _ in server.paths:
        events.put(None)


def test_no_cluster() -> None:
    with no_server() as access, Api(access) as api, pytest.raises(ApiError, match="connection refused"):
        LiveList(access, PATH).read(api)


def test_a_watch_of_something_else(server: Server) -> None:
    """What is no event ends the watch, and the list is polled."""
    server.watches = {PATH.partition("?")[0]: Answer(b'{"type": "ADDED", "object": 5}\n')}
    live = LiveList(server.access, PATH)
    with Api(server.access) as api:
        assert names(live, api) == ["a"]
        live.wait()
        assert names(live, api) == ["a"]
    live.stop()


def gone(objects: list[Object]) -> bool:
    return not objects


def test_a_wait(server: Server) -> None:
    """It ends with the event, and the list was asked for once."""
    events: Queue[Object | None] = Queue()
    server.watches = {PATH.partition("?")[0]: Answer(events=events)}
    looks = 0

    def check(objects: list[Object]) -> bool:
        nonlocal looks
        looks += 1
        if looks == 4:
            events.put({"type": "DELETED", "object": item("a", 6)})
        return gone(objects)

    with Api(server.access) as api:
        assert wait_for(api, PATH, check, Deadline(30))
    events.put(None)
    assert server.paths.count(PATH) == 1


def test_a_wait_for_an_event_that_is_held_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list finds what the watch does not deliver."""
    monkeypatch.setattr("composeplat.cluster.live_list._RELIST_INTERVAL_S", 0.2)
    events: Queue[Object | None] = Queue()
    server.watches = {PATH.partition("?")[0]: Answer(events=events)}

    def check(objects: list[Object]) -> bool:
        server.otherwise = given(version="6")
        return gone(objects)

    with Api(server.access) as api:
        assert wait_for(api, PATH, check, Deadline(30))
    events.put(None)


def test_a_wait_in_vain(server: Server) -> None:
    """The deadline ends it, after a last list."""
    events: Queue[Object | None] = Queue()
    server.watches = {PATH.partition("?")[0]: Answer(events=events)}
    with Api(server.access) as api:
        assert not wait_for(api, PATH, gone, Deadline(0.3))
    events.put(None)
    assert server.paths.count(PATH) == 2


@pytest.fixture
def health(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[HealthMonitor]:
    for name, seconds in (("_PING_INTERVAL_S", 0.01), ("_WARN_AFTER_S", 0.2), ("_MAX_SILENCE_S", 3.0)):
        monkeypatch.setattr(f"composeplat.cluster.health.{name}", seconds)
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("composeplat.cluster.live_list._RELIST_INTERVAL_S", 0.05)
    with HealthMonitor(server.access, "team", notes.append) as health:
        notes.clear()
        yield health


notes: list[str] = []
ILL = refusal(500, "etcd is ill")


@pytest.mark.parametrize("answer", [Answer(silent=True), ILL], ids=["broken", "server error"])
def test_a_wait_without_answers(server: Server, health: HealthMonitor, answer: Answer) -> None:
    """A cluster that does not answer for a while is waited for, and then listed again."""

    def check(objects: list[Object]) -> bool:
        health.check()
        server.otherwise = given(version="6") if notes else answer
        return gone(objects)

    with Api(server.access) as api:
        assert wait_for(api, PATH, check, Deadline(60), health)
    assert notes[0].endswith("does not answer; waiting for it, 3 s at most")


def test_a_wait_that_never_gets_an_answer(server: Server, health: HealthMonitor) -> None:
    """The health monitor ends it, and nothing is requested while the cluster is known to be silent."""
    lists = 0

    def check(_: list[Object]) -> bool:
        nonlocal lists
        health.check()
        server.otherwise = ILL
        if not notes:
            lists = server.paths.count(PATH)
        return False

    with Api(server.access) as api, pytest.raises(ApiError, match=r"has not answered for 3 s$"):
        wait_for(api, PATH, check, Deadline(60), health)
    assert server.paths.count(PATH) <= lists + 1


def test_a_wait_that_is_refused(server: Server, health: HealthMonitor) -> None:
    """What the cluster refuses is no silence."""

    def check(_: list[Object]) -> bool:
        server.otherwise = refusal(403, "not any more")
        return False

    with Api(server.access) as api, pytest.raises(ApiError, match="not any more"):
        wait_for(api, PATH, check, Deadline(60), health)


def test_a_deadline_without_answers(server: Server, health: HealthMonitor) -> None:
    """The last objects are not taken for the present ones."""

    def check(_: list[Object]) -> bool:
        server.otherwise = ILL
        return False

    with Api(server.access) as api, pytest.raises(ApiError, match="etcd is ill"):
        wait_for(api, PATH, check, Deadline(0.5), health)
