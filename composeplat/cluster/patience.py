"""How long an operation still waits for what is to become ready."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Patience:
    """A time to wait, which begins anew with :meth:`renew`: what is spent on building images is no waiting."""

    seconds: float
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    def at_most(self, seconds: float) -> float:
        """The moment at which so many seconds have gone, or patience if it ends before."""
        return min(self._until, time.monotonic() + seconds)
