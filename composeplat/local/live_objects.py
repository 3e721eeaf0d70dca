"""The objects that a controller of the local cluster looks at: each kind is listed once, and watched from then on.

Owns when a controller has to look again. Must not interpret the objects.
It is apart because a list of all objects for each change made the API server of a cluster with a hundred services write
these again three times a second.
"""

from __future__ import annotations

import contextlib
import threading
import time

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object

_RESYNC_INTERVAL_S = 30.0
#: Before kinds that can't be watched are listed again.
_POLL_INTERVAL_S = 0.5
#: Many changes come together: after each look, so many times its processor time passes before the next one.
_PAUSE_PER_LOOK = 10
_MAX_PAUSE_S = 1.0


class LiveObjects:
    """The objects of each path that was asked for, for one thread."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._changed = threading.Event()
        self._lists: dict[str, LiveList] = {}
        self._failure: Exception | None = None
        self._looked_at: float | None = None
        """The processor time of the thread that waits, when it last began to look."""

    def items(self, path: str) -> list[Object]:
        """Return the objects of a path, as its watch shows them: what was done a moment ago may not be there yet."""
        if self._failure is not None:
            raise self._failure
        if path not in self._lists:
            self._lists[path] = LiveList(self._api.access, path, self._changed)
        return self._lists[path].read(self._api)

    def fail(self, error: Exception) -> None:
        """Let the thread that uses the objects fail: another one has, which the process needs too."""
        self._failure = error
        self._changed.set()

    def wait(self) -> None:
        """Wait until something may have changed; without a change for long, list everything again."""
        if self._looked_at is not None:
            time.sleep(min(_PAUSE_PER_LOOK * (time.thread_time() - self._looked_at), _MAX_PAUSE_S))
        is_broken = any(found.is_broken for found in self._lists.values())
        has_changed = self._changed.wait(_POLL_INTERVAL_S if is_broken else _RESYNC_INTERVAL_S)
        # Before the objects are read, so that no change after that is lost.
        self._changed.clear()
        if not has_changed and not is_broken:
            with contextlib.suppress(ApiError):
                for found in self._lists.values():
                    found.list_again(self._api)
        self._looked_at = time.thread_time()
