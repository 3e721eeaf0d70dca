"""The cause of a failure, as a message and as the place that it originates in.

Owns how a cause becomes a sentence. Must not decide what is a failure: :mod:`~composeplat.cluster.failure_causes` does
for pods, and others do for their kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

from composeplat.codes.causes import CauseCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a workload fails."""

    code: CauseCode
    message: str
    origin: tuple[str, ...] = ()
    """The key of the service that is responsible, such as ``("image",)``."""
    hint: str = ""
    pod: str = ""
    container: str = ""
    previous: bool = False
    """The log lines are those of the container's previous run."""
    logs: bool = False
    """The log of the container may show why."""
    lines: tuple[str, ...] = ()
    """The log lines, if they are known already."""
    exit_status: int | None = None
    has_subject: bool = False
    """The message has a subject of its own, as "its health check failed" has; else the service is its subject."""

    @property
    def clause(self) -> str:
        """The cause as a clause after a service's name: ``db, which crashes with exit status 1``."""
        return f"which {self._predicate}"

    def sentence(self, subject: str) -> str:
        """Return the cause as a sentence about another subject than the service."""
        return f"{subject} {self._predicate}"

    @property
    def _predicate(self) -> str:
        return f"failed: {self.message}" if self.has_subject else self.message
