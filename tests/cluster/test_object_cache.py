"""Lists and events in any order give the objects as the server last had them."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.object_cache import Expired, ObjectCache, WatchUnusable


def item(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def event(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": item(name, version)}


@pytest.fixture
def cache() -> ObjectCache:
    """A cache after a list of ``a`` and ``b`` at version 10."""
    made = ObjectCache()
    made.replace([item("a", 3), item("b", 9)], "10")
    return made


def held(cache: ObjectCache) -> dict[str, int]:
    return {found["metadata"]["name"]: int(found["metadata"]["resourceVersion"]) for found in cache.objects}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([event("ADDED", "c", 11)], {"a": 3, "b": 9, "c": 11}, id="added"),
        pytest.param([event("MODIFIED", "a", 11)], {"a": 11, "b": 9}, id="modified"),
        pytest.param([event("DELETED", "a", 11)], {"b": 9}, id="deleted"),
        pytest.param([event("DELETED", "a", 11), event("ADDED", "a", 12)], {"a": 12, "b": 9}, id="made-again"),
        pytest.param([event("MODIFIED", "a", 2)], {"a": 3, "b": 9}, id="older-than-the-list"),
        pytest.param([event("DELETED", "b", 8)], {"a": 3, "b": 9}, id="deleted-before-the-list"),
        pytest.param([event("ADDED", "gone", 10)], {"a": 3, "b": 9}, id="deleted-by-the-list"),
        pytest.param([event("DELETED", "unknown", 11)], {"a": 3, "b": 9}, id="never-seen"),
    ],
)
def test_events(cache: ObjectCache, events: list[dict[str, Any]], expected: dict[str, int]) -> None:
    for item_event in events:
        cache.take(item_event)

    assert held(cache) == expected


def test_version(cache: ObjectCache) -> None:
    """A watch continues from the last event, a bookmark too, and never from one that is older than the list."""
    versions = [cache.version]
    for item_event in (event("MODIFIED", "a", 4), event("MODIFIED", "a", 12), event("BOOKMARK", "", 30)):
        cache.take(item_event)
        versions.append(cache.version)

    assert versions == ["10", "10", "12", "30"]
    assert held(cache) == {"a": 12, "b": 9}


def test_changes_are_counted(cache: ObjectCache) -> None:
    """Each list and each event that changes something counts, and nothing else."""
    before = cache.changes
    for item_event in (event("MODIFIED", "a", 4), event("BOOKMARK", "", 11), event("MODIFIED", "a", 12)):
        cache.take(item_event)
    cache.replace([], "13")

    assert cache.changes == before + 2


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {}},
        {"type": "ADDED", "object": {"metadata": {"name": "a"}}},
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "x9"}}},
        {"kind": "List", "items": []},
    ],
)
def test_no_event(cache: ObjectCache, broken: dict[str, Any]) -> None:
    """What is no event, or can't be ordered, makes the watch unusable and changes nothing."""
    with pytest.raises(WatchUnusable):
        cache.take(broken)

    assert held(cache) == {"a": 3, "b": 9}


@pytest.mark.parametrize("code", [410, 500])
def test_errors(cache: ObjectCache, code: int) -> None:
    """After any error of a watch the objects are listed again."""
    with pytest.raises(Expired):
        cache.take({"type": "ERROR", "object": {"kind": "Status", "code": code}})


def test_a_watch_that_is_behind(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a list with news the watch is awaited, and behind when it has not delivered in time; an event ends that."""
    monkeypatch.setattr("composeplat.cluster.object_cache._DELIVERED_WITHIN_S", 0.0)
    states = []
    for version in (9, 11):
        cache.replace([item("a", 3), item("b", version)], "12", is_watched=True)
        states.append((cache.is_awaited, cache.is_behind))
    cache.take(event("MODIFIED", "b", 11))

    assert states == [(False, False), (True, True)]
    assert (cache.is_awaited, cache.is_behind) == (False, False)


def test_a_new_watch_is_not_behind(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that begins after a list never delivers what the list has shown."""
    monkeypatch.setattr("composeplat.cluster.object_cache._DELIVERED_WITHIN_S", 0.0)
    cache.replace([item("a", 11)], "12", is_watched=True)
    version = cache.begin_watch()

    assert (version, cache.is_awaited, cache.is_behind) == ("12", False, False)


def test_a_list_behind_the_watch(cache: ObjectCache) -> None:
    """A list that was made before the last event changes nothing; without a watch it counts, as after a restore."""
    cache.take(event("MODIFIED", "a", 20))
    seen = []
    for is_watched in (True, False):
        cache.replace([item("a", 3)], "15", is_watched=is_watched)
        seen.append((held(cache), cache.version))

    assert seen == [({"a": 20, "b": 9}, "20"), ({"a": 3}, "15")]
