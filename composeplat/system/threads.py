"""Threads whose failures reach the code that waits for them.

Owns starting them, and waiting for those that were asked to end. Must not know what they do.
It is apart because a thread that fails silently leaves its waiter waiting for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

#: A thread that was asked to end may be waiting for a response that never comes.
_END_WITHIN_S = 0.3


def await_end(threads: Iterable[threading.Thread | None]) -> None:
    """Wait a moment for threads that were asked to end: OpenSSL crashes the process if one uses it at the very end."""
    deadline = time.monotonic() + _END_WITHIN_S
    for thread in threads:
        if thread is not None:
            thread.join(timeout=max(deadline - time.monotonic(), 0.0))


def start_thread(name: str, work: Callable[[], None], on_failure: Callable[[Exception], None]) -> threading.Thread:
    """Start a thread, and call ``on_failure`` with the exception if it fails."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- raised again by the code that waits for the thread
            on_failure(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
