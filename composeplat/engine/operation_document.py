"""The document of an operation that changes an environment, made of its events: who runs it, and how far it is.

Owns which events count, the form of each as an entry of :mod:`~composeplat.engine.operation_log`, and what a sequence
of entries adds up to. Entries may be of another version, cut off or made by anyone: one that can't be read is skipped.
Must not know files: the one who writes entries and the one who reads them add them up in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from composeplat.progress import Event, Phase, event_data
from composeplat.system.processes import ProcessId
from composeplat.system.records import mutable

MAX_TEXT_CHARS = 1000
_MAX_NOTES = 200
_MAX_STEPS = 200
_MAX_SECONDS = 1e9
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_KEPT_FIELDS = {
    "service": ("event", "service", "phase", "message", "seconds"),
    "step": ("event", "name", "phase", "seconds"),
    "note": ("event", "message"),
    "warning": ("event", "service", "message"),
}

Entry = Mapping[str, Any]
Row = dict[str, object]


class OperationState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@mutable
class Operation:
    """An operation that runs, or that ran last."""

    operation: str
    user: str
    started: str
    process: ProcessId
    ended: str = ""
    state: OperationState = OperationState.RUNNING
    error: list[str] = field(default_factory=list)
    """The messages of the error that ended it."""
    services: dict[str, Row] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Service -> the message of its failure. It stays where the service was rolled back, and is ready again."""
    steps: dict[str, Row] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_entry(cls, entry: Entry) -> Self | None:
        """Read the first entry; None if it is another one."""
        process = ProcessId.from_data(entry.get("process"))
        if entry.get("event") != "begin" or process is None:
            return None
        return cls(_text(entry.get("operation")), _text(entry.get("user")), _time(entry.get("started")), process)

    @property
    def is_running(self) -> bool:
        return self.state is OperationState.RUNNING

    def add(self, entry: Entry) -> None:
        """Add an entry; after the last one, none counts."""
        if not self.is_running:
            return
        match entry:
            case {"event": "service", "service": str(name), "phase": str(phase)} if name and phase in _PHASES:
                self._add_service(_text(name), phase, entry)
            case {"event": "step", "name": str(name), "phase": str(phase)} if name and phase in _PHASES:
                row = _row(phase, entry)
                _put_last(self.steps, _text(name), {key: row[key] for key in ("phase", "seconds", "updated")})
                _limit(self.steps)
            case {"event": "note", "message": str(message)}:
                self._add_note(message)
            case {"event": "warning", "service": str(name), "message": str(message)}:
                self._add_note(f"{name}: {message}")
            case {"event": "end", "state": str(state)} if state in _END_STATES:
                self.state, self.ended = OperationState(state), _time(entry.get("ended"))
                messages = entry.get("error")
                self.error = [_text(message) for message in messages] if isinstance(messages, list) else []
            case _:
                pass

    def _add_service(self, name: str, phase: str, entry: Entry) -> None:
        self.services[name] = _row(phase, entry)
        if phase == Phase.FAILED:
            self.failures[name] = _text(entry.get("message"))

    def _add_note(self, message: str) -> None:
        self.notes = [*self.notes[1 - _MAX_NOTES :], _text(message)]

    def entries(self) -> Iterator[Entry]:
        """Yield the fewest entries that add up to this operation."""
        yield {
            "event": "begin",
            "operation": self.operation,
            "user": self.user,
            "started": self.started,
            "process": self.process.to_data(),
        }
        for name, message in self.failures.items():
            yield {"event": "service", "service": name, "phase": Phase.FAILED, "message": message}
        for name, row in self.services.items():
            yield {"event": "service", "service": name, **row}
        for name, row in self.steps.items():
            yield {"event": "step", "name": name, **row}
        for note in self.notes:
            yield {"event": "note", "message": note}
        if not self.is_running:
            yield {"event": "end", "state": self.state, "ended": self.ended, "error": self.error}

    def document(self) -> dict[str, object]:
        """Return the operation as JSON data; once it has ended, its last notes are the reasons why it failed."""
        causes = [f"{name}: {message or Phase.FAILED}" for name, message in self.failures.items()]
        return {
            "operation": self.operation,
            "user": self.user,
            "pid": self.process.pid,
            "started": self.started,
            "ended": self.ended,
            "state": self.state.value,
            "services": {name: dict(row) for name, row in self.services.items()},
            "steps": [{"name": name, **row} for name, row in self.steps.items()],
            "notes": self.notes if self.is_running else [*self.notes, *causes, *self.error],
        }


_PHASES = frozenset(phase.value for phase in Phase)
_END_STATES = frozenset(state.value for state in OperationState) - {OperationState.RUNNING}


def entry_of(event: Event) -> Entry | None:
    """Return an event, masked as it comes from the sink, as an entry; None for one that is not about it."""
    data = event_data(event) or {}
    fields = _KEPT_FIELDS.get(str(data.get("event")))
    if fields is None:
        return None
    kept = {name: data[name] for name in fields if name in data}
    return {name: value[:MAX_TEXT_CHARS] if type(value) is str else value for name, value in kept.items()}


def entry_line(entry: Entry) -> bytes:
    return json.dumps(entry, default=str, separators=(",", ":")).encode() + b"\n"


def add_lines(lines: Iterable[bytes], operation: Operation | None = None) -> Operation | None:
    """Add lines to an operation, or return a new one; None if they don't begin with its begin."""
    for entry in filter(None, map(_parse, lines)):
        if operation is None:
            operation = Operation.from_entry(entry)
            if operation is None:
                return None
        else:
            operation.add(entry)
    return operation


def _parse(line: bytes) -> Entry | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _row(phase: str, entry: Entry) -> Row:
    return {
        "phase": str(phase),
        "message": _text(entry.get("message")),
        "seconds": _seconds(entry.get("seconds")),
        "updated": _time(entry.get("updated")),
    }


def _put_last(rows: dict[str, Row], name: str, row: Row) -> None:
    rows.pop(name, None)
    rows[name] = row


def _limit(steps: dict[str, Row]) -> None:
    if len(steps) > _MAX_STEPS:
        del steps[next(iter(steps))]


def _text(value: object) -> str:
    """A text that can be sent: at most ``MAX_TEXT_CHARS``, and no half of a surrogate pair."""
    return value[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return round(float(value), 1) if 0 <= value < _MAX_SECONDS else 0.0


def _time(value: object) -> str:
    """A moment as :func:`time_text` writes it; empty for anything else."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return ""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return ""
    return value
