"""Several lists of objects for one reader that comes back often, each kept current by a watch.

Owns the lists of paths that are asked for, and whether anything in them has changed since they were read.
Must not interpret the objects. One list that a reader waits for is a :class:`~composeplat.cluster.live_list.LiveList`.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object

T = TypeVar("T")

#: A list that can't be watched is polled, as its readers can do with old objects for so long.
_UNWATCHED_KEPT_S = 30.0
#: Answers that stay: the kind does not exist, or may not be listed.
_REFUSALS = (http.client.FORBIDDEN, http.client.NOT_FOUND)


class Lists(Protocol):
    """Gives the objects of a path: a client of the API server does, with a request each time."""

    def items(self, path: str) -> list[Object]: ...


class LiveLists:
    """The objects of paths, from the first :meth:`update` until :meth:`stop`; for one thread."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lists: dict[str, LiveList] = {}
        self._refusals: dict[str, ApiError] = {}
        self._changed = threading.Event()
        self._changed.set()

    def update(self, read: Callable[[Lists], T], before: T) -> T:
        """Return what ``read`` makes of the lists, or ``before`` if none of them has changed since the last time."""
        if not self._changed.is_set() and not any(map(_is_old, self._lists.values())):
            return before
        self._changed.clear()
        try:
            return read(self)
        except ApiError:
            self._changed.set()
            raise

    def items(self, path: str) -> list[Object]:
        if path in self._refusals:
            raise self._refusals[path]
        live = self._lists.get(path) or LiveList(self._api.access, path, self._changed)
        if live.is_broken and not _is_old(live):
            return live.latest
        try:
            objects = live.read(self._api)
        except ApiError as error:
            if error.status in _REFUSALS:
                self._refusals[path] = error
                self._drop(path)
            raise
        self._lists[path] = live
        return objects

    def _drop(self, path: str) -> None:
        if path in self._lists:
            self._lists.pop(path).stop()

    def stop(self) -> None:
        for live in self._lists.values():
            live.stop()


def _is_old(live: LiveList) -> bool:
    return live.is_broken and time.monotonic() - live.listed_at >= _UNWATCHED_KEPT_S
