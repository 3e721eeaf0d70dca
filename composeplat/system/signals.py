"""Signals that end a process, handled otherwise during a block.

Owns that an ignored signal stays ignored: ``nohup`` lets a process ignore SIGHUP. Must not know what a handler does.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any


@contextlib.contextmanager
def handle_signals(handlers: Mapping[int, Callable[[int, Any], object]]) -> Iterator[None]:
    """Handle signals by their numbers until the end of the block."""
    handled = [number for number in handlers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handlers[number]) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
