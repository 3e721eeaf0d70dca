"""Ctrl-C: one press is enough, whenever it comes.

Owns what the interpreter leaves open. A press is heard between two steps of the main thread, so that one which comes
just before that thread begins to wait would be heard when the wait is over, which may be never; what it raises within a
finalizer is printed and dropped; and what it raises while a module is imported may come out as another exception,
which only :func:`is_interrupt` recognizes.
Must not know what is done on a press: that is the handlers'.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

#: The main thread's waits are broken off so long after a press, in seconds; by then it has been heard, mostly.
_WAKE_AFTER_S = (0.02, 0.1, 0.5)
#: A press whose exception was dropped comes again after so long: then the finalizer is over.
_AGAIN_AFTER_S = 0.02
_PRESSES = (signal.SIGINT, signal.SIGTERM)


def listen() -> None:
    """See to it that presses are heard by whichever handler there is; only to be called in the main thread."""
    if sys.platform == "win32":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGURG, _hear)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _raise_again
    threading.Thread(target=_wake, args=(reader, threading.get_ident()), daemon=True).start()


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an exception is a Ctrl-C: one that comes while a class is made comes out as another exception."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _hear(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the handlers of all signals that have come are run one after the other."""


def _wake(reader: int, main: int) -> None:
    """Break off what the main thread waits for after each press, so that its handlers are run."""
    while numbers := os.read(reader, 64):
        if any(number in numbers for number in _PRESSES):
            for pause in _WAKE_AFTER_S:
                time.sleep(pause)
                signal.pthread_kill(main, signal.SIGURG)


def _raise_again(dropped: Any) -> None:
    if dropped.exc_type is not None and issubclass(dropped.exc_type, KeyboardInterrupt):
        threading.Timer(_AGAIN_AFTER_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(dropped)
