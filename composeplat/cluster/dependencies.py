"""Whether a dependency meets its condition, in the one place that a deploy and a wake-up both ask.

Owns the requirement of each condition of ``depends_on``, and the cause of a service that waits in vain.
Must not know who waits, nor probe a port: the status of the dependency comes in, and the result of a probe if one is
needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState
from composeplat.codes.causes import CauseCode
from composeplat.compose.model import DependencyCondition
from composeplat.diagnostics import join_some
from composeplat.system.records import record

_MAX_LISTED_PORTS = 4

_SUFFICIENT: Mapping[DependencyCondition, tuple[WorkloadState, ...]] = {
    DependencyCondition.STARTED: (WorkloadState.STARTED, WorkloadState.READY, WorkloadState.COMPLETED),
    DependencyCondition.HEALTHY: (WorkloadState.READY, WorkloadState.COMPLETED),
    DependencyCondition.COMPLETED: (WorkloadState.COMPLETED,),
}


@record(kw_only=True)
class DependencyState:
    is_met: bool = False
    clause: str = ""
    """Why the condition will never be met, as a clause after the dependency's name; empty while it may be."""
    cause: Cause | None = None
    """Why the dependency itself failed."""
    message: str = ""
    """The part of the condition that is still missing."""

    def allows(self, *, required: bool) -> bool:
        """Return whether the waiting service may start: an optional dependency that failed holds nothing back."""
        return self.is_met or (bool(self.clause) and not required)


def dependency_state(
    status: ServiceStatus, condition: DependencyCondition, silent_ports: tuple[int, ...] = ()
) -> DependencyState:
    """Judge a dependency; ``silent_ports`` are those of which one has to answer, if none did."""
    is_sufficient = status.state in _SUFFICIENT[condition]
    if is_sufficient and not silent_ports:
        return DependencyState(is_met=True)
    if status.state is WorkloadState.FAILED and status.cause is not None:
        return DependencyState(clause=status.cause.clause, cause=status.cause)
    if status.state is WorkloadState.COMPLETED:
        return DependencyState(clause="which ended before it was ready")
    if not is_sufficient:
        return DependencyState(message=status.message)
    listed = join_some([str(port) for port in silent_ports], _MAX_LISTED_PORTS)
    return DependencyState(message=f"nothing answers on port{'s' if len(silent_ports) > 1 else ''} {listed} yet")


def pod_to_probe(status: ServiceStatus, condition: DependencyCondition) -> str:
    """Return the pod whose port decides, once all else holds; empty before."""
    return status.pods[0] if status.pods and status.state in _SUFFICIENT[condition] else ""


def dependency_cause(dependency: str, clause: str) -> Cause:
    """Return the cause of a service whose dependency will never meet its condition."""
    return Cause(code=CauseCode.DEPENDENCY, message=f"waits for {dependency}, {clause}")
