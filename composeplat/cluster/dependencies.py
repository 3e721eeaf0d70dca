"""Whether a dependency meets its condition: one judge, for a deploy that holds a service back and for a wake-up.

Pure: how the dependency stands comes in.
Must not know who waits; asking a port is the caller's, as it takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass

from composeplat.cluster.conditions import ServiceStatus, WorkloadState, is_condition_met
from composeplat.cluster.failure_causes import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyState:
    is_met: bool = False
    clause: str = ""
    """Why it never will be met, as said behind the dependency's name; empty where it may."""
    cause: Cause | None = None
    """Why the dependency itself has failed."""
    message: str = ""
    """What it still lacks."""


def dependency_state(standing: ServiceStatus, condition: str, silent_port: int | None = None) -> DependencyState:
    """Judge a dependency; ``silent_port`` is the port that has to answer and does not."""
    met = is_condition_met(standing, condition)
    if met and silent_port is None:
        return DependencyState(is_met=True)
    if standing.state is WorkloadState.FAILED and standing.cause is not None:
        return DependencyState(clause=standing.cause.clause, cause=standing.cause)
    if standing.state is WorkloadState.COMPLETED:
        return DependencyState(clause="which ended before it was ready")
    return DependencyState(message=f"nothing answers on port {silent_port} yet" if met else standing.message)
