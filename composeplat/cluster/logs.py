"""The logs of an environment: all pods, followed through restarts and broken connections.

Owns which lines are new: a server can be asked for lines since a second only, so that some come twice.
Must not know how lines look.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

from composeplat.cluster.api import Access, Api, ApiError, kind_path
from composeplat.cluster.conditions import Object

_LOOKED_EVERY = 1.0
_AGAIN_AFTER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    service: str
    pod: str
    moment: str
    """When it was written, as the kubelet noted it."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which lines are wanted of each container."""

    since_seconds: int | None = None
    tail: int | None = None
    previous: bool = False


@dataclass(slots=True)
class Cursor:
    """How far one container's log has been read; the same lines that come again are left out."""

    moment: str = ""
    same: int = 0
    """How many lines were read that were written at that very moment."""
    _again: int = 0

    def begin(self) -> None:
        """A connection is opened anew: it may begin with lines that are known."""
        self._again = self.same

    def take(self, line: str) -> tuple[str, str] | None:
        """The moment and the text of a line; nothing where it was there before."""
        moment, _, text = line.partition(" ")
        key = _sortable(moment)
        known = _sortable(self.moment) if self.moment else ""
        if key < known:
            return None
        if key == known:
            if self._again:
                self._again -= 1
                return None
            self.same += 1
        else:
            self.moment, self.same, self._again = moment, 1, 0
        return moment, text


def _sortable(moment: str) -> str:
    """A moment whose parts of a second have all nine digits: the kubelet leaves trailing zeros out."""
    seconds, _, rest = moment.removesuffix("Z").partition(".")
    return f"{seconds}.{rest:0<9}"


def read_logs(api: Api, namespace: str, pods: Iterable[Object], asked: Asked) -> list[Line]:
    """The lines that there are, of all pods, in the order of time."""
    lines: list[Line] = []
    for pod in pods:
        service, name = service_of(pod), str(pod["metadata"]["name"])
        for container in _started(pod):
            try:
                text = api.text(_path(namespace, name, container, asked))
            except ApiError as error:
                if error.status in (http.client.BAD_REQUEST, http.client.NOT_FOUND):
                    continue
                raise
            for line in text.splitlines():
                moment, _, rest = line.partition(" ")
                lines.append(Line(service=service, pod=name, moment=moment, text=rest))
    return sorted(lines, key=lambda line: _sortable(line.moment))


def service_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app.kubernetes.io/name", ""))


def _started(pod: Object) -> list[str]:
    """The container of the service, where it has been started once."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return [str(one["name"]) for one in statuses if one.get("containerID")]


def _path(namespace: str, pod: str, container: str, asked: Asked, *, follow: bool = False, since: str = "") -> str:
    query: dict[str, str] = {"container": container, "timestamps": "true"}
    if follow:
        query["follow"] = "true"
    if asked.previous:
        query["previous"] = "true"
    if since:
        query["sinceTime"] = f"{since.partition('.')[0].removesuffix('Z')}Z"
    elif asked.since_seconds is not None:
        query["sinceSeconds"] = str(asked.since_seconds)
    if asked.tail is not None and not since:
        query["tailLines"] = str(asked.tail)
    return f"{kind_path('v1', 'Pod', namespace)}/{pod}/log?{urlencode(query)}"


@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows all pods that :attr:`pods` gives, those that come later too; lines come out of :meth:`lines`."""

    access: Access
    namespace: str
    pods: Callable[[Api], list[Object]]
    asked: Asked
    note: Callable[[str], None] = field(default=lambda _: None)
    _queue: queue.SimpleQueue[Line | ApiError] = field(default_factory=queue.SimpleQueue)
    _ended: threading.Event = field(default_factory=threading.Event)
    _followed: set[tuple[str, str]] = field(default_factory=set)

    def lines(self) -> Iterator[Line]:
        """Lines as they come, without end."""
        threading.Thread(target=self._look, daemon=True).start()
        while True:
            found = self._queue.get()
            if isinstance(found, ApiError):
                raise found
            yield found

    def stop(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        """Find containers that are not followed yet; those of the first round may be asked for old lines."""
        first, silent = True, False
        with Api(self.access) as api:
            while not self._ended.is_set():
                try:
                    pods = self.pods(api)
                except ApiError as error:
                    if first:
                        self._queue.put(error)
                        return
                    if not silent:
                        self.note(f"{error}; trying again")
                    silent = True
                    self._ended.wait(_LOOKED_EVERY)
                    continue
                silent = False
                for pod in pods:
                    self._begin(pod, first=first)
                first = False
                self._ended.wait(_LOOKED_EVERY)

    def _begin(self, pod: Object, *, first: bool) -> None:
        for container in _started(pod):
            key = (str(pod["metadata"]["uid"]), container)
            if key not in self._followed:
                self._followed.add(key)
                asked = self.asked if first else Asked()
                threading.Thread(target=self._follow, args=(pod, container, asked), daemon=True).start()

    def _follow(self, pod: Object, container: str, asked: Asked) -> None:
        cursor = Cursor()
        name, broken = str(pod["metadata"]["name"]), False

        def take(lines: Iterable[str]) -> None:
            for line in lines:
                taken = cursor.take(line)
                if taken is not None:
                    self._queue.put(Line(service=service_of(pod), pod=name, moment=taken[0], text=taken[1]))

        with Api(self.access) as api:
            while not self._ended.is_set():
                if broken and cursor.moment:
                    # The container may have ended meanwhile, with words that nobody has heard.
                    with contextlib.suppress(ApiError):
                        cursor.begin()
                        before = Asked(previous=True)
                        take(api.lines(_path(self.namespace, name, container, before, since=cursor.moment)))
                cursor.begin()
                try:
                    take(api.lines(_path(self.namespace, name, container, asked, follow=True, since=cursor.moment)))
                    broken = False
                except ApiError as error:
                    if error.status == http.client.NOT_FOUND:
                        return
                    broken = True
                self._ended.wait(_AGAIN_AFTER)
