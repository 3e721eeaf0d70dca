"""Run a long step and say how it goes.

Owns the words of progress: what is being done, for how long, and how long it took the last time.
Must not know what the steps do.
On a terminal one line is rewritten each second; elsewhere a line comes at the start, each half minute and at the end.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TextIO

_PLAIN_EVERY = 30.0
_LIVE_EVERY = 1.0


@dataclass(slots=True)
class Steps:
    """Says on a stream how steps go."""

    environment: Mapping[str, str]
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def _live(self) -> bool:
        return self.stream.isatty() and self.environment.get("TERM") != "dumb" and not self.environment.get("CI")

    def say(self, text: str) -> None:
        self.stream.write(f"{text}\n")
        self.stream.flush()

    @contextlib.contextmanager
    def step(self, what: str, *, usual: float | None = None) -> Iterator[None]:
        """Show that something is being done until the block ends."""
        expected = f", usually {show_seconds(usual)}" if usual else ""
        started = time.monotonic()
        done = threading.Event()
        if not self._live:
            self.say(f"{what} …{expected}")
        ticker = threading.Thread(target=self._tick, args=(what, expected, started, done), daemon=True)
        ticker.start()
        try:
            yield
        except BaseException:
            self._finish(ticker, done, f"{what}: failed after {show_seconds(time.monotonic() - started)}")
            raise
        self._finish(ticker, done, f"{what}: {show_seconds(time.monotonic() - started)}")

    def _tick(self, what: str, expected: str, started: float, done: threading.Event) -> None:
        live = self._live
        while not done.wait(_LIVE_EVERY if live else _PLAIN_EVERY):
            elapsed = show_seconds(time.monotonic() - started)
            text = f"{what} … {elapsed}{expected}"
            if live:
                width = _width(self.stream)
                self.stream.write(f"\r\x1b[K{text[: width - 1]}")
            else:
                self.stream.write(f"{text}\n")
            self.stream.flush()

    def _finish(self, ticker: threading.Thread, done: threading.Event, text: str) -> None:
        done.set()
        ticker.join()
        if self._live:
            self.stream.write("\r\x1b[K")
        self.say(text)


def _width(stream: TextIO) -> int:
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return 80


def show_seconds(seconds: float) -> str:
    if seconds < 10:  # noqa: PLR2004 -- below it, tenths tell something
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
