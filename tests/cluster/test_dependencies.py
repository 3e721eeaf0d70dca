"""One function decides whether a dependency meets its condition, for a deploy and for a wake-up."""

from __future__ import annotations

import pytest

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState
from composeplat.cluster.dependencies import DependencyState, dependency_state, pod_to_probe
from composeplat.codes.causes import CauseCode
from composeplat.compose.model import DependencyCondition

KILLED = Cause(code=CauseCode.CRASH_LOOP, message="was killed: out of memory (3 times)")


def status(state: WorkloadState, cause: Cause | None = None) -> ServiceStatus:
    return ServiceStatus(state=state, message="0/1 ready", cause=cause)


@pytest.mark.parametrize(
    ("found", "condition", "silent_ports", "expected"),
    [
        pytest.param(
            status(WorkloadState.STARTED), DependencyCondition.STARTED, (), DependencyState(is_met=True), id="started"
        ),
        pytest.param(
            status(WorkloadState.READY), DependencyCondition.HEALTHY, (), DependencyState(is_met=True), id="healthy"
        ),
        pytest.param(
            status(WorkloadState.STARTED),
            DependencyCondition.HEALTHY,
            (),
            DependencyState(message="0/1 ready"),
            id="not-yet",
        ),
        pytest.param(
            status(WorkloadState.READY),
            DependencyCondition.HEALTHY,
            (5432,),
            DependencyState(message="nothing answers on port 5432 yet"),
            id="no-answer",
        ),
        pytest.param(
            status(WorkloadState.READY),
            DependencyCondition.HEALTHY,
            (15672, 5672),
            DependencyState(message="nothing answers on ports 15672, 5672 yet"),
            id="no-answer-on-any",
        ),
        pytest.param(
            status(WorkloadState.FAILED, KILLED),
            DependencyCondition.HEALTHY,
            (),
            DependencyState(clause="which was killed: out of memory (3 times)", cause=KILLED),
            id="failed",
        ),
        pytest.param(
            status(WorkloadState.COMPLETED),
            DependencyCondition.HEALTHY,
            (80,),
            DependencyState(clause="which ended before it was ready"),
            id="ended-without-an-answer",
        ),
        pytest.param(
            status(WorkloadState.COMPLETED),
            DependencyCondition.COMPLETED,
            (),
            DependencyState(is_met=True),
            id="completed",
        ),
    ],
)
def test_dependency_state(
    found: ServiceStatus, condition: DependencyCondition, silent_ports: tuple[int, ...], expected: DependencyState
) -> None:
    """It is met, or not yet, with the reason, or never; a failure is a clause of a sentence."""
    assert expected == dependency_state(found, condition, silent_ports)


@pytest.mark.parametrize(
    ("condition", "states"),
    [
        pytest.param(
            DependencyCondition.STARTED,
            [WorkloadState.STARTED, WorkloadState.READY, WorkloadState.COMPLETED],
            id="started",
        ),
        pytest.param(DependencyCondition.HEALTHY, [WorkloadState.READY, WorkloadState.COMPLETED], id="healthy"),
        pytest.param(DependencyCondition.COMPLETED, [WorkloadState.COMPLETED], id="completed"),
    ],
)
def test_sufficient_states(condition: DependencyCondition, states: list[WorkloadState]) -> None:
    """Each condition is met in these states and in no other, and only then a port is probed."""
    with_pod = [ServiceStatus(state=state, message="", pods=("web-0",)) for state in WorkloadState]

    assert states == [found.state for found in with_pod if dependency_state(found, condition).is_met]
    assert states == [found.state for found in with_pod if pod_to_probe(found, condition) == "web-0"]
    assert pod_to_probe(status(WorkloadState.READY), condition) == ""


@pytest.mark.parametrize(
    ("state", "required", "expected"),
    [
        pytest.param(DependencyState(is_met=True), True, True, id="met"),
        pytest.param(DependencyState(message="0/1 ready"), False, False, id="optional-not-yet"),
        pytest.param(DependencyState(clause="which failed"), True, False, id="failed"),
        pytest.param(DependencyState(clause="which failed"), False, True, id="optional-failed"),
    ],
)
def test_an_optional_dependency(state: DependencyState, *, required: bool, expected: bool) -> None:
    """A dependency that failed holds back only services that require it."""
    assert expected is state.allows(required=required)
