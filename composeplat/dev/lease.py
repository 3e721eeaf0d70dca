"""The lease on a service under development: which `platform up` has it, and for how long.

Owns the annotation of the dev workload that names the holder, and when a lease ends without one.
Must not know how the service is developed: a lease is data, by the clock of the API server, as the clocks of two
developers' machines may be minutes apart.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from composeplat.names import LABEL_PREFIX
from composeplat.system.processes import ProcessId

LEASE_ANNOTATION = f"{LABEL_PREFIX}/up-held-by"
#: A lease that was not renewed for so long has ended.
LEASE_DURATION_S = 30.0

Holder = dict[str, Any]
"""Who has a lease: ``id``, ``host``, ``user``, the process, and when the lease was renewed (``seen``)."""
Check = Callable[[Mapping[str, Any] | None], None]


def lease_holder(dev_workload: Mapping[str, Any] | None, now: float) -> Holder | None:
    """Return who develops the service of a dev workload; None if nobody does, or if the lease has ended.

    Others may write the annotation: one without a moment is no lease.
    """
    try:
        holder: Holder = json.loads((dev_workload or {})["metadata"]["annotations"][LEASE_ANNOTATION])
        age = now - float(holder["seen"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return holder if math.isfinite(age) and age < LEASE_DURATION_S else None


def has_lease(dev_workload: Mapping[str, Any]) -> bool:
    """Return whether a lease is written on a dev workload, ended or not: who restores the service removes it first."""
    return LEASE_ANNOTATION in (dev_workload["metadata"].get("annotations") or {})


def lease_text(holder: Holder, now: float) -> str:
    """Return the value of the annotation of a lease that is renewed now."""
    return json.dumps({**holder, "seen": round(now)})


@dataclass(frozen=True, slots=True)
class SessionLease:
    """The lease of a session: its holder, and two checks of the dev workload as it was seen, which raise.

    By the first the session may take the lease; by the second it has it still.
    """

    holder: Holder
    may_take: Check
    may_keep: Check


def describe_holder(holder: Mapping[str, Any]) -> str:
    return f"{holder.get('user') or 'someone'} on {holder.get('host')}"


def may_be_running(holder: Mapping[str, Any]) -> bool:
    """Return whether a holder may still be running: the end of a process is known on its own machine only."""
    process = ProcessId.from_data(holder)
    return process is None or not (process.has_ended or process.is_current)


@dataclass(slots=True)
class LeaseRenewal:
    """When this process renewed its lease, and the message if it can't."""

    service: str
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _renewed_at: float = 0.0
    _is_lost: bool = False

    def __post_init__(self) -> None:
        self._renewed_at = self.now()

    @property
    def age(self) -> float:
        return self.now() - self._renewed_at

    def succeed(self) -> None:
        if self._is_lost:
            self.note(f"the lease on {self.service} is renewed again")
        self._renewed_at, self._is_lost = self.now(), False

    def fail(self, error: Exception) -> None:
        if not self._is_lost and self.age > LEASE_DURATION_S:
            self._is_lost = True
            self.note(f"the lease on {self.service} can't be renewed, and others may take it over: {error}")
