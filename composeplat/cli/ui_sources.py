"""The sources of topics that every environment has, with a definition or without: status, events, history, logs.

Owns how often each is read, and when it is published. Each document is that of a command's ``--json``, masked like
everything that a command prints. Must not know where the services of an environment are from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Protocol

from composeplat import progress
from composeplat.cli.history import history_document
from composeplat.cli.logs import follow_logs
from composeplat.cli.status import status_document
from composeplat.cli.ui_documents import log_row
from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.events import EnvironmentEvent
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.logs import Follower, LogQuery
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.status import StatusRow
from composeplat.cluster.watching import AGE_KEPT_S
from composeplat.engine.history import read_history
from composeplat.system.records import record
from composeplat.ui.log_batches import Line
from composeplat.ui.topics import NO_PROBLEM, PROBLEM, Publish

_STATUS_INTERVAL_S = 0.25
#: The messages of rows have ages, and some failures count only after a while: both change without any event.
_STATUS_KEPT_S = AGE_KEPT_S / 2
_EVENTS_INTERVAL_S = 1.0
_HISTORY_INTERVAL_S = 30.0
#: A reader of many services pauses this many times as long as it worked.
_PAUSE_PER_WORK = 10
MAX_EVENTS = 500


@record
class Place:
    """An environment, and the cluster that it is in."""

    access: Access
    namespace: str
    environment: str


class Rows(Protocol):
    """The status of the services of an environment, kept current."""

    @property
    def latest(self) -> Snapshot | None: ...

    @property
    def problem(self) -> str: ...

    def read(self) -> list[StatusRow]: ...

    def read_again(self, before: list[StatusRow]) -> list[StatusRow]: ...

    def stop(self) -> None: ...


def follow_status(
    place: Place, reader: Rows, publish: Publish, ended: threading.Event, is_current: Callable[[], bool] = lambda: True
) -> None:
    """Publish the status until it is of another definition."""
    problem = ""
    snapshot: Snapshot | None = None
    read_at = 0.0
    try:
        rows = reader.read()
        while not ended.is_set() and is_current():
            began = time.monotonic()
            if reader.latest is not snapshot or began - read_at > _STATUS_KEPT_S:
                snapshot, read_at = reader.latest, began
                rows = reader.read_again(rows)
                publish("status", progress.masked_data(status_document(place.environment, place.namespace, rows)))
            if reader.problem != problem:
                problem = reader.problem
                publish(PROBLEM, {"message": problem, "hint": ""})
            pause_s = _PAUSE_PER_WORK * (time.monotonic() - began)
            ended.wait(min(max(_STATUS_INTERVAL_S, pause_s), _STATUS_KEPT_S))
    finally:
        reader.stop()
        # The reader of the next definition knows nothing of it.
        if problem:
            publish(PROBLEM, NO_PROBLEM)


def follow_events(
    place: Place,
    to_document: Callable[[Api, list[Object]], Mapping[str, object]],
    publish: Publish,
    ended: threading.Event,
) -> None:
    changed = threading.Event()
    live = LiveList(place.access, kind_path("v1", "Event", place.namespace), changed)
    try:
        with Api(place.access) as api:
            while not ended.is_set():
                changed.clear()
                publish("events", progress.masked_data(to_document(api, live.read(api))))
                ended.wait(_EVENTS_INTERVAL_S)
                while not (ended.is_set() or changed.wait(_EVENTS_INTERVAL_S) or live.is_broken):
                    pass
    finally:
        live.stop()


def latest_events(found: list[EnvironmentEvent]) -> list[EnvironmentEvent]:
    return found[-MAX_EVENTS:]


def follow_history(place: Place, publish: Publish, ended: threading.Event, changed: threading.Event) -> None:
    """Publish the history, again after each change that is known here; those of other machines come later."""
    while not ended.is_set():
        changed.clear()
        with Api(place.access) as api:
            revisions = read_history(api, place.namespace, place.environment)
        publish("history", progress.masked_data(history_document(place.environment, place.namespace, revisions)))
        deadline = time.monotonic() + _HISTORY_INTERVAL_S
        while not (ended.is_set() or changed.wait(_EVENTS_INTERVAL_S) or time.monotonic() > deadline):
            pass


def open_logs(place: Place, names: Container[str], shown: Mapping[str, str], tail: int | None) -> LogLines:
    """Follow the logs of some services, by their names in the cluster; ``shown`` has their names on the page."""
    query = LogQuery(tail=tail)
    return LogLines(follow_logs(place.access, place.namespace, place.environment, names, query, _ignore), shown)


def _ignore(_: str) -> None:
    """Leave out a note about the connection: the status has it too."""


class LogLines:
    """The log lines of some services, as the page shows them."""

    def __init__(self, follower: Follower, names: Mapping[str, str]) -> None:
        self._follower, self._names = follower, names

    def lines(self) -> Iterator[Line]:
        for line in self._follower.lines():
            yield log_row(line, self._names)

    def stop(self) -> None:
        self._follower.stop()
