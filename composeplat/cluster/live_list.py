"""One list of objects for one reader, kept current by a watch.

Owns when it is listed again: only while its watch can't be followed.
Must not interpret the objects. For an environment with all its kinds there is
:class:`~composeplat.cluster.watching.Watcher`.
"""

from __future__ import annotations

import threading

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.object_cache import ObjectCache
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watch_stream import WatchStream

_POLL_INTERVAL_S = 0.5


class LiveList:
    """The objects of a path, from the first :meth:`read` until :meth:`stop`."""

    def __init__(self, access: Access, path: str, changed: threading.Event | None = None) -> None:
        """Make a list; ``changed`` is set with each change, and a reader of several lists waits for it itself."""
        self._changed = changed or threading.Event()
        self._failure: Exception | None = None
        self._cache = ObjectCache()
        self._is_listed = False
        self._stream = WatchStream(
            access=access,
            path=path,
            cache=self._cache,
            on_change=self._changed.set,
            on_broken=self._changed.set,
            on_failure=self._fail,
        )

    def read(self, api: Api) -> list[Object]:
        """Return the objects as they are now; lists them if no watch has."""
        if self._failure is not None:
            raise self._failure
        if not self._is_listed or self.is_broken:
            self._cache.replace(*api.list_with_version(self._stream.path))
        if not self._is_listed:
            self._is_listed = True
            self._stream.start()
        return self._cache.objects

    @property
    def is_broken(self) -> bool:
        """Whether it is not watched at present, so that a reader has to come back by itself."""
        return self._stream.is_broken

    def wait(self) -> None:
        """Wait until something may have changed, or the list has to be read again."""
        self._changed.wait(_POLL_INTERVAL_S if self.is_broken else None)
        self._changed.clear()

    def stop(self) -> None:
        self._stream.stop()
        self._changed.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._changed.set()
