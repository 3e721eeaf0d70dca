"""How long an operation still waits for what is to become ready."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Patience:
    """A time to wait, which begins anew with :meth:`renew`: what is spent on building images is no waiting."""

    seconds: float
    delays: Mapping[str, float] = field(default_factory=dict)
    """Service -> for how long its health checks, and those of what it waits for, are not made at all."""
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    def is_over_for(self, service: str) -> bool:
        """Say whether a service has had its time, which begins when its health checks do."""
        return time.monotonic() > self._until + self.delays.get(service, 0.0)

    def seconds_for(self, service: str) -> float:
        return self.seconds + self.delays.get(service, 0.0)

    def at_most(self, seconds: float) -> float:
        """The moment at which so many seconds have gone, or patience if it ends before."""
        return min(self._until, time.monotonic() + seconds)
