"""Topics: documents that change, each read by one thread for all who look, and by nobody while nobody looks.

Owns when the threads run, and which document each subscriber has not got yet: a slow one gets the latest only.
Must not know what the documents are.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from composeplat.diagnostics import ComposeplatError
from composeplat.system.threads import start_thread

logger = logging.getLogger(__name__)

Publish = Callable[[str, object], None]
"""Takes a topic and its document."""
Source = Callable[[Publish, threading.Event], None]
"""Publishes the documents of a topic until the event is set."""

PROBLEM = "problem"
"""The topic of what keeps the others from being read: each source publishes its own, and the oldest is shown."""
NO_PROBLEM: Mapping[str, str] = {"message": "", "hint": ""}
_ALIVE = b'{"topic": "alive", "data": null}\n'
_ALIVE_INTERVAL_S = 15.0
_MIN_RETRY_S, _MAX_RETRY_S = 1.0, 30.0
#: A page that is loaded again comes back within this time.
_KEPT_S = 2.0


class Subscription:
    """What one reader has not got yet: a line for each topic that has changed."""

    def __init__(self, known: Mapping[str, bytes]) -> None:
        self._pending = dict(known)
        self._changed = asyncio.Event()
        if known:
            self._changed.set()

    def put(self, topic: str, line: bytes) -> None:
        self._pending[topic] = line
        self._changed.set()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield lines without end, one from time to time where nothing changes: a reader that has gone is noticed."""
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), _ALIVE_INTERVAL_S)
            except TimeoutError:
                yield _ALIVE
                continue
            self._changed.clear()
            pending, self._pending = self._pending, {}
            yield b"".join(pending.values())


class Hub:
    """Some topics. Its methods are called in the thread of the event loop, but for :meth:`publish`."""

    def __init__(self, sources: Mapping[str, Source], loop: asyncio.AbstractEventLoop) -> None:
        self._sources = sources
        self._loop = loop
        self._known: dict[str, bytes] = {}
        self._problems: dict[str, object] = {}
        """What keeps topics from being read, by their names."""
        self._subscriptions: set[Subscription] = set()
        self._ended: threading.Event | None = None
        """Set to end the threads; None while none run."""

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        if self._ended is None:
            self._start()
        subscription = Subscription(self._known)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            self._loop.call_later(_KEPT_S, self._stop_if_unread)

    def publish(self, topic: str, data: object) -> None:
        """Give a document to all subscribers, and to later ones; called in any thread."""
        line = _line(topic, data)
        with suppress(RuntimeError):  # the loop has ended: nobody looks any more
            self._loop.call_soon_threadsafe(self._deliver, topic, line)

    def stop(self) -> None:
        if self._ended is not None:
            self._ended.set()
        self._ended = None
        self._known = {topic: line for topic, line in self._known.items() if topic not in self._sources}
        self._problems.clear()
        # A page that comes back still shows the problem that it saw last.
        if PROBLEM in self._known:
            self._known[PROBLEM] = _line(PROBLEM, NO_PROBLEM)

    def _stop_if_unread(self) -> None:
        if not self._subscriptions:
            self.stop()

    def _start(self) -> None:
        self._ended = ended = threading.Event()
        for topic, source in self._sources.items():
            publish = functools.partial(self._publish_of, topic, ended)
            start_thread(
                f"ui-{topic}", _reading(source, publish, ended), functools.partial(_report_bug, topic, publish)
            )

    def _publish_of(self, source: str, ended: threading.Event, topic: str, data: object) -> None:
        if ended.is_set():
            return
        if topic != PROBLEM:
            self.publish(topic, data)
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver_problem, source, data)

    def _deliver_problem(self, source: str, data: object) -> None:
        if data == NO_PROBLEM:
            self._problems.pop(source, None)
        else:
            self._problems[source] = data
        self._deliver(PROBLEM, _line(PROBLEM, next(iter(self._problems.values()), NO_PROBLEM)))

    def _deliver(self, topic: str, line: bytes) -> None:
        if self._known.get(topic) == line:
            return
        self._known[topic] = line
        for subscription in self._subscriptions:
            subscription.put(topic, line)


def _reading(source: Source, publish: Publish, ended: threading.Event) -> Callable[[], None]:
    """Return the work of a thread: it reads a source, and again after a failure, which it publishes."""
    has_problem = False

    def publish_document(topic: str, data: object) -> None:
        nonlocal has_problem
        if has_problem and topic != PROBLEM:
            has_problem = False
            publish(PROBLEM, NO_PROBLEM)
        publish(topic, data)

    def read() -> None:
        nonlocal has_problem
        pause_s = _MIN_RETRY_S
        while not ended.is_set():
            began = time.monotonic()
            try:
                source(publish_document, ended)
            except ComposeplatError as error:
                has_problem = True
                publish(PROBLEM, {"message": str(error), "hint": error.hint})
            # What was read for long is not to wait for the failures before.
            if time.monotonic() - began > _MAX_RETRY_S:
                pause_s = _MIN_RETRY_S
            ended.wait(pause_s)
            pause_s = min(2 * pause_s, _MAX_RETRY_S)

    return read


def _report_bug(topic: str, publish: Publish, error: Exception) -> None:
    """Say on the page that a topic is not read any more."""
    logger.error("the topic %s can't be read", topic, exc_info=error)
    message = f"{topic} is not read any more: {type(error).__name__} in platform"
    publish(PROBLEM, {"message": message, "hint": "start platform ui again, with --debug to see why"})


def _line(topic: str, data: object) -> bytes:
    # Of a name that is no UTF-8, each wrong byte is half a character, which is written as an escape of JSON.
    text = json.dumps({"topic": topic, "data": data}, ensure_ascii=False, default=str)
    return text.encode(errors="backslashreplace") + b"\n"
