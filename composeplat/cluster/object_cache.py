"""The objects of one kind, kept current by lists and by the events of a watch.

Owns their order: a watch may deliver an event from before the last list, which changes nothing any more.
Must not open a connection: lists and events come in.
It is apart because both arrive from threads of their own, and an old event that undoes a list shows a deleted pod.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from composeplat.cluster.snapshot import Object

#: After a list with news, the watch must deliver the same news within this time.
_DELIVERED_WITHIN_S = 3.0


_Key = tuple[str, str]


class WatchUnusable(Exception):
    """What the watch delivers is no event, or has no comparable version."""


class Expired(Exception):
    """The server can't continue from the last version, which is usually too old: a list has to come first."""


@dataclass(slots=True)
class ObjectCache:
    """The objects of one list, by namespace and name: a list may be of all namespaces."""

    version: str = ""
    """The resource version of the last list or event, from which a watch continues."""
    changes: int = 0
    """How many times the objects have changed."""
    _objects: dict[_Key, Object] = field(default_factory=dict)
    _listed: int = 0
    _awaited_since: float | None = None
    """Since when the watch has not delivered what a list has shown."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def objects(self) -> list[Object]:
        with self._lock:
            return list(self._objects.values())

    @property
    def is_behind(self) -> bool:
        """Return whether the watch has not delivered for too long what a list has shown: something holds it back."""
        since = self._awaited_since
        return since is not None and time.monotonic() - since > _DELIVERED_WITHIN_S

    @property
    def is_awaited(self) -> bool:
        """Return whether the watch has yet to deliver what a list has shown."""
        return self._awaited_since is not None

    def replace(self, items: Sequence[Object], version: str, *, is_watched: bool = False) -> None:
        """Take a list, unless its watch is ahead of it; note whether it has news that the watch has yet to deliver."""
        objects = {_key(item["metadata"]): item for item in items}
        with self._lock:
            if is_watched and _number(version) < _number(self.version):
                return
            if is_watched and _versions(objects) != _versions(self._objects) and self._awaited_since is None:
                self._awaited_since = time.monotonic()
            self._objects = objects
            self.version, self._listed = version, _number(version)
            self.changes += 1

    def begin_watch(self) -> str:
        """Return the version that a new watch continues from: it never delivers what came before."""
        with self._lock:
            self._awaited_since = None
            return self.version

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event of the watch."""
        match event:
            case {"type": "ERROR"}:
                raise Expired
            case {"type": str(kind), "object": {"metadata": {"resourceVersion": str(version)} as metadata} as item}:
                self._take(kind, _key(metadata), version, item)
            case _:
                raise WatchUnusable

    def _take(self, kind: str, key: _Key, version: str, item: Object) -> None:
        if not version.isdigit():
            raise WatchUnusable
        number = int(version)
        with self._lock:
            self._awaited_since = None
            if number <= self._listed:
                return
            self.version = version
            if kind == "BOOKMARK":
                return
            if kind == "DELETED":
                self._objects.pop(key, None)
            else:
                self._objects[key] = item
            self.changes += 1


def _key(metadata: Mapping[str, Any]) -> _Key:
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _versions(objects: Mapping[_Key, Object]) -> dict[_Key, str]:
    return {key: str(item["metadata"].get("resourceVersion")) for key, item in objects.items()}


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
