"""The logs of an environment: of all pods, followed through restarts and broken connections.

Owns when a log is read again, and what a node that does not answer means. Must not know how lines look.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import http.client
import itertools
import math
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.connection import end_connection
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.log_cursor import NEVER, Cursor, LogTime, parse_time, take_all
from composeplat.cluster.log_lines import LogPart, split_lines
from composeplat.cluster.snapshot import (
    Object,
    container_statuses,
    is_init_container,
    is_of_others,
    logged_init_statuses,
    run_service_of,
    service_of_container,
)
from composeplat.diagnostics import ComposeplatError
from composeplat.system.open_files import is_out_of_files, open_file_limit
from composeplat.system.records import record
from composeplat.system.threads import start_thread

_RETRY_AFTER_S = 0.5
#: Until others have ended, whose files are free then.
_RETRY_WITHOUT_FILES_AFTER_S = 5.0
#: For a slow reader; of the longest ones, these are 16 MiB.
_MAX_BUFFERED_LINES = 1000


@record(kw_only=True)
class LogLine:
    service: str
    pod: str
    time: str
    """When it was written, by the kubelet."""
    text: str
    is_one_off: bool = False
    container: str = ""
    """The container, if others added it to the pod, or if it is a hook's."""


@record(kw_only=True)
class LogQuery:
    """Which of the existing lines of each container are requested."""

    since: str = ""
    """A time, in UTC, such as ``2025-06-01T12:00:00Z``."""
    since_seconds: int | None = None
    tail: int | None = None

    @property
    def query(self) -> dict[str, str]:
        query: dict[str, str] = {}
        if self.since:
            query["sinceTime"] = self.since
        if self.since_seconds is not None:
            query["sinceSeconds"] = str(self.since_seconds)
        if self.tail is not None:
            query["tailLines"] = str(self.tail)
        return query


def read_logs(
    api: Api, namespace: str, pods: Iterable[Object], asked: LogQuery, note: Callable[[str], None] = lambda _: None
) -> Iterator[LogLine]:
    """Read the existing lines of all pods, in the order of their times; a note says which can't be read."""
    return _all_lines(api, namespace, pods, asked, {}, note)


def _all_lines(
    api: Api,
    namespace: str,
    pods: Iterable[Object],
    asked: LogQuery,
    cursors: dict[Key, Cursor],
    note: Callable[[str], None],
) -> Iterator[LogLine]:
    """Read the logs of all nodes that answer: one that does not hides the logs of no other.

    The cursors are at the ends of the logs once all lines are taken. Until then a log is one text, as its lines would
    take several times the memory.
    """
    found: list[Iterator[tuple[LogTime, LogLine]]] = []
    failure: ApiError | None = None
    for pod in pods:
        for status in _started(pod):
            container = str(status["name"])
            cursor = cursors.setdefault(_key(pod, container), Cursor())
            try:
                taken = _read(api, namespace, str(pod["metadata"]["name"]), container, asked, cursor)
            except ApiError as error:
                if _is_gone(error):
                    continue
                if not _is_of_node(error):
                    raise
                failure = error
                note(f"the log of {pod['metadata']['name']} can't be read: {error}")
                continue
            found.append(_with_times(pod, container, taken))
    if failure is not None and not found:
        raise failure
    return (line for _, line in heapq.merge(*found, key=lambda entry: entry[0]))


def _with_times(pod: Object, container: str, taken: Iterable[tuple[str, str]]) -> Iterator[tuple[LogTime, LogLine]]:
    return ((parse_time(time) or NEVER, _line(pod, container, time, text)) for time, text in taken)


def _read(
    api: Api, namespace: str, pod: str, container: str, asked: LogQuery, cursor: Cursor
) -> Iterator[tuple[str, str]]:
    """Read the requested lines; the cursor is at the end of the log once they are taken."""
    last = api.text(_path(namespace, pod, container, LogQuery(tail=1).query)) if asked.query else ""
    text = api.text(_path(namespace, pod, container, asked.query)) if asked.tail != 0 else ""
    return take_all(cursor, text, last, asked.since)


Key = tuple[str, str]
"""A pod's UID, and its container's name."""


def _key(pod: Object, container: str) -> Key:
    return str(pod["metadata"]["uid"]), container


def _line(pod: Object, container: str, time: str, text: str) -> LogLine:
    run = run_service_of(pod)
    service, name = run or service_of_container(pod, container), str(pod["metadata"]["name"])
    beside = container if is_init_container(pod, container) or is_of_others(pod, container) else ""
    return LogLine(service=service, pod=name, time=time, text=text, is_one_off=bool(run), container=beside)


def _started(pod: Object) -> list[Object]:
    """Return the status of the containers that have been started once: hooks, what others added, and the services'."""
    statuses = (*logged_init_statuses(pod), *container_statuses(pod))
    return [status for status in statuses if status.get("containerID")]


def _is_gone(error: ApiError) -> bool:
    return error.status in (http.client.BAD_REQUEST, http.client.NOT_FOUND)


def _may_pass(error: ApiError) -> bool:
    return error.status in _TRANSIENT or _is_gone(error)


def _is_of_node(error: ApiError) -> bool:
    """Whether a kubelet may have failed, and not the API server; a dead one is waited for."""
    return error.status in UNAVAILABLE and (error.status != 0 or isinstance(error.__cause__, TimeoutError))


def _path(namespace: str, pod: str, container: str, query: dict[str, str]) -> str:
    query = {"container": container, "timestamps": "true", **query}
    return f"{kind_path('v1', 'Pod', namespace)}/{pod}/log?{urlencode(query)}"


@record
class _Instance:
    """The latest run of a container, and whether it still runs."""

    container_id: str
    is_running: bool


def _instance(status: Object) -> _Instance:
    return _Instance(str(status["containerID"]), "running" in (status.get("state") or {}))


@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows the pods of a list, later ones too; :meth:`lines` yields their lines."""

    access: Access
    namespace: str
    path: str
    """The path of the list, with its query."""
    select: Callable[[Iterable[Object]], list[Object]] = field(default=list)
    """Returns those of the listed pods that are followed, each with the containers that are."""
    asked: LogQuery
    note: Callable[[str], None] = field(default=lambda _: None)
    _queue: queue.Queue[LogLine | BaseException | None] = field(
        default_factory=lambda: queue.Queue(_MAX_BUFFERED_LINES)
    )
    _sockets: dict[Key, socket.socket] = field(default_factory=dict)
    """The connections over which logs are followed."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _instances: dict[Key, _Instance] = field(default_factory=dict)
    _followed: set[Key] = field(default_factory=set)
    _is_unreachable: bool = False
    """Whether a server that does not answer was reported; the next answer ends that."""
    _answered_at: float = -math.inf
    _has_reported_files: bool = False
    _live: LiveList = field(init=False)

    def __post_init__(self) -> None:
        self._live = LiveList(self.access, self.path, on_silence=self._end_connections)

    def lines(self) -> Iterator[LogLine]:
        """Yield the existing lines, sorted by time, then new lines as they come, until it is stopped."""
        cursors: dict[Key, Cursor] = {}
        with Api(self.access) as api:
            pods = self.select(self._live.read(api))
            # A log takes time, and nobody may want the others any more.
            wanted = itertools.takewhile(lambda _: not self._ended.is_set(), pods)
            yield from _all_lines(api, self.namespace, wanted, self.asked, cursors, self.note)
        self._start("logs", lambda: self._watch_pods(pods, cursors))
        while not self._ended.is_set() and (found := self._queue.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def stop(self) -> None:
        """End :meth:`lines`, all threads and all connections."""
        self._ended.set()
        self._live.stop()
        self._end_connections()
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)

    def _end_connections(self) -> None:
        """End those of logs, which continue over new ones until it is stopped.

        A log that is silent for hours costs nothing; its connection is known by that of the watch.
        """
        for sock in list(self._sockets.values()):
            end_connection(sock)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        start_thread(name, work, self._put)

    def _put(self, found: LogLine | BaseException) -> None:
        """Wait until the reader has taken enough, or will take no more."""
        while not self._ended.is_set():
            try:
                self._queue.put(found, timeout=_RETRY_AFTER_S)
            except queue.Full:
                continue
            return

    def _opened(self, key: Key, sock: socket.socket) -> None:
        self._sockets[key] = sock
        self._note_answer()
        if self._ended.is_set():
            end_connection(sock)

    def _watch_pods(self, pods: list[Object], cursors: dict[Key, Cursor]) -> None:
        """Record the runs of containers, and follow new ones."""
        with Api(self.access) as api:
            while not self._ended.is_set():
                self._instances = {
                    _key(pod, str(container["name"])): _instance(container)
                    for pod in pods
                    for container in _started(pod)
                }
                for pod in pods:
                    self._begin(pod, cursors)
                self._live.wait()
                try:
                    pods = self.select(self._live.read(api))
                    self._note_answer()
                except ApiError as error:
                    if error.status not in _TRANSIENT:
                        raise
                    self._report(error, self._live.listed_at)

    def _note_answer(self) -> None:
        self._is_unreachable, self._answered_at = False, time.monotonic()

    def _report(self, error: ApiError, began: float) -> None:
        """Note once that the server does not answer, whichever thread sees it first.

        It may have answered another request since the one that failed began.
        """
        if not self._is_unreachable and self._answered_at < began:
            self._is_unreachable = True
            self.note(f"{error}; trying again")

    def _report_open_files(self) -> None:
        """Note once that not all containers can be followed, as each needs a connection."""
        if not self._has_reported_files:
            self._has_reported_files = True
            self.note(
                f"not all logs can be followed: this process may have {open_file_limit()} files open; "
                "name some services, or raise the limit with ulimit -n"
            )

    def _begin(self, pod: Object, cursors: dict[Key, Cursor]) -> None:
        for container in _started(pod):
            key = _key(pod, str(container["name"]))
            if key not in self._followed:
                self._followed.add(key)
                follow = functools.partial(self._follow, pod, key, cursors.setdefault(key, Cursor()))
                self._start(f"logs-{pod['metadata']['name']}", follow)

    def _follow(self, pod: Object, key: Key, cursor: Cursor) -> None:
        has_reported = False
        with Api(self.access) as api:
            while not self._ended.is_set() and key in self._instances:
                before, began = self._instances.get(key), time.monotonic()
                try:
                    self._follow_once(api, pod, key[1], cursor)
                    has_reported = False
                except ComposeplatError as error:
                    if is_out_of_files(error.__cause__):
                        self._report_open_files()
                        self._ended.wait(_RETRY_WITHOUT_FILES_AFTER_S)
                        continue
                    if not isinstance(error, ApiError) or not _may_pass(error):
                        raise
                    # Other failures of the server are reported by the thread that lists pods; a pod may be ending.
                    if isinstance(error.__cause__, TimeoutError):
                        self._report(error, began)
                    elif not has_reported and error.status and not _is_gone(error):
                        self.note(f"the log of {pod['metadata']['name']} can't be read: {error}; trying again")
                        has_reported = True
                    self._ended.wait(_RETRY_AFTER_S)
                    continue
                self._ended.wait(_RETRY_AFTER_S)
                # The log of a run that had ended before is read completely; nothing comes until the next run.
                while (
                    before and not before.is_running and self._instances.get(key) == before and not self._ended.is_set()
                ):
                    self._ended.wait(_RETRY_AFTER_S)
        self._followed.discard(key)

    def _follow_once(self, api: Api, pod: Object, container: str, cursor: Cursor) -> None:
        """Read until a container ends; unread lines of its previous run come first."""
        self._take_previous(api, pod, container, cursor)
        since = LogQuery(since=cursor.since).query
        path = _path(self.namespace, str(pod["metadata"]["name"]), container, {"follow": "true", **since})
        key = _key(pod, container)
        with contextlib.closing(api.lines(path, functools.partial(self._opened, key))) as lines:
            for number, part in enumerate(lines):
                if number == 0:
                    # Between the two requests there may have been another run.
                    self._take_previous(api, pod, container, cursor)
                    cursor.begin()
                self._take(pod, container, cursor, part)

    def _take_previous(self, api: Api, pod: Object, container: str, cursor: Cursor) -> None:
        if not cursor.since:
            return
        query = {"previous": "true", "sinceTime": cursor.since}
        try:
            text = api.text(_path(self.namespace, str(pod["metadata"]["name"]), container, query))
        except ApiError as error:
            if not _is_gone(error):
                raise
            return
        finally:
            # Each log that is followed has one connection, not two.
            api.close()
        cursor.begin()
        for part in split_lines(text):
            self._take(pod, container, cursor, part)

    def _take(self, pod: Object, container: str, cursor: Cursor, part: LogPart) -> None:
        taken = cursor.take(part)
        if taken is not None:
            self._put(_line(pod, container, *taken))


#: Statuses of a server that is missing, starting or busy, or has no answer of a kubelet.
UNAVAILABLE = (
    0,
    http.client.TOO_MANY_REQUESTS,
    http.client.INTERNAL_SERVER_ERROR,
    http.client.BAD_GATEWAY,
    http.client.SERVICE_UNAVAILABLE,
    http.client.GATEWAY_TIMEOUT,
)
_TRANSIENT = (*UNAVAILABLE, http.client.UNAUTHORIZED, http.client.FORBIDDEN)
