"""Turns of streams: the browser opens six connections to a server, and each stream of a window keeps one.

Owns how many streams stay open, and for how long the others do. A stream beyond them ends after a moment, and the page
opens it again at once: an action or the page of another window that waits in the browser comes first.
Must not know the content of a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

#: One less than the connections that each browser opens to a server.
_MAX_OPEN = 5
_TURN_S = 3.0
TURN = b'{"topic": "turn", "data": null}\n'
"""The last line of a stream that has to be opened again."""


class StreamTurns:
    def __init__(self) -> None:
        self._open = 0

    async def take(self, lines: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        """Yield the lines of a stream: all of them, or those of its turn."""
        stays_open = self._open < _MAX_OPEN
        self._open += stays_open
        try:
            async with contextlib.aclosing(lines):
                async for line in lines if stays_open else _take_turn(lines):
                    yield line
        finally:
            self._open -= stays_open


async def _take_turn(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + _TURN_S
    while True:
        try:
            line = await asyncio.wait_for(anext(lines), end - loop.time())
        except StopAsyncIteration:
            return
        except TimeoutError:
            break
        yield line
    yield TURN
