"""Progress on standard error: a live table, lines, JSON lines, or nothing.

Owns standard error while a command runs: one renderer handles the events of :mod:`composeplat.progress`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import field
from itertools import accumulate
from typing import Protocol, Self
from unicodedata import east_asian_width

from composeplat import progress
from composeplat.cli.console import drawn_below, is_raw, is_unicode, wants_color, write_json_lines, write_message
from composeplat.cli.options import ProgressMode
from composeplat.diagnostics import printable
from composeplat.progress import Conclusion, Event, Finished, Note, Phase, ServiceProgress, SessionEvent, Step, Transfer
from composeplat.system.records import mutable

_REDRAW_INTERVAL_S = 0.1
_STILL_INTERVAL_S = 15.0
_TRANSFER_INTERVAL_S = 10.0
#: A transient step that takes less has no line.
_MIN_STEP_S = 2.0
_MARKS = {"ready": "✓", "built": "✓", "unchanged": "✓", "done": "✓", "failed": "✗", "pending": "·"}
_PLAIN_MARKS = {"ready": "+", "built": "+", "unchanged": "+", "done": "+", "failed": "!", "pending": "."}
_COLORS = {
    "ready": "32",
    "built": "32",
    "unchanged": "32",
    "done": "32",
    "failed": "31",
    "waiting": "33",
    "started": "36",
    "applying": "36",
    "building": "36",
}
#: Columns of a terminal that has room for a step's name and how long it took the last time.
_ROOM_FOR_USUAL = 40
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Renderer(Protocol):
    def handle(self, event: Event) -> None: ...

    def tick(self) -> None:
        """Called about ten times a second."""

    def end(self) -> None: ...

    def erase(self) -> None:
        """Erase what is drawn below the messages, until the next tick."""


class Screen:
    """Handles the events while it is open, with the renderer of a mode."""

    def __init__(self, mode: ProgressMode = ProgressMode.AUTO) -> None:
        self._renderer = make_renderer(mode)
        self._lock = threading.RLock()
        """Also of the thread that writes a message, for which the table is erased."""
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        self._ticker.start()
        self._listening.enter_context(progress.use_handler(self._handle))
        self._listening.enter_context(drawn_below(self._erase))
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self._ended.set()
        self._ticker.join()
        with self._lock:
            self._renderer.end()

    def _handle(self, event: Event) -> None:
        with self._lock:
            self._renderer.handle(event)

    def _erase(self) -> None:
        """Erase the table until it is drawn again, below a message that is no event."""
        with self._lock:
            self._renderer.erase()

    def _tick(self) -> None:
        while not self._ended.wait(_REDRAW_INTERVAL_S):
            with self._lock:
                self._renderer.tick()


def make_renderer(mode: ProgressMode) -> Renderer:
    match mode:
        case ProgressMode.JSON:
            return JsonLines()
        case ProgressMode.QUIET:
            return Quiet()
        case ProgressMode.PLAIN:
            return Lines()
        case ProgressMode.TTY:
            return Table()
        case _:
            return Table() if _can_move(sys.stderr.isatty()) else Lines()


def _can_move(is_terminal: bool) -> bool:
    """Check that the cursor can move: a CI job's terminal is a log."""
    return is_terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


class Quiet:
    """Prints only the result, and important events of a session."""

    def handle(self, event: Event) -> None:
        match event:
            case Conclusion() | SessionEvent(is_important=True) if message := progress.event_message(event):
                write_message(f"{message}\n")
            case _:
                pass

    def tick(self) -> None: ...

    def end(self) -> None: ...

    def erase(self) -> None: ...


class JsonLines:
    """Prints one JSON object a line, for programs."""

    def handle(self, event: Event) -> None:
        data = progress.event_data(event)
        if data is not None:
            write_json_lines([data])

    def tick(self) -> None: ...

    def end(self) -> None: ...

    def erase(self) -> None: ...


@mutable
class Lines:
    """Prints a line for each change, and one every 15 seconds while nothing changes, except during a session."""

    _latest: dict[str, ServiceProgress] = field(default_factory=dict)
    _steps: dict[str, tuple[Step, float]] = field(default_factory=dict)
    """The running steps and their start times."""
    _shown_steps: set[str] = field(default_factory=set)
    _is_session: bool = False
    """Nothing is waited for: a program runs, or files are watched."""
    _last_line_at: float = field(default_factory=time.monotonic)
    _started: float = field(default_factory=time.monotonic)

    def handle(self, event: Event) -> None:
        self._is_session = _is_in_session(event, self._is_session)
        match event:
            case ServiceProgress():
                self._latest[event.service] = event
                self._write_line(_service_line(event))
            case Step():
                self._handle_step(event)
            case Transfer():
                if time.monotonic() - self._last_line_at > _TRANSFER_INTERVAL_S:
                    self._write_line(progress.event_message(event))
            case Note() | Conclusion() | SessionEvent() if message := progress.event_message(event):
                self._write_line(message)
            case Finished():
                self._latest.clear()
            case _:
                pass

    def _handle_step(self, step: Step) -> None:
        if step.is_running:
            self._steps[step.name] = (step, time.monotonic())
        else:
            self._steps.pop(step.name, None)
        if not step.is_transient:
            self._write_line(progress.event_message(step))

    def _write_line(self, text: str) -> None:
        self._last_line_at = time.monotonic()
        write_message(f"{text}\n")

    def tick(self) -> None:
        now = time.monotonic()
        for step, since in self._steps.values():
            if step.is_transient and step.name not in self._shown_steps and now - since > _MIN_STEP_S:
                self._shown_steps.add(step.name)
                self._write_line(progress.event_message(step))
        if now - self._last_line_at > _STILL_INTERVAL_S and not self._is_session:
            self._write_line(self._still(now))

    def _still(self, now: float) -> str:
        running = [service for service in self._latest.values() if service.is_running]
        services = [f"{service.service} ({_message(service) or service.phase})" for service in running]
        work = [*self._steps, *([f"waiting for {', '.join(services)}"] if services else [])]
        since = self._started if services else min((since for _, since in self._steps.values()), default=self._started)
        return f"still {', '.join(work) or 'running'}, {now - since:.0f} s"

    def end(self) -> None: ...

    def erase(self) -> None: ...


def _is_in_session(event: Event, before: bool) -> bool:
    match event:
        case SessionEvent(is_in_session=is_in_session):
            return is_in_session
        case ServiceProgress() | Step():
            return False
        case _:
            return before


def _service_line(event: ServiceProgress) -> str:
    """Format a line; the message of a service that waits or is ready needs no phase."""
    message = _message(event)
    if message and event.phase in (Phase.WAITING, Phase.READY):
        return f"{event.service}: {message}"
    return f"{event.service}: {event.phase}" + (f": {message}" if message else "")


def _message(event: ServiceProgress) -> str:
    """Return the message on one line: it may have what a health check or the cluster wrote, with controls in it."""
    return printable(event.message).replace("\n", " ")


@mutable
class Table:
    """Draws a line for each service and for each running step, and redraws them in place."""

    _latest: dict[str, ServiceProgress] = field(default_factory=dict)
    _begun: dict[str, float] = field(default_factory=dict)
    """When each row's present phase began."""
    _steps: dict[str, Step] = field(default_factory=dict)
    _transfers: dict[str, Transfer] = field(default_factory=dict)
    """How far the downloads among the steps have come."""
    _drawn: int = 0

    def handle(self, event: Event) -> None:
        match event:
            case ServiceProgress():
                self._latest[event.service] = event
                self._begun[event.service] = time.monotonic() - event.seconds
            case Step():
                self._handle_step(event)
            case Transfer():
                self._transfers[event.name] = event
            case Note() | Conclusion() | SessionEvent() if message := progress.event_message(event):
                self._write_line(message)
            case Finished():
                self._draw(final=True)
                self._latest.clear()
            case _:
                pass

    def _handle_step(self, step: Step) -> None:
        if step.is_running:
            self._steps[step.name] = step
            self._begun[step.name] = time.monotonic()
            return
        self._steps.pop(step.name, None)
        self._transfers.pop(step.name, None)
        if step.is_transient:
            # What follows may not be an event, such as a question: with the row it would be erased too.
            self.tick()
        else:
            columns, _ = _size()
            self._write(_row(step.phase, progress.event_message(step), "", columns) + "\n")

    def _write_line(self, text: str) -> None:
        self._write(f"{text}\n")

    def tick(self) -> None:
        # While a program of the user has the terminal, nothing is drawn on its screen.
        if not is_raw():
            self._draw()

    def end(self) -> None:
        self._draw(final=True)

    def erase(self) -> None:
        self._write("")

    def _draw(self, *, final: bool = False) -> None:
        columns, rows = _size()
        services = [self._service_row(service, columns, final=final) for service in self._latest.values()]
        steps = [] if final else [self._step_row(step, columns) for step in self._steps.values()]
        room = rows - 2 - len(steps)
        if len(services) > room and not final:
            rows_and_services = zip(services, self._latest.values(), strict=True)
            busy = [row for row, service in rows_and_services if service.is_running]
            done = len(services) - len(busy)
            shown = busy[: max(0, room - 1)]
            services = [*shown, f"… {done} done, {len(busy) - len(shown)} more under way"[:columns]]
        lines = [*services, *steps]
        self._write("".join(f"{line}\n" for line in lines))
        self._drawn = 0 if final else len(lines)

    def _write(self, text: str) -> None:
        """Replace the drawn lines in one write: with two, a terminal would show an empty screen between them."""
        # A terminal shows what is typed, such as ^C, where the cursor is.
        erase = f"\r\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        self._drawn = 0
        if erase or text:
            write_message(erase + text)

    def _service_row(self, service: ServiceProgress, columns: int, *, final: bool) -> str:
        seconds = (
            service.seconds if final or not service.is_running else time.monotonic() - self._begun[service.service]
        )
        width = min(24, max(len(name) for name in self._latest))
        text = f"{service.service[:width]:<{width}}  {_message(service) or service.phase}"
        return _row(service.phase, text, f"  {seconds:.0f} s" if seconds >= 1 else "", columns)

    def _step_row(self, step: Step, columns: int) -> str:
        seconds = time.monotonic() - self._begun[step.name]
        usual_s = step.usual_seconds if columns >= _ROOM_FOR_USUAL else None
        usual = f" of about {progress.format_seconds(usual_s)}" if usual_s else ""
        transfer = self._transfers.get(step.name)
        text = progress.event_message(transfer) if transfer else step.name
        return _row(step.phase, text, f"  {seconds:.0f} s{usual}" if seconds >= 1 else "", columns)


def _row(phase: str, text: str, clock: str, columns: int) -> str:
    """Format a mark, a text and a time; the end of a text that does not fit is left out."""
    unicode = is_unicode(sys.stderr)
    marks = _MARKS if unicode else _PLAIN_MARKS
    spinner = _FRAMES[int(time.monotonic() / _REDRAW_INTERVAL_S) % len(_FRAMES)] if unicode else "-"
    mark = marks.get(phase, spinner)
    room = columns - len(clock) - 4
    shown = text if _width(text) <= room else _start(text, max(1, room - 1)) + ("…" if unicode else ">")
    if wants_color(sys.stderr) and phase in _COLORS:
        mark = f"\x1b[{_COLORS[phase]}m{mark}\x1b[0m"
    return f"{mark} {shown}{clock}"


def _width(text: str) -> int:
    """Return how many columns a text takes: a letter of Chinese, Japanese or Korean takes two."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def _start(text: str, room: int) -> str:
    """Return the start of a text that takes at most so many columns."""
    widths = accumulate(map(_columns, text))
    return text[: sum(width <= room for width in widths)]


def _size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return 80, 24
    return max(20, size.columns), max(5, size.lines)
