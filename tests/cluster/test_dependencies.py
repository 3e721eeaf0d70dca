"""One judge says whether a dependency meets its condition, for a deploy and for a wake-up alike."""

from __future__ import annotations

import pytest

from composeplat.cluster.conditions import ServiceStatus, WorkloadState
from composeplat.cluster.dependencies import DependencyState, dependency_state
from composeplat.cluster.failure_causes import Cause
from composeplat.codes import CauseCode
from composeplat.compose.model import COMPLETED, HEALTHY, STARTED

KILLED = Cause(code=CauseCode.CRASH_LOOP, message="was killed: out of memory (3 times)")


def standing(state: WorkloadState, cause: Cause | None = None) -> ServiceStatus:
    return ServiceStatus(state=state, message="0/1 ready", cause=cause)


@pytest.mark.parametrize(
    ("found", "condition", "silent_port", "expected"),
    [
        pytest.param(standing(WorkloadState.STARTED), STARTED, None, DependencyState(is_met=True), id="started"),
        pytest.param(standing(WorkloadState.READY), HEALTHY, None, DependencyState(is_met=True), id="healthy"),
        pytest.param(
            standing(WorkloadState.STARTED), HEALTHY, None, DependencyState(message="0/1 ready"), id="not-yet"
        ),
        pytest.param(
            standing(WorkloadState.READY),
            HEALTHY,
            5432,
            DependencyState(message="nothing answers on port 5432 yet"),
            id="no-answer",
        ),
        pytest.param(
            standing(WorkloadState.FAILED, KILLED),
            HEALTHY,
            None,
            DependencyState(clause="which was killed: out of memory (3 times)", cause=KILLED),
            id="failed",
        ),
        pytest.param(
            standing(WorkloadState.COMPLETED),
            HEALTHY,
            80,
            DependencyState(clause="which ended before it was ready"),
            id="ended-without-an-answer",
        ),
        pytest.param(standing(WorkloadState.COMPLETED), COMPLETED, None, DependencyState(is_met=True), id="completed"),
    ],
)
def test_dependency_state(
    found: ServiceStatus, condition: str, silent_port: int | None, expected: DependencyState
) -> None:
    """It is met, or lacks something that is told, or never will be met; what failed says so in a clause that reads."""
    assert expected == dependency_state(found, condition, silent_port)
