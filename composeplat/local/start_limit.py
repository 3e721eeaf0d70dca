"""How long a start of the cluster waits: until nothing more has been reached for a while.

Owns what counts as progress, and the limit that each progress renews. Must not know the parts, or how they are started.
It is apart because a limit for the whole start is wrong on most machines: too long where a part hangs, and too short
where the machine is slow, such as one that is emulated, or that starts every part from a cold disk after a power cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from composeplat.system.deadline import Deadline


@dataclass(slots=True)
class StartLimit:
    """A limit that each new progress renews; as nothing is reached twice, it passes in the end."""

    seconds: float
    deadline: Deadline = field(init=False)
    _reached: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.seconds)

    def note(self, reached: frozenset[str]) -> None:
        """Take what has been reached by now, and restart the limit if there is more than at any time before."""
        if not reached <= self._reached:
            self._reached |= reached
            self.deadline.restart()


def find_reached(wait: str, parts: Mapping[str, Mapping[str, Any]] | None) -> frozenset[str]:
    """Return what a start has reached: the wait that it came to, and each part that has run or is ready.

    A part that ends and is started again reaches nothing by that.
    """
    marks = {f"wait: {wait}"}
    for name, part in (parts or {}).items():
        marks |= {f"{mark}: {name}" for mark in ("running", "ready") if part[mark]}
    return frozenset(marks)
