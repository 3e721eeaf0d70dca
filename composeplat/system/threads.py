"""Threads whose failure is passed on: one that dies without a word leaves whoever waits for it waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable


def start_thread(name: str, work: Callable[[], None], on_failure: Callable[[Exception], None]) -> threading.Thread:
    """Run something beside all else; ``on_failure`` is called with what it could not handle."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- raised again by whoever waits for what the thread does
            on_failure(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
