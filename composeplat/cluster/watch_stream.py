"""Follow the watch of one kind in a thread, from the version of its cache on.

Owns the connection: it is opened again when the server ends it, and after failures with pauses; a version that the
server does not have any more is followed by a list.
Must not interpret an object: :class:`~composeplat.cluster.object_cache.ObjectCache` takes the events.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.connection import OnSilence, end_connection
from composeplat.cluster.object_cache import Expired, ObjectCache, WatchUnusable
from composeplat.system.threads import start_thread

#: The server ends a watch after this time, and it is continued.
_WATCH_S = 300
_RETRY_INTERVAL_S = 1.0
#: A watch that ends sooner is not opened again at once.
_MIN_WATCH_S = 0.5
#: Who may list a kind need not be allowed to watch it, and a proxy may not know the query.
_REFUSALS = (
    http.client.BAD_REQUEST,
    http.client.FORBIDDEN,
    http.client.NOT_FOUND,
    http.client.METHOD_NOT_ALLOWED,
    http.client.NOT_ACCEPTABLE,
)


@dataclass(slots=True, kw_only=True)
class WatchStream:
    """The watch of one kind, from :meth:`start` until :meth:`stop`."""

    access: Access
    path: str
    """The path of the list, with its query."""
    cache: ObjectCache
    on_broken: Callable[[], None]
    """Called when the watch can't be followed any more, for now or for ever."""
    on_change: Callable[[], None] = lambda: None
    """Called after each event."""
    on_silence: OnSilence = None
    """Called when its connection has become silent, before it continues over a new one."""
    on_failure: Callable[[Exception], None]
    """Called with what ended the thread, and is no failure of the connection."""
    is_broken: bool = False
    """Whether the watch can't be followed at present: somebody else has to list its objects."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _socket: socket.socket | None = None
    thread: threading.Thread | None = None
    """None before the start."""

    def start(self) -> None:
        self.thread = start_thread("watch", self._run, self.on_failure)

    def stop(self) -> None:
        self._ended.set()
        if self._socket is not None:
            end_connection(self._socket)

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.is_set():
                began, before = time.monotonic(), self.cache.version
                try:
                    self._follow(api)
                    if time.monotonic() - began < _MIN_WATCH_S and self.cache.version == before:
                        self._pause()
                except Expired:
                    self._list(api)
                    if time.monotonic() - began < _MIN_WATCH_S:
                        self._pause()
                except WatchUnusable:
                    self.give_up()
                except ApiError as error:
                    self._note(api, error)

    def _follow(self, api: Api) -> None:
        """Take the events until the server ends the watch."""
        version = self.cache.begin_watch()
        for event in api.watch(self.path, version, seconds=_WATCH_S, on_open=self._opened, on_silence=self.on_silence):
            self.cache.take(event)
            self.on_change()
            if self._ended.is_set():
                return

    def _opened(self, sock: socket.socket) -> None:
        self._socket = sock
        if self._ended.is_set():
            self.stop()
        else:
            self.is_broken = False

    def _list(self, api: Api) -> None:
        try:
            self.cache.replace(*api.list_with_version(self.path))
            self.on_change()
        except ApiError as error:
            self._note(api, error)

    def _note(self, api: Api, error: ApiError) -> None:
        """Note a failure, and pause before the next attempt."""
        api.close()
        if self._ended.is_set():
            return
        if error.status == http.client.GONE:
            self._list(api)
        elif error.status in _REFUSALS:
            self.give_up()
        else:
            self._pause()

    def _pause(self) -> None:
        self._report()
        self._ended.wait(_RETRY_INTERVAL_S)

    def give_up(self) -> None:
        """Follow the watch no more: the cluster does not let it be used, or does not deliver its events."""
        self.stop()
        self._report()

    def _report(self) -> None:
        self.is_broken = True
        self.on_broken()
