"""The state of a pod, in one word, as kubectl shows it."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.pod_status import pod_rows
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import deployment, ended, pod, replica_set, running, waiting

SET = replica_set(deployment())
DONE = ended(0, "Completed")
NEXT = waiting("PodInitializing")


def state_of(made: Object) -> str:
    (row,) = pod_rows([made], "web")
    return row.state


def starting(*states: Object, beside: bool = False, initialized: bool = False) -> Object:
    """A pod whose init containers are in these states; the last one may be one that runs beside the others."""
    made = pod(SET, state=running() if initialized else NEXT, ready=initialized)
    names = [f"platform-{number}" for number in range(len(states))]
    made["spec"]["initContainers"] = [{"name": name} for name in names]
    rows: list[dict[str, Any]] = [{"name": name, "state": state} for name, state in zip(names, states, strict=True)]
    if beside:
        made["spec"]["initContainers"][-1]["restartPolicy"], rows[-1]["started"] = "Always", True
    made["status"]["initContainerStatuses"] = rows
    made["status"]["conditions"].append({"type": "Initialized", "status": str(initialized)})
    return made


@pytest.mark.parametrize(
    ("made", "state"),
    [
        pytest.param(starting(running(), NEXT), "Init:0/2", id="the-first-one-runs"),
        pytest.param(starting(DONE, running()), "Init:1/2", id="the-second-one-runs"),
        pytest.param(starting(NEXT, NEXT), "Init:0/2", id="none-runs-yet"),
        pytest.param(starting(DONE, ended(1), NEXT), "Init:Error", id="one-failed"),
        pytest.param(starting(waiting("CrashLoopBackOff"), NEXT), "Init:CrashLoopBackOff", id="one-fails-again"),
        pytest.param(starting(ended(3, ""), NEXT), "Init:ExitCode:3", id="one-failed-without-a-reason"),
        pytest.param(starting(DONE, running(), beside=True), "PodInitializing", id="one-runs-beside-the-others"),
        pytest.param(starting(ended(255, "Unknown"), initialized=True), "Running", id="a-node-that-was-restarted"),
    ],
)
def test_init_containers(made: Object, state: str) -> None:
    """Those with volumes have two, and one of them works or fails."""
    assert state_of(made) == state


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (running(), "Running"),
        (waiting("ContainerCreating"), "ContainerCreating"),
        (ended(137, "OOMKilled"), "OOMKilled"),
        (ended(3, ""), "ExitCode:3"),
        ({"terminated": {"exitCode": 143, "signal": 15}}, "Signal:15"),
        (None, "Pending"),
    ],
)
def test_its_container(state: Object | None, word: str) -> None:
    assert state_of(pod(SET, state=state)) == word


def test_a_pod_that_was_evicted() -> None:
    """Its containers may be gone: the reason is the pod's own."""
    made = pod(SET)
    made["status"] |= {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}

    assert state_of(made) == "Evicted"


def test_a_pod_that_ends() -> None:
    """One that has ended already, such as a job's, is not about to end."""
    made = pod(SET, state=running(), going=True)
    assert state_of(made) == "Terminating"

    made = pod(SET, state=DONE, going=True)
    made["status"]["phase"] = "Succeeded"
    assert state_of(made) == "Completed"


@pytest.mark.parametrize(("ready", "word"), [(True, "Running"), (False, "NotReady")])
def test_a_container_that_has_completed_beside_another(*, ready: bool, word: str) -> None:
    made = pod(SET, state=DONE, ready=ready)
    made["status"]["containerStatuses"].append({"name": "mesh", "state": running()})

    assert state_of(made) == word
