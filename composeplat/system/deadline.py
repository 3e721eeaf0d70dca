"""Waiting: until when, and how often to look.

Owns deadlines and the one loop that polls. Must not know what is waited for.
It is apart because every room waits for something of another program, and a wait without an end, or with the clock of
the day, is a hang in the field.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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

    def at_most(self, seconds: float) -> Deadline:
        """Return a deadline that passes after so many seconds, or with this one if that is sooner."""
        return Deadline(min(seconds, self.remaining_s))


def poll(check: Callable[[], T], deadline: Deadline, *, interval_s: float) -> T:
    """Call ``check`` until it returns something true, and return that; once the deadline has passed, the last answer.

    It is called once more after the last pause, so that what came about meanwhile counts.
    """
    while True:
        is_last = deadline.has_passed
        answer = check()
        if answer or is_last:
            return answer
        time.sleep(min(interval_s, deadline.remaining_s + 0.001))
