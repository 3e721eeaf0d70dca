"""What is told while something goes on: one stream of events, whoever listens.

Owns the kinds of events and who hears them.
Must not know how they look: the command line draws them, programs read them as JSON, and where nobody listens, those
that a person should know of are lines on standard error.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One service's standing, as it changes."""

    service: str
    phase: str
    """``pending``, ``building``, ``built``, ``applying``, ``waiting``, ``ready``, ``failed`` or ``unchanged``."""
    words: str = ""
    seconds: float = 0.0

    @property
    def goes_on(self) -> bool:
        return self.phase not in ("ready", "built", "unchanged", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that takes its time, and is no service's."""

    what: str
    phase: str = "started"
    """``started``, ``done`` or ``failed``."""
    seconds: float = 0.0
    usual: float | None = None
    """How long it took the last time."""
    passing: bool = False
    """Told while it goes on, and of no interest once it is done."""

    @property
    def goes_on(self) -> bool:
        return self.phase == "started"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about what was done on the way."""

    text: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What came of it all, in words; programs are told a :class:`Result`."""

    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it all, as data."""

    data: dict[str, object] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that happened by itself, while a service is developed."""

    data: dict[str, object] = field(hash=False)
    text: str
    """Empty where a person need not know of it."""
    is_weighty: bool
    """Said to those as well who want to hear little."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The work is over: nothing that was told of services changes any more."""


Event = Progress | Step | Note | Happened | Conclusion | Result | Settled
Listener = Callable[[Event], None]

_listeners: list[Listener] = []


def tell(event: Event) -> None:
    """Let the listener hear an event."""
    (_listeners[-1] if _listeners else _as_line)(event)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear what is told, instead of whoever listened before."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def note(text: str) -> None:
    tell(Note(text))


def conclude(text: str) -> None:
    tell(Conclusion(text))


@contextmanager
def step(what: str, *, usual: float | None = None, passing: bool = False) -> Iterator[None]:
    """Tell that something begins, and when it is done or has failed."""
    began = time.monotonic()
    tell(Step(what=what, usual=usual, passing=passing))
    phase = "failed"
    try:
        yield
        phase = "done"
    finally:
        tell(Step(what=what, phase=phase, seconds=time.monotonic() - began, usual=usual, passing=passing))


@contextmanager
def work(what: str) -> Iterator[None]:
    """Around what services are told of: once it ends, their table is the last one."""
    try:
        with step(what, passing=True):
            yield
    finally:
        tell(Settled())


def as_data(event: Event) -> dict[str, object] | None:
    """An event for programs; none for what they are not told."""
    match event:
        case Progress():
            return {"event": "service", **asdict(event), "seconds": round(event.seconds, 1)}
        case Step(what=what, phase=phase, seconds=seconds):
            return {"event": "step", "what": what, "phase": phase, "seconds": round(seconds, 1)}
        case Note(text):
            return {"event": "note", "text": text}
        case Happened(data):
            return data
        case Result(data):
            return {"event": "result", **data}
        case _:
            return None


def words_of(event: Step) -> str:
    """A step as a line says it."""
    if event.goes_on:
        return f"{event.what} …" + (f", usually {show_seconds(event.usual)}" if event.usual else "")
    failed = "failed after " if event.phase == "failed" else ""
    return f"{event.what}: {failed}{show_seconds(event.seconds)}"


def show_seconds(seconds: float) -> str:
    if seconds < 10:  # noqa: PLR2004 -- below it, tenths tell something
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


_line_lock = threading.Lock()


def _as_line(event: Event) -> None:
    match event:
        case Note(text) | Conclusion(text) | Happened(text=text):
            words = text
        case Step(passing=False):
            words = words_of(event)
        case _:
            return
    if not words:
        return
    with _line_lock:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
