"""Ctrl-C: one press interrupts the process at any moment.

Owns the cases that Python does not handle. A handler runs between two steps of the main thread: a press just before
the thread begins to wait is handled after the wait, which may be never. An exception of a handler in a finalizer is
printed and dropped, and one during an import may be replaced by another, which only :func:`is_interrupt` recognizes.
Must not know the effect of a press: the handlers decide it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from composeplat.system.signals import handle_signals

#: A wait of the main thread is interrupted after these delays, if the handler has not run before.
_WAKE_DELAYS_S = (0.02, 0.1, 0.5)
#: A press whose exception was dropped is repeated after this delay: then the finalizer has ended.
_REPEAT_DELAY_S = 0.02
WAKER = "interrupts"
"""The name of the thread that wakes the main thread."""
_PRESSES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def listen() -> None:
    """Make the handlers of signals run at once; must be called in the main thread."""
    if sys.platform == "win32":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGURG, _do_nothing)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _raise_again
    threading.Thread(target=_wake, name=WAKER, args=(reader, threading.get_ident()), daemon=True).start()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block on SIGTERM and SIGHUP too, so that what it created is deleted."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    with handle_signals(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), end)):
        yield


def is_interrupt(error: BaseException | None) -> bool:
    """Check for a Ctrl-C: Python replaces an exception that is raised while a class is created."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal makes Python run the handlers of all pending signals."""


def _wake(reader: int, main: int) -> None:
    """Interrupt the wait of the main thread after each press, so that the handlers run."""
    while numbers := os.read(reader, 64):
        if any(number in numbers for number in _PRESSES):
            for pause in _WAKE_DELAYS_S:
                time.sleep(pause)
                signal.pthread_kill(main, signal.SIGURG)


def _raise_again(dropped: Any) -> None:
    if dropped.exc_type is not None and issubclass(dropped.exc_type, KeyboardInterrupt):
        threading.Timer(_REPEAT_DELAY_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(dropped)
