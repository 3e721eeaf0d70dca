"""One list of objects for one reader, kept current by a watch.

Owns when it is listed again: while its watch can't be followed; and the wait for something about its objects.
Must not interpret the objects. For an environment with all its kinds there is
:class:`~composeplat.cluster.watching.Watcher`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.connection import OnSilence
from composeplat.cluster.health import HealthMonitor
from composeplat.cluster.object_cache import ObjectCache
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watch_stream import WatchStream
from composeplat.system.deadline import Deadline
from composeplat.system.threads import await_end

T = TypeVar("T")

_POLL_INTERVAL_S = 0.5
#: How often a wait looks at the clock, and lets its caller stop it; nothing is requested for that.
_CHECK_INTERVAL_S = 0.1
#: A proxy may hold back the events of a watch without an end: a wait lists the objects once in this time.
_RELIST_INTERVAL_S = 10.0


class LiveList:
    """The objects of a path, from the first :meth:`read` until :meth:`stop`."""

    def __init__(
        self,
        access: Access,
        path: str,
        changed: threading.Event | None = None,
        on_silence: OnSilence = None,
    ) -> None:
        """Make a list; ``changed`` is set with each change, and a reader of several lists waits for it itself.

        ``on_silence`` is called when the connection of its watch has become silent.
        """
        self._changed = changed or threading.Event()
        self._failure: Exception | None = None
        self._cache = ObjectCache()
        self._is_listed = False
        self.listed_at = 0.0
        """When the last list was requested."""
        self._list_failure: ApiError | None = None
        """Why the last list can't be had; it holds until the next one, as the objects of the watch are old."""
        self._stream = WatchStream(
            access=access,
            path=path,
            cache=self._cache,
            on_change=self._changed.set,
            on_broken=self._changed.set,
            on_silence=on_silence,
            on_failure=self._fail,
        )

    def read(self, api: Api) -> list[Object]:
        """Return the objects as they are now; where they can't be watched, as they were listed a moment ago."""
        if self._failure is not None:
            raise self._failure
        if not self._is_listed or (self.is_broken and time.monotonic() - self.listed_at >= _POLL_INTERVAL_S):
            self._list(api)
        elif self.is_broken and self._list_failure is not None:
            raise self._list_failure
        if not self._is_listed:
            self._is_listed = True
            self._stream.start()
        return self._cache.objects

    @property
    def latest(self) -> list[Object]:
        """The objects as they were last seen; nothing is requested."""
        return self._cache.objects

    def _list(self, api: Api) -> None:
        self.listed_at = time.monotonic()
        try:
            objects, version = api.list_with_version(self._stream.path)
        except ApiError as error:
            self._list_failure = error
            raise
        self._list_failure = None
        # A watch that has come back meanwhile may be ahead of the list, and delivers nothing twice.
        self._cache.replace(objects, version, is_watched=self._is_listed and not self.is_broken)

    @property
    def is_broken(self) -> bool:
        """Whether it is not watched at present, so that a reader has to come back by itself."""
        return self._stream.is_broken

    def list_again(self, api: Api) -> None:
        """List the objects although they are watched; a watch that has not delivered the news is given up."""
        self._cache.replace(*api.list_with_version(self._stream.path), is_watched=True)
        if self._cache.is_behind:
            self._stream.give_up()

    def wait(self, at_most_s: float | None = None) -> None:
        """Wait until something may have changed, or the list has to be read again."""
        self._changed.wait(_POLL_INTERVAL_S if self.is_broken and at_most_s is None else at_most_s)
        self._changed.clear()

    def stop(self) -> None:
        self._stream.stop()
        self._changed.set()
        await_end([self._stream.thread])

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._changed.set()


def wait_for(
    api: Api, path: str, check: Callable[[list[Object]], T], deadline: Deadline, health: HealthMonitor | None = None
) -> T:
    """Wait until ``check`` of the objects of a path returns something true, and return that.

    Once the deadline has passed, the last answer is returned. The objects are watched: while none changes, next to
    nothing is requested. ``check`` is called often all the same, so it may raise to end the wait.
    With ``health``, a cluster that does not answer is waited for, and the last objects are checked meanwhile.
    """
    live = LiveList(api.access, path)
    try:
        objects = live.read(api)
        listed_at = time.monotonic()
        while True:
            is_last = deadline.has_passed
            if is_last or health is None or not health.is_silent:
                try:
                    if is_last or time.monotonic() - listed_at > _RELIST_INTERVAL_S:
                        live.list_again(api)
                        listed_at = time.monotonic()
                    objects = live.read(api)
                except ApiError as error:
                    if is_last or health is None:
                        raise
                    health.bear(error)
            answer = check(objects)
            if answer or is_last:
                return answer
            live.wait(deadline.pause_s(_CHECK_INTERVAL_S))
    finally:
        live.stop()
