"""What the controllers of the local cluster look at costs the API server one watch of each kind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Queue

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.snapshot import Object
from composeplat.local.live_objects import LiveObjects
from tests.cluster.objects import Answer, Server, given, no_server, refusal, until
from tests.cluster.test_live_list import item

PODS, POLICIES = "/api/v1/pods", "/apis/networking.k8s.io/v1/networkpolicies"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(otherwise=given(item("a", 3), version="5")) as server:
        yield server


def names(objects: LiveObjects, path: str = PODS) -> list[str]:
    return [str(found["metadata"]["name"]) for found in objects.items(path)]


def test_each_kind_is_listed_once(server: Server) -> None:
    """Afterwards its watch brings what changes; a kind that nobody has asked for is not listed."""
    events: Queue[Object | None] = Queue()
    server.watches = {PODS: Answer(events=events)}
    with Api(server.access) as api:
        objects = LiveObjects(api)
        seen = [names(objects)]
        for version, name in ((6, "b"), (7, "c")):
            events.put({"type": "ADDED", "object": item(name, version)})
            objects.wait()
            seen.append(names(objects))
    events.put(None)

    assert seen == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert server.paths.count(PODS) == 1
    assert POLICIES not in server.paths


def test_a_watch_that_brings_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is listed again after a time, also what its watch did not bring."""
    monkeypatch.setattr("composeplat.local.live_objects._RESYNC_INTERVAL_S", 0.1)
    server.watches = {PODS: Answer(events=Queue())}
    with Api(server.access) as api:
        objects = LiveObjects(api)
        assert names(objects) == ["a"]
        server.otherwise = given(item("b", 6), version="6")

        objects.wait()

        assert names(objects) == ["b"]


def test_without_a_watch(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that can't be watched is listed again and again."""
    for module in ("local.live_objects", "cluster.live_list"):
        monkeypatch.setattr(f"composeplat.{module}._POLL_INTERVAL_S", 0.01)
    server.watches = {PODS: refusal(403, "you may not")}
    with Api(server.access) as api:
        objects = LiveObjects(api)
        assert names(objects) == ["a"]
        server.otherwise = given(item("b", 6), version="6")

        def has_changed() -> bool:
            objects.wait()
            return names(objects) == ["b"]

        until(has_changed)


def test_many_changes(server: Server) -> None:
    """A look that takes long is followed by a pause, in which changes come together."""
    events: Queue[Object | None] = Queue()
    server.watches = {PODS: Answer(events=events)}
    with Api(server.access) as api:
        objects = LiveObjects(api)
        assert names(objects) == ["a"]
        events.put({"type": "ADDED", "object": item("b", 6)})
        objects.wait()
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        for number in range(7, 10):
            events.put({"type": "ADDED", "object": item(f"c{number}", number)})
        began = time.monotonic()
        objects.wait()
        paused = time.monotonic() - began

        assert len(names(objects)) == 5
    events.put(None)

    assert paused >= 10 * 0.02


def test_another_thread(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made in one thread and used in another, which has had less processor time."""
    monkeypatch.setattr("composeplat.local.live_objects._RESYNC_INTERVAL_S", 0.1)
    server.watches = {PODS: Answer(events=Queue())}
    seen: list[list[str]] = []
    with Api(server.access) as api:
        objects = LiveObjects(api)

        def use() -> None:
            for _ in range(3):
                seen.append(names(objects))
                objects.wait()

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()

    assert seen == [["a"]] * 3


def test_a_failure_elsewhere(server: Server) -> None:
    """It ends a wait, and reaches the thread that uses the objects."""
    server.watches = {PODS: Answer(events=Queue())}
    with Api(server.access) as api:
        objects = LiveObjects(api)
        assert names(objects) == ["a"]
        timer = threading.Timer(0.05, objects.fail, (KeyError("another thread"),))
        timer.start()
        objects.wait()

        with pytest.raises(KeyError, match="another thread"):
            objects.items(PODS)


def test_no_cluster() -> None:
    with no_server() as access, Api(access) as api, pytest.raises(ApiError, match="connection refused"):
        LiveObjects(api).items(PODS)
