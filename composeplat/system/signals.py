"""Signals that end a process, handled otherwise during a block.

Owns that an ignored signal stays ignored: ``nohup`` lets a process ignore SIGHUP. Must not know what a handler does,
nor what a child process makes of a signal.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
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


def pass_on_interrupt(process: subprocess.Popen[bytes]) -> None:
    """Send a Ctrl-C to a child process; one from the terminal it has already, so it must take two at once as one.

    Without a terminal, as from an editor, this process alone gets it. On Windows all of a console do.
    """
    if sys.platform != "win32":
        process.send_signal(signal.SIGINT)
