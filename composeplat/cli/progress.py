"""The progress of an operation: a live table on a terminal, a line for each change elsewhere, JSON for programs.

Owns standard error while an operation runs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Self

from composeplat.cli.console import silence, tell, wants_color
from composeplat.engine.monitor import Progress

_REDRAW = 0.1
_STILL_EVERY = 15.0
_MARKS = {"ready": "✓", "built": "✓", "unchanged": "✓", "failed": "✗", "pending": "·"}
_PLAIN_MARKS = {"ready": "+", "built": "+", "unchanged": "+", "failed": "!", "pending": "."}
_COLORS = {
    "ready": "32",
    "built": "32",
    "unchanged": "32",
    "failed": "31",
    "waiting": "33",
    "applying": "36",
    "building": "36",
}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(slots=True)
class Screen:
    """Shows how services get on."""

    as_json: bool = False
    quiet: bool = False
    _latest: dict[str, Progress] = field(default_factory=dict)
    _seen_at: dict[str, float] = field(default_factory=dict)
    _drawn: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _ticker: threading.Thread | None = None
    _last_word: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Self:
        self._last_word = time.monotonic()
        if not self.as_json and not self.quiet:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._ticker is not None:
            self._ticker.join()
        with self._lock:
            if self._live:
                self._draw(final=True)

    @property
    def _live(self) -> bool:
        stream = sys.stderr
        return (
            not self.as_json and not self.quiet and stream.isatty()
            and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
        )  # fmt: skip

    def progress(self, one: Progress) -> None:
        with self._lock:
            self._latest[one.service] = one
            self._seen_at[one.service] = time.monotonic() - one.seconds
            if self.as_json:
                event = {"event": "service", "service": one.service, "phase": one.phase, "words": one.words,
                         "seconds": round(one.seconds, 1)}  # fmt: skip
                _write(json.dumps(event) + "\n")
            elif not self.quiet and not self._live:
                self._last_word = time.monotonic()
                words = f": {one.words}" if one.words else ""
                tell(f"{one.service}: {one.phase}{words}\n")

    def say(self, text: str) -> None:
        with self._lock:
            if self.as_json:
                _write(json.dumps({"event": "note", "text": text}) + "\n")
            elif not self.quiet:
                if self._live:
                    self._erase()
                self._last_word = time.monotonic()
                tell(f"{text}\n")

    def _tick(self) -> None:
        while not self._ended.wait(_REDRAW):
            with self._lock:
                if self._live:
                    self._draw()
                elif time.monotonic() - self._last_word > _STILL_EVERY:
                    self._last_word = time.monotonic()
                    tell(self._still())

    def _still(self) -> str:
        """A sign of life where nothing has changed for long."""
        waiting = [f"{one.service} ({one.words or one.phase})" for one in self._latest.values() if _goes_on(one)]
        seconds = time.monotonic() - self._started
        return f"still at it after {seconds:.0f} s" + (f": {', '.join(waiting)}" if waiting else "") + "\n"

    # the live table

    def _draw(self, *, final: bool = False) -> None:
        columns, rows = _size()
        lines = [self._line(one, columns, final=final) for one in self._latest.values()]
        if len(lines) > rows - 2 and not final:
            busy = [line for line, one in zip(lines, self._latest.values(), strict=True) if _goes_on(one)]
            done = len(lines) - len(busy)
            shown = busy[: rows - 3]
            lines = [*shown, f"… {done} done, {len(busy) - len(shown)} more under way"[:columns]]
        self._erase()
        if lines:
            tell("\n".join(lines) + "\n")
        self._drawn = 0 if final else len(lines)

    def _erase(self) -> None:
        if self._drawn:
            tell(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _line(self, one: Progress, columns: int, *, final: bool) -> str:
        unicode = _is_unicode()
        seconds = one.seconds if final or not _goes_on(one) else time.monotonic() - self._seen_at[one.service]
        marks = _MARKS if unicode else _PLAIN_MARKS
        spinner = _FRAMES[int(time.monotonic() / _REDRAW) % len(_FRAMES)] if unicode else "-"
        mark = marks.get(one.phase, spinner)
        width = min(24, max(len(name) for name in self._latest))
        text = f"{one.service[:width]:<{width}}  {one.words or one.phase}"
        clock = f"  {seconds:.0f} s" if seconds >= 1 else ""
        room = columns - len(clock) - 4
        shown = text if len(text) <= room else text[: max(1, room - 1)] + ("…" if unicode else ">")
        if wants_color(sys.stderr) and one.phase in _COLORS:
            mark = f"\x1b[{_COLORS[one.phase]}m{mark}\x1b[0m"
        return f"{mark} {shown}{clock}"


def _goes_on(one: Progress) -> bool:
    return one.phase not in ("ready", "built", "unchanged", "failed")


def _is_unicode() -> bool:
    return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"


def _size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return 80, 24
    return max(20, size.columns), max(5, size.lines)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
