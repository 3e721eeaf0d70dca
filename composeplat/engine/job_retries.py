"""Failed tries of Jobs that try again: each cause is reported once, as soon as it is known, with its log.

Owns the comparison of two tries: they failed the same way if exit status and last log line are the same.
Must not format a report, nor judge whether a Job has failed for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.engine.failure_logs import failure_of
from composeplat.engine.outcomes import Failure
from composeplat.engine.stack import Stack


@dataclass(slots=True, kw_only=True)
class Retries:
    stack: Stack
    api: Api
    _reported: dict[str, Failure] = field(default_factory=dict)
    """Service -> its last failed try."""

    def report(self, retries: Mapping[str, Cause]) -> None:
        """Report those failed tries that have not been; ``retries`` has the last one of each service."""
        for service, cause in retries.items():
            before = self._reported.get(service)
            if before is not None and before.cause.pod == cause.pod:
                continue
            failure = failure_of(service, cause, self.stack.namespace, self.api)
            self._reported[service] = failure
            if before is not None and _end_of(before) == _end_of(failure):
                self.stack.note(f"{service}: {cause.message}, as before")
            else:
                self.stack.warn(failure)


def _end_of(failure: Failure) -> tuple[int | None, str]:
    return failure.cause.exit_status, failure.lines[-1] if failure.lines else ""
