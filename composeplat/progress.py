"""One stream of progress events, and the sink that they all go through.

Owns the kinds of events, the confidential values of a run and the place where these are masked: :func:`emit` masks an
event before any handler gets it, so that no renderer, log or program can show what another one masks.
Must not know how events look: the command line draws them, programs read them as JSON, and without a handler the
important ones are lines on standard error.
It is below all rooms that do slow work, since each of them emits events.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields, replace
from enum import Enum, StrEnum
from typing import Any

from composeplat.diagnostics import printable
from composeplat.system.records import record

MASK = "[secret]"
_TENTHS_BELOW_S = 10
_TRANSFER_INTERVAL_S = 1.0
_UNITS = ("KiB", "MiB", "GiB", "TiB")
_KIB = 1024


class Phase(StrEnum):
    """The phases of a service during a deployment, and of a step."""

    PENDING = "pending"
    BUILDING = "building"
    BUILT = "built"
    APPLYING = "applying"
    WAITING = "waiting"
    READY = "ready"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    STARTED = "started"
    DONE = "done"

    @property
    def is_final(self) -> bool:
        return self in _FINAL_PHASES


_FINAL_PHASES = (Phase.BUILT, Phase.READY, Phase.UNCHANGED, Phase.FAILED, Phase.DONE)


@record(kw_only=True)
class ServiceProgress:
    """The phase of one service, emitted when it changes."""

    service: str
    phase: Phase
    message: str = ""
    seconds: float = 0.0

    @property
    def is_running(self) -> bool:
        return not self.phase.is_final


@record(kw_only=True)
class Step:
    """A slow piece of work that belongs to no service: its start, and its end."""

    name: str
    phase: Phase = Phase.STARTED
    """``started``, ``done`` or ``failed``."""
    seconds: float = 0.0
    usual_seconds: float | None = None
    """The duration of the previous time."""
    is_transient: bool = False
    """Shown only while it runs."""

    @property
    def is_running(self) -> bool:
        return not self.phase.is_final


@record(kw_only=True)
class Transfer:
    """How far a download has come, about once a second; its start and its end are those of the step of that name."""

    name: str
    done_bytes: int
    total_bytes: int | None = None
    """None if the server has not said it."""


@record
class Note:
    """A sentence about work that was done on the way."""

    message: str


@record
class Conclusion:
    """The outcome of a command in a sentence; programs get a :class:`Result`."""

    message: str


@record
class Result:
    """The outcome of a command as data."""

    data: dict[str, object]


@record
class SessionEvent:
    """An event of a development session, of a publication or of a failed try."""

    data: dict[str, object]
    message: str
    """Empty if only programs need to know."""
    is_important: bool
    """Shown with ``--progress quiet`` too."""
    is_in_session: bool = True
    """Nothing is waited for after it: a program runs, or files are watched."""


@record
class Finished:
    """The end of the work: the phases of services don't change any more."""


Event = ServiceProgress | Step | Transfer | Note | SessionEvent | Conclusion | Result | Finished
Handler = Callable[[Event], None]

# masking --------------------------------------------------------------------------------------------------------------


class Mask:
    """Replaces confidential values in texts and in data."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values = frozenset(values)
        forms = {form for value in self.values for form in _forms(value)}
        # A value may be a part of another one, and of the mask itself: the longer one is replaced first, each once.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, (MASK, *self._forms))))

    def text(self, text: str) -> str:
        if not any(form in text for form in self._forms):
            return text
        return self._pattern.sub(MASK, text)

    def data(self, value: Any) -> Any:
        """Mask each text within JSON data; words of this project and addresses stay."""
        match value:
            case Enum():
                return value
            case str():
                return self.text(value)
            case dict():
                return {key: item if key in _PUBLIC_KEYS else self.data(item) for key, item in value.items()}
            case list() | tuple():
                return [self.data(item) for item in value]
            case _:
                return value


#: Their values are words of this project, and addresses: these are public, and of use only as they are.
_PUBLIC_KEYS = ("event", "schema", "url", "urls")


def _forms(value: str) -> Iterator[str]:
    """The texts that a value turns into: as it is, in a message and in JSON."""
    if value:
        yield from (value, printable(value), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])


# the sink -------------------------------------------------------------------------------------------------------------


class Sink:
    """The sink of all events: it masks them, and passes them to the innermost handler."""

    def __init__(self) -> None:
        self.handlers: list[Handler] = []
        self.observers: list[Handler] = []
        self.mask = Mask()
        self.log_mask = Mask()
        """Hides more: a log is passed on to others, and must not hold what may be confidential."""
        self.values_are_known = False
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        masked = _masked(event, self.mask)
        for observe in self.observers:
            observe(masked)
        handle = self.handlers[-1] if self.handlers else _write_line
        handle(masked)

    def hide(self, values: Iterable[str], log_values: Iterable[str]) -> None:
        with self._lock:
            self.mask = Mask(self.mask.values | frozenset(values))
            self.log_mask = Mask(self.mask.values | self.log_mask.values | frozenset(log_values))
            self.values_are_known = True

    def forget_values(self) -> None:
        self.mask, self.log_mask, self.values_are_known = Mask(), Mask(), False


def _masked(event: Event, mask: Mask) -> Event:
    if not mask.values:
        return event
    return replace(event, **{slot.name: mask.data(getattr(event, slot.name)) for slot in fields(event)})


_sink = Sink()


def emit(event: Event) -> None:
    """Mask an event and give it to the current handler."""
    _sink.emit(event)


def hide(values: Iterable[str], *, log_values: Iterable[str] = ()) -> None:
    """Mask these values from now on, in events and in every text that the command line writes; some in logs alone."""
    _sink.hide(values, log_values)


def values_are_known() -> bool:
    """Return whether the confidential values of the run have been named."""
    return _sink.values_are_known


def masked_text(text: str, *, for_log: bool = False) -> str:
    return (_sink.log_mask if for_log else _sink.mask).text(text)


def masked_data(value: Any) -> Any:
    return _sink.mask.data(value)


@contextmanager
def use_handler(handler: Handler) -> Iterator[None]:
    """Send events to a handler, instead of the previous handler."""
    _sink.handlers.append(handler)
    try:
        yield
    finally:
        _sink.handlers.remove(handler)


@contextmanager
def forget_values() -> Iterator[None]:
    """Forget at the end which values are hidden: a process may run several commands."""
    try:
        yield
    finally:
        _sink.forget_values()


@contextmanager
def use_observer(observer: Handler) -> Iterator[None]:
    """Send events to an observer too, besides the handler."""
    _sink.observers.append(observer)
    try:
        yield
    finally:
        _sink.observers.remove(observer)


# emitting -------------------------------------------------------------------------------------------------------------


def note(message: str) -> None:
    emit(Note(message))


def conclude(message: str) -> None:
    emit(Conclusion(message))


@contextmanager
def step(name: str, *, usual_seconds: float | None = None, is_transient: bool = False) -> Iterator[None]:
    """Emit the start of a piece of work, and its end."""
    started = Step(name=name, usual_seconds=usual_seconds, is_transient=is_transient)
    start_time = time.monotonic()
    emit(started)
    phase = Phase.FAILED
    try:
        yield
        phase = Phase.DONE
    finally:
        emit(replace(started, phase=phase, seconds=time.monotonic() - start_time))


@contextmanager
def transfer(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Run a download as a step that begins with the first call of what it yields, and has the size in its name."""
    with ExitStack() as stack:
        steps: list[str] = []
        shown_at = 0.0

        def show(done_bytes: int, total_bytes: int | None) -> None:
            nonlocal shown_at
            if not steps:
                steps.append(f"{name}, {format_bytes(total_bytes)}" if total_bytes else name)
                stack.enter_context(step(steps[0]))
                shown_at = time.monotonic()
            elif time.monotonic() - shown_at > _TRANSFER_INTERVAL_S:
                shown_at = time.monotonic()
                emit(Transfer(name=steps[0], done_bytes=done_bytes, total_bytes=total_bytes))

        yield show


@contextmanager
def work(name: str) -> Iterator[None]:
    """Run the main work of a command: its end is the end of all phases."""
    try:
        with step(name, is_transient=True):
            yield
    finally:
        emit(Finished())


# forms ----------------------------------------------------------------------------------------------------------------


def event_data(event: Event) -> dict[str, object] | None:
    """Return an event as JSON data; none for events that are for people."""
    match event:
        case ServiceProgress():
            return {"event": "service", **asdict(event), "seconds": round(event.seconds, 1)}
        case Step(name=name, phase=phase, seconds=seconds):
            return {"event": "step", "name": name, "phase": phase, "seconds": round(seconds, 1)}
        case Transfer(name=name, done_bytes=done, total_bytes=total):
            return {"event": "download", "name": name, "bytes": done, "total_bytes": total}
        case Note(message):
            return {"event": "note", "message": message}
        case SessionEvent(data):
            return data
        case Result(data):
            return {"event": "result", **data}
        case _:
            return None


def event_message(event: Event) -> str:
    """Return an event as a line for people, without controls for a terminal; empty for events that have none.

    The message of a session event is made for a terminal already, and may have colors.
    """
    match event:
        case Note(message) | Conclusion(message):
            return printable(message)
        case SessionEvent(message=message):
            return message
        case Step():
            return _step_message(event)
        case Transfer(name=name, done_bytes=done, total_bytes=total):
            return f"{name}: {format_bytes(done)}" + (f", {100 * done // total} %" if total else "")
        case _:
            return ""


def _step_message(step: Step) -> str:
    if step.is_running:
        return f"{step.name} …" + (f", usually {format_seconds(step.usual_seconds)}" if step.usual_seconds else "")
    failed = "failed after " if step.phase is Phase.FAILED else ""
    return f"{step.name}: {failed}{format_seconds(step.seconds)}"


def format_bytes(size: int) -> str:
    """Format a size with the largest unit that it is at least one of: ``1.5 GiB``."""
    power = min(len(_UNITS), max(1, (size.bit_length() - 1) // 10))
    return f"{size / _KIB**power:.1f} {_UNITS[power - 1]}"


def format_seconds(seconds: float) -> str:
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


_line_lock = threading.Lock()


def _write_line(event: Event) -> None:
    if isinstance(event, Transfer) or (isinstance(event, Step) and event.is_transient):
        return
    message = event_message(event)
    if message:
        with _line_lock:
            sys.stderr.write(f"{message}\n")
            sys.stderr.flush()
