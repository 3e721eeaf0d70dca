"""Waiting: until when, and how often to look.

Owns deadlines and the loop that polls, for threads and for event loops. Must not know what is waited for.
It is apart because every room waits for something of another program, and a wait without an end, or with the clock of
the day, is a hang in the field. Loops of other rooms have no deadline, or several, or wait for an event; they say so.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Deadline:
    """A number of seconds from now, or from the last :meth:`restart`, by the clock that nobody sets."""

    seconds: float
    extra_seconds: Mapping[str, float] = field(default_factory=dict)
    """Name -> how many seconds more it has."""
    _passes_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._passes_at = time.monotonic() + self.seconds

    @property
    def remaining_s(self) -> float:
        """The seconds that are left; 0 when it has passed."""
        return max(0.0, self._passes_at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        return time.monotonic() > self._passes_at

    def has_passed_for(self, name: str) -> bool:
        return time.monotonic() > self._passes_at + self.extra_seconds.get(name, 0.0)

    def seconds_for(self, name: str) -> float:
        return self.seconds + self.extra_seconds.get(name, 0.0)

    def pause_s(self, interval_s: float, name: str = "") -> float:
        """The seconds until the next check: one interval, or until just after the deadline of the name."""
        left_s = self._passes_at + self.extra_seconds.get(name, 0.0) - time.monotonic()
        return min(interval_s, max(0.0, left_s) + 0.001)

    def at_most(self, seconds: float) -> Deadline:
        """Return a deadline that passes after so many seconds, or with this one if that is sooner."""
        return Deadline(min(seconds, self.remaining_s))


def poll(check: Callable[[], T], deadline: Deadline, *, interval_s: float, name: str = "") -> T:
    """Call ``check`` until it returns something true, and return that; once the deadline has passed, the last answer.

    It is called once more after the last pause, so that what came about meanwhile counts.
    The deadline is that of ``name``, which may have extra seconds.
    """
    while True:
        is_last = deadline.has_passed_for(name)
        answer = check()
        if answer or is_last:
            return answer
        time.sleep(deadline.pause_s(interval_s, name))


async def poll_async(check: Callable[[], Awaitable[T]], deadline: Deadline, *, interval_s: float, name: str = "") -> T:
    """Do the same as :func:`poll` on an event loop, which is free during the pauses."""
    # Few processes have a loop, and importing it would slow the start of all.
    import asyncio

    while True:
        is_last = deadline.has_passed_for(name)
        answer = await check()
        if answer or is_last:
            return answer
        await asyncio.sleep(deadline.pause_s(interval_s, name))
