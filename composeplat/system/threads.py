"""Threads whose failures reach the code that waits for them.

Owns starting them. Must not know what they do.
It is apart because a thread that fails silently leaves its waiter waiting for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


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
