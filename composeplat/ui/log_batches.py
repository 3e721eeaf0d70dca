"""Log lines for one reader: read by a thread, and sent in batches.

Owns how many lines wait for a slow reader, and how often it gets some. Must not know where lines come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import Protocol

from composeplat.diagnostics import ComposeplatError
from composeplat.system.threads import start_thread

_INTERVAL_S = 0.1
_MAX_BATCH_LINES = 5000
_MAX_PENDING_LINES = 20_000
#: A line, or a part of one, can have 16 KiB.
_MAX_PENDING_CHARS = 4 * 1024 * 1024

Line = tuple[str, str, str, str, bool, str]
"""Its time, service, pod and text, whether it is of a one-off pod, and the container, if it is not the service's."""


class Lines(Protocol):
    """Lines that are read in one thread, until another one stops them."""

    def lines(self) -> Iterator[Line | str]:
        """Yield lines, and notes about them."""

    def stop(self) -> None: ...


class Batches:
    """The lines that a thread has read and the reader has not got yet."""

    def __init__(self, source: Lines) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._pending: list[Line | str] = []
        self._pending_chars = 0
        self._lock = threading.Lock()
        self._changed = asyncio.Event()
        self._may_read = threading.Event()
        self._may_read.set()
        self._has_ended = False

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield batches until the lines end; a reader that goes away stops them."""
        start_thread("ui-logs", self._fill, self._fail)
        try:
            while not (self._has_ended and not self._pending):
                await self._changed.wait()
                self._changed.clear()
                if batch := self._take():
                    yield batch
                    await asyncio.sleep(_INTERVAL_S)
        finally:
            self._has_ended = True
            self._may_read.set()
            self._source.stop()

    def _fill(self) -> None:
        for line in self._source.lines():
            if self._has_ended:
                return
            with self._lock:
                self._pending.append(line)
                self._pending_chars += _length(line)
                if self._is_full:
                    self._may_read.clear()
            self._notify()
            self._may_read.wait()
        self._end()

    def _fail(self, error: Exception) -> None:
        with self._lock:
            note = str(error) if isinstance(error, ComposeplatError) else "the logs can't be read"
            self._pending.append(note)
            self._pending_chars += len(note)
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        self._notify()

    def _notify(self) -> None:
        if not self._changed.is_set():
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody reads any more
                self._loop.call_soon_threadsafe(self._changed.set)

    @property
    def _is_full(self) -> bool:
        return len(self._pending) >= _MAX_PENDING_LINES or self._pending_chars >= _MAX_PENDING_CHARS

    def _take(self) -> bytes:
        with self._lock:
            taken, self._pending = self._pending[:_MAX_BATCH_LINES], self._pending[_MAX_BATCH_LINES:]
            self._pending_chars -= sum(map(_length, taken))
            if not self._is_full:
                self._may_read.set()
        if self._pending:
            self._changed.set()
        return b"".join(_documents(taken))


def _length(line: Line | str) -> int:
    return len(line if isinstance(line, str) else line[3])


def _documents(taken: list[Line | str]) -> Iterator[bytes]:
    lines = [line for line in taken if not isinstance(line, str)]
    if lines:
        yield _encode({"lines": lines})
    for note in taken:
        if isinstance(note, str):
            yield _encode({"note": note})


def _encode(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"
