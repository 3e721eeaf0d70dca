"""Several lists that one reader comes back to cost the server a list and a watch each, and are read after changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from queue import Queue

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_lists import Lists, LiveLists
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import Answer, Server, given, refusal, until

SERVICES, ROUTES = "/api/v1/namespaces/team/services", "/apis/gateway.networking.k8s.io/v1/namespaces/team/httproutes"


NOTHING: list[str] = []


def item(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({SERVICES: given(item("a", 3), version="5"), ROUTES: refusal(404, "no such kind")}) as server:
        yield server


class Reader:
    """Counts how many times the lists are read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, lists: Lists) -> list[str]:
        self.times += 1
        with contextlib.suppress(ApiError):
            lists.items(ROUTES)
        return [str(found["metadata"]["name"]) for found in lists.items(SERVICES)]


def test_changes(server: Server) -> None:
    """The lists are read at first and after each change; a kind that does not exist is asked for once."""
    events: Queue[Object | None] = Queue()
    server.watches = {SERVICES: Answer(events=events)}
    reader, seen = Reader(), []
    with Api(server.access) as api:
        lists = LiveLists(api)
        found = lists.update(reader, NOTHING)
        seen.append((lists.update(reader, found), reader.times))
        events.put({"type": "ADDED", "object": item("b", 6)})
        until(lambda: lists.update(reader, found) != found)
        seen.append((lists.update(reader, ["a", "b"]), reader.times))
    lists.stop()
    events.put(None)

    assert seen == [(["a"], 1), (["a", "b"], 2)]
    assert (server.paths.count(SERVICES), server.paths.count(ROUTES)) == (1, 1)


def test_without_a_watch(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that can't be watched is read again after a while, and not before."""
    server.watches = {SERVICES: refusal(403, "you may not")}
    reader = Reader()
    with Api(server.access) as api:
        lists = LiveLists(api)
        found = lists.update(reader, NOTHING)
        # The refused watch is news, which is read once.
        until(lambda: [lists.update(reader, found)] and reader.times == 2)
        server.answers[SERVICES] = given(item("b", 6), version="6")
        before = [lists.update(reader, found) for _ in range(3)]
        monkeypatch.setattr("composeplat.cluster.live_lists._UNWATCHED_KEPT_S", 0)
        monkeypatch.setattr("composeplat.cluster.live_list._POLL_INTERVAL_S", 0)
        after = lists.update(reader, found)
    lists.stop()

    assert (before, after) == ([["a"]] * 3, ["b"])
    assert server.paths.count(SERVICES) == 2


def test_a_failure_is_read_again(server: Server) -> None:
    """After a failure the lists are read again, although NOTHING in them has changed."""
    healthy, server.answers[SERVICES] = server.answers[SERVICES], refusal(500, "etcd is ill")
    reader = Reader()
    with Api(server.access) as api:
        lists = LiveLists(api)
        for _ in range(2):
            with pytest.raises(ApiError, match="etcd is ill"):
                lists.update(reader, NOTHING)
        server.answers[SERVICES] = healthy
        found = lists.update(reader, NOTHING)
    lists.stop()

    assert (found, reader.times) == (["a"], 3)
