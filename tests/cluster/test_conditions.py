"""How a workload stands, from what the cluster holds: what it waits for, and which failures no waiting mends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, workload_status
from composeplat.cluster.jobs import job_failure_cause
from composeplat.cluster.refused_pods import refused_owners
from composeplat.cluster.snapshot import Object
from composeplat.codes.causes import CauseCode
from composeplat.names import SERVICE_LABEL
from tests.cluster.objects import (
    IMAGE,
    MOMENT,
    claim,
    daemon_set,
    deployment,
    ended,
    event,
    job,
    lost,
    pod,
    replica_set,
    running,
    snapshot,
    stateful_set,
    waiting,
)
from tests.steps import count_steps

WEB = deployment()
SET = replica_set(WEB)
POD = "web-7d4b9c6f2-x7k2p"
DB = stateful_set()
MIGRATE = job()
CRASHING: dict[str, Any] = {
    "state": waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
    "restarts": 2,
}
PULLING = waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')


def web(*held: Object, age: dict[str, float] | None = None) -> ServiceStatus:
    """How the Deployment stands, with its ReplicaSet and what else there is."""
    return workload_status("Deployment", "web", snapshot(WEB, SET, *held, age=age))


def status_of(workload: Object, *held: Object) -> ServiceStatus:
    """How a workload of any kind stands, with what else there is."""
    return workload_status(workload["kind"], workload["metadata"]["name"], snapshot(workload, *held))


def failed(cause: Cause, *pods: str) -> ServiceStatus:
    return ServiceStatus(state=WorkloadState.FAILED, message=cause.message, ready=0, desired=1, cause=cause, pods=pods)


# conditions -----------------------------------------------------------------------------------------------------------


# absent and not yet seen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("Deployment", "db", id="another-name"),
        pytest.param("StatefulSet", "web", id="another-kind"),
    ],
)
def test_absent(kind: str, name: str) -> None:
    """A workload that is not there is absent, whatever has its name or kind."""
    ready = pod(SET, state=running(), ready=True)

    assert ServiceStatus(state=WorkloadState.ABSENT, message="does not exist yet") == workload_status(
        kind, name, snapshot(WEB, SET, ready)
    )


def test_a_workload_that_is_being_deleted() -> None:
    """It is not ready, although its pods still are."""
    going = {**WEB, "metadata": {**WEB["metadata"], "deletionTimestamp": "2025-06-01T12:00:00Z"}}
    found = workload_status("Deployment", "web", snapshot(going, SET, pod(SET, state=running(), ready=True)))

    assert (found.state, found.message) == (WorkloadState.WAITING, "is being deleted")


@pytest.mark.parametrize(
    ("workload", "owner"),
    [
        pytest.param(deployment(observed=1), SET, id="deployment"),
        pytest.param(stateful_set(observed=1), DB, id="stateful-set"),
        pytest.param({**DB, "status": {}}, DB, id="no-status"),
    ],
)
def test_not_yet_observed(workload: Object, owner: Object) -> None:
    """Until a controller has seen the last change, the pods that are there say nothing."""
    ready = pod(owner, state=running(), ready=True)

    assert ServiceStatus(state=WorkloadState.WAITING, message="is being updated") == status_of(workload, SET, ready)


# steady workloads that get there --------------------------------------------------------------------------------------


def test_no_pod_yet() -> None:
    """Without a pod a workload waits, and there is no more to say."""
    assert ServiceStatus(state=WorkloadState.WAITING, message="0/1 ready", desired=1) == web()


def test_deployment_ready() -> None:
    """A Deployment is ready when as many pods are as are wanted."""
    workload = deployment(replicas=2)
    pods = [pod(SET, suffix, state=running(), ready=True) for suffix in ("aaaaa", "bbbbb")]
    names = ("web-7d4b9c6f2-aaaaa", "web-7d4b9c6f2-bbbbb")

    assert ServiceStatus(state=WorkloadState.READY, message="2/2 ready", ready=2, desired=2, pods=names) == status_of(
        workload, SET, *pods
    )


def test_stateful_set_ready() -> None:
    """A StatefulSet is ready when as many pods are as are wanted."""
    ready = pod(DB, "0", state=running(), ready=True)

    assert ServiceStatus(
        state=WorkloadState.READY, message="1/1 ready", ready=1, desired=1, pods=("db-0",)
    ) == status_of(DB, ready)


def test_daemon_set_ready() -> None:
    """A DaemonSet is ready when each node has a pod of its latest template."""
    workload = daemon_set(nodes=2)
    pods = [pod(workload, suffix, state=running(), ready=True) for suffix in ("aaaaa", "bbbbb")]
    names = ("agent-aaaaa", "agent-bbbbb")

    expected = ServiceStatus(state=WorkloadState.READY, message="2/2 ready", ready=2, desired=2, pods=names)
    assert status_of(workload, *pods) == expected
    assert status_of(daemon_set(nodes=0)) == ServiceStatus(state=WorkloadState.READY, message="runs on no node")


def test_daemon_set_with_pods_of_an_old_template() -> None:
    """Its pods of an earlier generation are not counted, unless their template is the latest again."""
    workload = daemon_set(nodes=2, updated=1)
    pods = [pod(workload, "old00", state=running(), ready=True, revision=1), pod(workload, "new00", revision=2)]

    found = status_of(workload, *pods)
    assert (found.ready, found.desired, found.pods) == (0, 2, ("agent-new00",))
    again = status_of(daemon_set(nodes=2), *pods)
    assert (again.ready, again.pods) == (1, ("agent-old00", "agent-new00"))


def test_the_default_of_replicas_is_one() -> None:
    """A workload that does not say how many pods it wants wants one."""
    assert status_of({**WEB, "spec": {}}, SET).desired == 1


def test_some_of_several_ready() -> None:
    """While a pod is missing, the others are counted and the missing one is reported of."""
    pods = [
        pod(SET, "aaaaa", state=running(), ready=True),
        pod(SET, "bbbbb", state=waiting("ContainerCreating")),
    ]

    expected = ServiceStatus(
        state=WorkloadState.STARTED,
        message="1/2 ready, creating its container",
        ready=1,
        desired=2,
        pods=("web-7d4b9c6f2-aaaaa", "web-7d4b9c6f2-bbbbb"),
    )

    assert expected == status_of(deployment(replicas=2), SET, *pods)


@pytest.mark.parametrize(
    ("made", "state", "message"),
    [
        pytest.param(pod(SET), WorkloadState.WAITING, "creating its pod", id="no-container-yet"),
        pytest.param(
            pod(SET, state=waiting("PodInitializing")), WorkloadState.WAITING, "creating its pod", id="initializing"
        ),
        pytest.param(
            pod(SET, state=waiting("ContainerCreating")),
            WorkloadState.WAITING,
            "creating its container",
            id="container-creating",
        ),
        pytest.param(
            pod(SET, state=waiting("ErrImagePull")),
            WorkloadState.WAITING,
            "its image could not be pulled yet",
            id="first-pull-failed",
        ),
        pytest.param(
            pod(SET, state=waiting("CrashLoopBackOff")),
            WorkloadState.WAITING,
            "it crashed, and is being restarted",
            id="first-crash",
        ),
        pytest.param(pod(SET, state=waiting("Dreaming")), WorkloadState.WAITING, "Dreaming", id="unknown-reason"),
        pytest.param(
            pod(SET, scheduling_failure="0/1 nodes are available"),
            WorkloadState.WAITING,
            "no node can run it yet: 0/1 nodes are available",
            id="no-node-yet",
        ),
        pytest.param(pod(SET, state=running()), WorkloadState.STARTED, "started, not ready yet", id="running"),
    ],
)
def test_the_reason_of_a_wait(made: Object, state: WorkloadState, message: str) -> None:
    """A pod on its way says in a few words how far it is; it has started once a container runs."""
    assert ServiceStatus(state=state, message=f"0/1 ready, {message}", desired=1, pods=(POD,)) == web(made)


def test_pulling() -> None:
    """A container that is created is distinguished from one whose image is on its way."""
    made = pod(SET, state=waiting("ContainerCreating"))

    assert web(made, event(made, "Pulling", kind="Normal")).message == "0/1 ready, pulling its image"


def test_pulling_of_another_pod() -> None:
    """The events of another pod say nothing of this one."""
    made, other = pod(SET, state=waiting("ContainerCreating")), pod(SET, "other")

    assert web(made, event(other, "Pulling", kind="Normal")).message == "0/1 ready, creating its container"


def test_init_container() -> None:
    """A pod that prepares its containers waits for an image, or for an init container, which is named."""
    made = pod(SET, state=waiting("PodInitializing"))
    made["status"]["initContainerStatuses"] = [
        {"name": "tools", "state": ended(0)},
        {"name": "fill-data", "state": waiting("PodInitializing")},
    ]
    pulling, pulled = event(made, "Pulling", kind="Normal", count=2), event(made, "Pulled", kind="Normal", count=2)
    messages = [web(made, *events).message for events in ((pulling,), (pulling, pulled))]
    made["status"]["initContainerStatuses"][1]["state"] = running()
    messages.append(web(made, pulling, pulled).message)

    assert messages == [
        "0/1 ready, pulling its image",
        "0/1 ready, creating its pod",
        "0/1 ready, init container 'fill-data' runs",
    ]


@pytest.mark.parametrize("workload", [deployment(replicas=0), stateful_set(replicas=0)], ids=lambda item: item["kind"])
def test_scaled_to_zero(workload: Object) -> None:
    """A workload that is to have no pods is ready without one."""
    assert ServiceStatus(state=WorkloadState.READY, message="is scaled to 0") == status_of(workload)


# only the present revision --------------------------------------------------------------------------------------------


def test_old_pods_still_ending() -> None:
    """A Deployment is not ready before the pods of the revision before are gone."""
    workload, old = deployment(total=2), replica_set(WEB, 1)
    pods = [pod(SET, state=running(), ready=True), pod(old, state=running(), ready=True)]
    message = "1/1 ready, 1 old pod still ending"
    expected = ServiceStatus(state=WorkloadState.STARTED, message=message, ready=1, desired=1, pods=(POD,))

    assert expected == status_of(workload, SET, old, *pods)


def test_pods_not_counted_yet() -> None:
    """A ready pod counts once the Deployment's own count has it: until then, others may still be there."""
    status = status_of(deployment(updated=0, total=1), SET, pod(SET, state=running(), ready=True))

    assert ServiceStatus(state=WorkloadState.WAITING, message="0/1 ready", desired=1) == status


def test_old_pods_before_the_new_replica_set() -> None:
    """Where a deploy scales and changes a Deployment, its old pods are seen before its new ReplicaSet is made."""
    crashing = pod(SET, **CRASHING, last=ended(1))

    status = status_of(deployment(replicas=3, updated=0, total=5), SET, crashing)

    assert ServiceStatus(state=WorkloadState.WAITING, message="0/3 ready", desired=3) == status


def test_stateful_set_with_pods_to_spare() -> None:
    """A StatefulSet ends its old pods before it makes new ones: further ones are none of an older revision."""
    status = status_of(stateful_set(updated=1, total=2), pod(DB, "0", state=running(), ready=True))

    assert status.state is WorkloadState.READY


def test_old_deployment_pods_are_not_judged() -> None:
    """Pods of the revision before may crash as they like."""
    old = replica_set(WEB, 1)
    crashing = pod(old, **CRASHING, last=ended(1))
    status = status_of(deployment(total=2), SET, old, crashing, pod(SET, state=running()))
    message = "0/1 ready, started, not ready yet"

    assert ServiceStatus(state=WorkloadState.STARTED, message=message, desired=1, pods=(POD,)) == status


def test_old_stateful_set_pods_are_not_judged() -> None:
    """Pods of a StatefulSet's revision before may crash as they like."""
    crashing = pod(DB, "0", **CRASHING, last=ended(1), revision=1)

    status = status_of(stateful_set(updated=0, total=1), crashing)

    assert ServiceStatus(state=WorkloadState.WAITING, message="0/1 ready", desired=1) == status


@pytest.mark.parametrize(
    ("workload", "owners", "manifest"),
    [
        pytest.param(
            WEB, [replica_set(WEB, 1)], pod(replica_set(WEB, 1), state=running(), ready=True), id="old-replica-set"
        ),
        pytest.param(DB, [], pod(DB, "0", state=running(), ready=True, revision=1), id="old-revision"),
        pytest.param(
            WEB,
            [replica_set(deployment("site"))],
            pod(replica_set(deployment("site")), state=running(), ready=True),
            id="another-deployment",
        ),
        pytest.param(DB, [], pod(stateful_set("cache"), "0", state=running(), ready=True), id="another-stateful-set"),
    ],
)
def test_pods_that_do_not_count(workload: Object, owners: list[Object], manifest: Object) -> None:
    """A ready pod of another revision or of another workload does not make this one ready."""
    assert ServiceStatus(state=WorkloadState.WAITING, message="0/1 ready", desired=1) == status_of(
        workload, *owners, manifest
    )


@pytest.mark.parametrize(
    ("workload", "owners", "made"),
    [
        pytest.param(WEB, [SET], pod(SET, state=running(), ready=True, going=True), id="deployment"),
        pytest.param(DB, [], pod(DB, "0", state=running(), ready=True, going=True), id="stateful-set"),
        pytest.param(DB, [], pod(DB, "0", state=running(), ready=True, going=True, revision=1), id="old-revision"),
    ],
)
def test_pods_that_end(workload: Object, owners: list[Object], made: Object) -> None:
    """A ready pod that is being deleted does not count, and its place is free once it has ended."""
    message = f"0/1 ready, {made['metadata']['name']} is still ending"

    assert ServiceStatus(state=WorkloadState.WAITING, message=message, desired=1) == status_of(workload, *owners, made)


# nodes that do not report ---------------------------------------------------------------------------------------------

SILENCE = "its node 'node-1' does not report"
SILENT_HINT = (
    "kubectl describe node node-1 says since when; if it is gone for good, kubectl delete node node-1 lets its pods go"
)


def test_a_pod_whose_node_does_not_report() -> None:
    """It is not called one that starts, and a health check that failed while it started is not why it is not ready."""
    made = lost(pod(SET, state=running(), probe=PROBE))
    failures = event(made, "Unhealthy", "Readiness probe failed: refused", count=9)

    assert web(made, failures, age={"unready": 999}) == ServiceStatus(
        state=WorkloadState.STARTED, message=f"0/1 ready, {SILENCE}", desired=1, pods=(POD,), unreachable_node="node-1"
    )


def test_a_pod_with_a_readiness_gate() -> None:
    """Such a pod can have the same conditions, and its node is well."""
    made = lost(pod(SET, state=running()))
    made["spec"]["readinessGates"] = [{"conditionType": "example.com/balanced"}]

    assert web(made).message == "0/1 ready, started, not ready yet"


def test_a_pod_that_can_not_end() -> None:
    """A StatefulSet makes no other pod before it has ended, which it can't on such a node."""
    status = status_of(DB, lost(pod(DB, "0", state=running(), going=True)))

    assert (status.message, status.hint) == (f"0/1 ready, db-0 is still ending: {SILENCE}", SILENT_HINT)


def test_a_job_whose_node_does_not_report() -> None:
    """It is a problem, although its container counts as running."""
    made = job()
    status = status_of(made, lost(pod(made, state=running())))

    assert (status.state, status.is_as_meant) == (WorkloadState.STARTED, False)
    assert (status.message, status.hint) == (f"is running, {SILENCE}", SILENT_HINT)


# volumes that can't be mounted ----------------------------------------------------------------------------------------

STILL_ATTACHED = 'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node'


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([("FailedAttachVolume", STILL_ATTACHED)], f"its volumes can't be mounted yet: {STILL_ATTACHED}"),
        ([("FailedAttachVolume", STILL_ATTACHED), ("Pulled", "")], "creating its container"),
        ([("FailedMount", "failed to sync configmap cache: timed out")], "creating its container"),
    ],
    ids=["attached-elsewhere", "mounted-now", "a-moment"],
)
def test_a_volume_that_is_not_mounted(events: list[tuple[str, str]], message: str) -> None:
    """A pod that waits for a volume shows the message of its node."""
    made = pod(SET, state=waiting("ContainerCreating"))

    assert web(made, *(event(made, *found) for found in events)).message == f"0/1 ready, {message}"


# on-delete ------------------------------------------------------------------------------------------------------------

ON_DELETE = stateful_set(replicas=2, updated=0, total=2)
ON_DELETE["spec"]["updateStrategy"] = {"type": "OnDelete"}
BOTH = ("db-0", "db-1")
LEFT = "2 pods still run the old revision"


def old(suffix: str, **more: Any) -> Object:
    return pod(DB, suffix, revision=1, **more)


def test_on_delete_is_judged_by_the_pods_it_has() -> None:
    """Pods of the revision before count, and are named: nothing but their deletion replaces them."""
    pods = [old(suffix, state=running(), ready=True) for suffix in ("0", "1")]
    expected = ServiceStatus(
        state=WorkloadState.READY, message=f"2/2 ready, {LEFT}", ready=2, desired=2, pods=BOTH, outdated=BOTH,
        waits_for_outdated=True,
    )  # fmt: skip

    assert expected == status_of(ON_DELETE, *pods)
    assert expected.is_done


def test_an_outdated_pod_that_is_not_ready() -> None:
    """It is no reason to wait, as no deploy changes it; who depends on it waits for it all the same."""
    status = status_of(ON_DELETE, old("0", state=running(), ready=True), old("1", state=running()))

    assert (status.state, status.is_done, status.outdated) == (WorkloadState.STARTED, True, BOTH)


def test_an_outdated_pod_that_crashes() -> None:
    """Its failure names the fix: its deletion."""
    status = status_of(ON_DELETE, old("0", state=running(), ready=True), old("1", **CRASHING, last=ended(4)))

    assert (status.state, status.is_done) == (WorkloadState.FAILED, True)
    assert status.cause is not None
    assert status.cause.hint == "it runs the old revision: kubectl delete pod db-1"


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([old("0", state=running(), ready=True)], id="missing"),
        pytest.param([old("0", state=running(), ready=True), pod(DB, "1", state=running())], id="new-one-not-ready"),
        pytest.param(
            [old("0", state=running(), ready=True), old("1", state=running(), ready=True, going=True)], id="going"
        ),
    ],
)
def test_a_pod_of_the_new_revision_is_waited_for(held: list[Object]) -> None:
    """A pod that someone has deleted comes back with the new revision, which has to become ready."""
    assert not status_of(ON_DELETE, *held).is_done


# jobs -----------------------------------------------------------------------------------------------------------------

RUNNING_JOB = ServiceStatus(state=WorkloadState.STARTED, message="is running", desired=1, is_as_meant=True)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [pod(MIGRATE)],
            ServiceStatus(state=WorkloadState.WAITING, message="creating its pod", desired=1, pods=("migrate-x7k2p",)),
            id="pod-being-made",
        ),
        pytest.param(
            [pod(MIGRATE, state=running())],
            replace(RUNNING_JOB, pods=("migrate-x7k2p",)),
            id="running",
        ),
        pytest.param(
            [pod(MIGRATE, state=ended(0, "Completed"))],
            replace(RUNNING_JOB, pods=("migrate-x7k2p",)),
            id="ended-and-not-yet-counted",
        ),
        pytest.param(
            [pod(MIGRATE, state=ended(1)), pod(MIGRATE, "second", state=running())],
            replace(RUNNING_JOB, pods=("migrate-x7k2p", "migrate-second")),
            id="second-try",
        ),
        pytest.param(
            [pod(MIGRATE, **CRASHING, last=ended(1))],
            ServiceStatus(
                state=WorkloadState.WAITING,
                message="it crashed, and is being restarted",
                desired=1,
                pods=("migrate-x7k2p",),
            ),
            id="tries-left-in-the-same-pod",
        ),
    ],
)
def test_job_on_its_way(pods: list[Object], expected: ServiceStatus) -> None:
    """A Job has started once a pod of it ran; that a try failed is not the end of it."""
    assert expected == status_of(MIGRATE, *pods)


def test_job_without_a_pod() -> None:
    """A Job without a pod waits; pods of another one don't count."""
    status = status_of(MIGRATE, pod(job("seed"), state=running()))

    assert (status.state, status.pods) == (WorkloadState.WAITING, ())


def test_job_whose_container_has_just_ended() -> None:
    """Its pod never starts it again, and is about to be completed."""
    made = pod(MIGRATE, state=ended(0, "Completed"))
    made["spec"]["restartPolicy"], made["status"]["phase"] = "Never", "Running"

    assert status_of(MIGRATE, made).message == "its container ended"


def test_job_completed() -> None:
    """A Job is completed when its condition says so."""
    status = status_of(job(condition="Complete"), pod(MIGRATE, state=ended(0, "Completed")))
    expected = ServiceStatus(
        state=WorkloadState.COMPLETED, message="completed", ready=1, desired=1, pods=("migrate-x7k2p",)
    )

    assert expected == status


def test_job_condition_that_does_not_hold() -> None:
    """A condition counts only while it is true."""
    workload = job(condition="Complete")
    workload["status"]["conditions"][0]["status"] = "False"

    assert status_of(workload).state is WorkloadState.WAITING


@pytest.mark.parametrize(
    ("condition", "reason", "pods", "message", "status"),
    [
        pytest.param(
            "Failed",
            "BackoffLimitExceeded",
            [pod(MIGRATE, state=ended(3))],
            "failed with exit status 3",
            3,
            id="one-try",
        ),
        pytest.param(
            "FailureTarget",
            "BackoffLimitExceeded",
            [pod(MIGRATE, state=ended(3))],
            "failed with exit status 3",
            3,
            id="about-to-fail",
        ),
        pytest.param(
            "Failed",
            "BackoffLimitExceeded",
            [pod(MIGRATE, "first", state=ended(3), created="2025-06-01T11:00:00Z"), pod(MIGRATE, state=ended(3))],
            "failed with exit status 3, after 2 tries",
            3,
            id="two-tries",
        ),
        pytest.param(
            "Failed",
            "BackoffLimitExceeded",
            [pod(MIGRATE, **CRASHING, last=ended(4))],
            "failed with exit status 4",
            4,
            id="the-try-before-in-the-same-pod",
        ),
        pytest.param(
            "Failed",
            "DeadlineExceeded",
            [pod(MIGRATE, state=running())],
            "took longer than it may",
            None,
            id="deadline",
        ),
    ],
)
def test_job_failed(condition: str, reason: str, pods: list[Object], message: str, status: int | None) -> None:
    """A failed Job says how it ended, after how many tries, and which pod's log shows more."""
    cause = Cause(
        code=CauseCode.JOB_FAILED,
        message=message,
        origin=("command",),
        logs=True,
        pod="migrate-x7k2p",
        container="migrate",
        exit_status=status,
    )
    names = tuple(manifest["metadata"]["name"] for manifest in pods)

    assert failed(cause, *names) == status_of(job(condition=condition, reason=reason), *pods)


def test_job_failed_shows_the_last_try() -> None:
    """The log to show is that of the newest pod, in whatever order they are listed."""
    newest = pod(MIGRATE, "aaaaa", state=ended(1), created="2025-06-01T12:00:09Z")
    cause = status_of(job(condition="Failed"), newest, pod(MIGRATE, "bbbbb", state=ended(1))).cause

    assert cause is not None
    assert cause.pod == "migrate-aaaaa"


def test_job_failed_without_pods() -> None:
    """A failed Job whose pods are gone has no log to show, which is reported; how often it tried is still known."""
    gone = "its pods are gone, and their logs with them"
    cause = Cause(code=CauseCode.JOB_FAILED, message=f"failed; {gone}", origin=("command",), hint=RERUN)
    tried = {**job(condition="Failed"), "status": {**job(condition="Failed")["status"], "failed": 7}}

    assert failed(cause) == status_of(job(condition="Failed"))
    assert status_of(tried).message == f"failed, after 7 tries; {gone}"


RERUN = "run it again with --rerun-jobs"


@pytest.mark.parametrize(
    ("made", "message", "origin", "logs"),
    [
        pytest.param(pod(MIGRATE, state=ended(137, "OOMKilled")), "was killed: out of memory", "mem_limit", True,
                     id="memory"),
        pytest.param(pod(MIGRATE, state=ended(128, "StartError", "no such file")), "can't be started: no such file",
                     "command", False, id="start"),
        pytest.param(
            {**pod(MIGRATE), "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}},
            "failed: Evicted: low on memory", "command", True, id="evicted",
        ),
    ],
)  # fmt: skip
def test_how_a_try_ended(made: Object, message: str, origin: str, logs: bool) -> None:  # noqa: FBT001 -- a case
    """A try may end differently from by an exit status."""
    cause = status_of(job(condition="Failed"), made).cause

    assert cause is not None
    assert (cause.message, cause.origin, cause.logs) == (message, (origin,), logs)


TRYING = {**MIGRATE, "spec": {"backoffLimit": 2}}
FIRST = pod(MIGRATE, "first", state=ended(3), created="2025-06-01T11:00:00Z")
AGAIN = "failed with exit status 3 in try 1 of 3, and tries again"
RETRY = Cause(code=CauseCode.JOB_RETRIED, message=AGAIN, origin=("command",), logs=True, pod="migrate-first",
              container="migrate", exit_status=3)  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "state", "message"),
    [
        pytest.param([FIRST], WorkloadState.WAITING, AGAIN, id="between-tries"),
        pytest.param([FIRST, pod(MIGRATE)], WorkloadState.WAITING, "creating its pod", id="next-try-comes"),
        pytest.param(
            [FIRST, pod(MIGRATE, state=running())], WorkloadState.STARTED, f"is running; {AGAIN}", id="next-try"
        ),
    ],
)
def test_a_job_that_tries_again(pods: list[Object], state: WorkloadState, message: str) -> None:
    """A Job that has tries left has not failed, and says why its last try did."""
    names = tuple(manifest["metadata"]["name"] for manifest in pods)

    assert ServiceStatus(state=state, message=message, desired=1, pods=names, retry=RETRY) == status_of(TRYING, *pods)


def test_a_job_without_tries_left() -> None:
    """A Job that is about to be called failed does not try again."""
    status = status_of(MIGRATE, FIRST)

    assert (status.state, status.retry, status.message) == (WorkloadState.WAITING, None, "")


def disrupted(made: Object, reason: str, text: str = "") -> Object:
    """A pod that something else than its program ends."""
    conditions = [*made["status"]["conditions"], {"type": "DisruptionTarget", "status": "True", "reason": reason}]
    return {**made, "status": {**made["status"], "conditions": conditions, **({"message": text} if text else {})}}


def deleted(made: Object, at: str, grace: int = 0) -> Object:
    times = {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
    return {**made, "metadata": {**made["metadata"], **times}}


@pytest.mark.parametrize(
    ("tried", "message"),
    [
        pytest.param(
            disrupted(pod(MIGRATE, state=ended(143)), "EvictionByEvictionAPI"),
            "was evicted from its node",
            id="drained",
        ),
        pytest.param(
            disrupted(pod(MIGRATE, state=ended(137)), "PreemptionByScheduler"),
            "was evicted from its node, for a pod of higher priority",
            id="preempted",
        ),
        pytest.param(
            disrupted(pod(MIGRATE, state=ended(137)), "TerminationByKubelet", "The node was low on memory"),
            "was ended by its node: The node was low on memory",
            id="node pressure",
        ),
        pytest.param(
            disrupted(pod(MIGRATE, state=ended(137)), "OfAnotherRelease"), "was ended from outside", id="unknown reason"
        ),
        # Its deletion began 2 s before it ended.
        pytest.param(
            deleted(pod(MIGRATE, state=ended(143)), "2025-06-01T12:00:28Z", 30),
            "was deleted while it ran",
            id="deleted",
        ),
        pytest.param(
            deleted(pod(MIGRATE, state=running()), "2025-06-01T12:00:28Z", 30), "was deleted while it ran", id="ending"
        ),
    ],
)
def test_a_job_whose_pod_was_removed(tried: Object, message: str) -> None:
    """Its program has not failed: the next try is waited for, and only a Job without further tries has failed."""
    waits = ServiceStatus(state=WorkloadState.WAITING, message=message, desired=1, pods=("migrate-x7k2p",))
    cause = Cause(
        code=CauseCode.JOB_FAILED, message=message, hint=RERUN, logs=True, pod="migrate-x7k2p", container="migrate"
    )

    assert status_of(TRYING, tried) == waits
    new = pod(MIGRATE, "second", state=running(), created="2025-06-01T12:00:09Z")
    assert status_of(TRYING, tried, new) == replace(RUNNING_JOB, pods=("migrate-x7k2p", "migrate-second"))
    assert failed(cause, "migrate-x7k2p") == status_of(job(condition="Failed"), tried)


def test_a_job_whose_failed_pod_is_deleted() -> None:
    """A program that had failed before its pod was deleted has failed."""
    tried = deleted(FIRST, "2025-06-01T12:10:00Z")

    assert status_of(TRYING, tried).retry == RETRY


def test_a_job_that_failed_after_it_was_evicted() -> None:
    """A try that was evicted counts for the number of tries, as the controller counts it, and explains nothing."""
    evicted = disrupted(
        pod(MIGRATE, "early", state=ended(143), created="2025-06-01T10:00:00Z"), "EvictionByEvictionAPI"
    )
    retry = status_of(TRYING, FIRST, evicted).retry
    later = disrupted(pod(MIGRATE, "later", state=ended(143), created="2025-06-01T12:00:00Z"), "EvictionByEvictionAPI")

    assert retry is not None
    assert retry.message == "failed with exit status 3 in try 2 of 3, and tries again"
    assert status_of(TRYING, FIRST, later).retry == RETRY
    assert status_of(job(condition="Failed"), FIRST, later).message == "failed with exit status 3, after 2 tries"


def test_job_with_a_failing_pod() -> None:
    """What no waiting mends fails a Job before it has had a try."""
    cause = status_of(MIGRATE, pod(MIGRATE, state=waiting("InvalidImageName"))).cause

    assert cause is not None
    assert (cause.code, cause.pod, cause.container) == ("image-not-pulled", "migrate-x7k2p", "migrate")


# images ---------------------------------------------------------------------------------------------------------------

NOT_THERE = "there is no such image in its registry"
NOT_GIVEN = "the registry denied access"
NOT_REACHED = "its registry can't be reached from the cluster"
CORRECT, CREDENTIALS, SEE = (
    "correct the name or the tag, or push the image",
    "give the cluster the registry's credentials",
    "check that the registry runs, and its name",
)
RESOLVE = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": '


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        pytest.param(f"{RESOLVE}{IMAGE}: not found", NOT_THERE, CORRECT, id="not-found"),
        pytest.param("manifest unknown: manifest unknown", NOT_THERE, CORRECT, id="manifest-unknown"),
        pytest.param(
            f"{RESOLVE}pull access denied, repository does not exist or may require authorization",
            NOT_THERE,
            CORRECT,
            id="does-not-exist",
        ),
        pytest.param("NAME_UNKNOWN: repository name not known to registry", NOT_THERE, CORRECT, id="name-unknown"),
        pytest.param(
            f"{RESOLVE}failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized",
            NOT_GIVEN,
            CREDENTIALS,
            id="unauthorized",
        ),
        pytest.param(f"{RESOLVE}unexpected status: 403 Forbidden", NOT_GIVEN, CREDENTIALS, id="forbidden"),
        pytest.param("denied: requested access to the resource is denied", NOT_GIVEN, CREDENTIALS, id="denied"),
        pytest.param("no basic auth credentials", NOT_GIVEN, CREDENTIALS, id="no-credentials"),
        pytest.param(
            f"{RESOLVE}dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host",
            f"{NOT_REACHED}: lookup registry.example.com on 10.96.0.10:53: no such host",
            SEE,
            id="no-such-host",
        ),
        pytest.param(
            f"{RESOLVE}dial tcp 10.0.0.9:443: connect: connection refused",
            f"{NOT_REACHED}: connection refused",
            SEE,
            id="connection-refused",
        ),
        pytest.param(
            'failed to resolve reference "r/authentication:1": dial tcp 10.0.0.9:443: connect: connection refused',
            f"{NOT_REACHED}: connection refused",
            SEE,
            id="word-in-a-name",
        ),
        pytest.param(
            f"{'9f403a' * 10}aaaa: dial tcp 10.0.0.9:4013: connect: connection refused",
            f"{NOT_REACHED}: connection refused",
            SEE,
            id="number-in-a-digest-and-a-port",
        ),
        pytest.param(
            f"{RESOLVE}net/http: TLS handshake timeout", f"{NOT_REACHED}: TLS handshake timeout", SEE, id="timeout"
        ),
        pytest.param(
            f"{RESOLVE}tls: failed to verify certificate: x509: certificate signed by unknown authority",
            f"{NOT_REACHED}: x509: certificate signed by unknown authority",
            SEE,
            id="unknown-authority",
        ),
        pytest.param(f"{RESOLVE}unexpected EOF", NOT_REACHED, SEE, id="end-of-file"),
        pytest.param(
            "pull access denied, repository does not exist or may require authorization: no basic auth credentials",
            "the registry denied access",
            "give the cluster the registry's credentials",
            id="no-credentials",
        ),
        pytest.param(
            "429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit",
            "the rate limit of its registry is reached",
            "log in to the registry, which raises it, or wait",
            id="rate-limit",
        ),
        pytest.param(
            "failed to extract layer sha256:1: write /data/x: no space left on device",
            "the disk of the node is full",
            "free space there; of the local cluster: platform cluster prune --all",
            id="full-disk",
        ),
        pytest.param(
            "http: server gave HTTP response\nto HTTPS client",
            "http: server gave HTTP response to HTTPS client",
            "",
            id="other-words",
        ),
    ],
)
def test_image_not_pulled(text: str, why: str, hint: str) -> None:
    """An image that can't be pulled fails a service at once: the kubelet's event says why."""
    made = pod(SET, state=PULLING)
    events = [
        event(made, "Failed", f'Failed to pull image "{IMAGE}": {text}'),
        event(made, "Failed", "Error: ImagePullBackOff"),
    ]
    output = why if hint else f'Failed to pull image "{IMAGE}": {why}'
    cause = Cause(
        code=CauseCode.IMAGE_NOT_PULLED,
        has_subject=True,
        message=f"image '{IMAGE}' can't be pulled: {output}",
        origin=("image",),
        hint=hint,
        pod=POD,
        container="web",
    )

    assert failed(cause, POD) == web(made, *events)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param("not found", WorkloadState.FAILED, id="no-such-image"),
        pytest.param("manifest unknown", WorkloadState.FAILED, id="no-such-tag"),
        pytest.param("dial tcp: connection refused", WorkloadState.WAITING, id="registry-down"),
        pytest.param("401 Unauthorized", WorkloadState.WAITING, id="no-login"),
        pytest.param("", WorkloadState.WAITING, id="no-words"),
    ],
)
def test_the_first_pull(text: str, state: WorkloadState) -> None:
    """An image that its registry does not have is a failure at once; anything else may be over at the second try."""
    made = pod(SET, state=waiting("ErrImagePull", text))

    assert web(made).state is state
    assert web(made, event(made, "Failed", f'Failed to pull image "{IMAGE}": {text}')).state is state


def test_the_first_pull_by_digest() -> None:
    """It may have been pushed just now, and not be on all replicas of its registry."""
    made, given_up = (pod(SET, state=waiting(reason, "not found")) for reason in ("ErrImagePull", "ImagePullBackOff"))
    for found in (made, given_up):
        found["status"]["containerStatuses"][0]["image"] = f"{IMAGE}@sha256:{'0' * 64}"

    assert web(made).state is WorkloadState.WAITING
    assert web(given_up).state is WorkloadState.FAILED


def test_an_image_whose_pull_was_put_off() -> None:
    """The kubelet starts five pulls a second, reports the others as failed, and tries them again: no failure."""
    made = pod(SET, state=PULLING)
    put_off = event(made, "Failed", f'Failed to pull image "{IMAGE}": pull QPS exceeded')
    missing = event(made, "Failed", f'Failed to pull image "{IMAGE}": not found')

    assert web(made, put_off).state is WorkloadState.WAITING
    assert web(pod(SET, state=waiting("ImagePullBackOff", "pull QPS exceeded"))).state is WorkloadState.WAITING
    failures = [web(made, *events).cause for events in ((put_off, missing), (missing, put_off))]
    assert [found and found.hint for found in failures] == [CORRECT, CORRECT]


@pytest.mark.parametrize(
    ("reason", "text", "why", "hint"),
    [
        pytest.param("ImagePullBackOff", f"ErrImagePull: {IMAGE}: not found", NOT_THERE, CORRECT, id="no-event"),
        pytest.param(
            "InvalidImageName",
            "couldn't parse image name: not found",
            "the name is invalid",
            "correct the name",
            id="no-name",
        ),
        pytest.param(
            "ErrImageNeverPull",
            "Container image is not present with pull policy of Never",
            "Container image is not present with pull policy of Never",
            "load it into the nodes; an image of a build: platform deploy --build",
            id="never-pulled",
        ),
    ],
)
def test_image_not_pulled_in_the_message_of_the_pod(reason: str, text: str, why: str, hint: str) -> None:
    """Where no event says why, the pod's own words count; a name that is none needs no words."""
    made = pod(SET, state=waiting(reason, text))
    cause = Cause(
        code=CauseCode.IMAGE_NOT_PULLED,
        has_subject=True,
        message=f"image '{IMAGE}' can't be pulled: {why}",
        origin=("image",),
        hint=hint,
        pod=POD,
        container="web",
    )

    assert failed(cause, POD) == web(made, event(made, "Failed", f"Error: {reason}"), age={"unloaded": 30.0})


def test_an_image_that_was_just_loaded() -> None:
    """The node may not know it yet, and the kubelet asks again: only after a while it is missing."""
    state = web(pod(SET, state=waiting("ErrImageNeverPull", "not present")), age={"unloaded": 29.0}).state

    assert state is WorkloadState.WAITING


@pytest.mark.parametrize(("seconds", "state"), [(0.0, WorkloadState.WAITING), (31.0, WorkloadState.FAILED)])
def test_a_namespace_without_its_service_account(seconds: float, state: WorkloadState) -> None:
    """It comes with a controller that may just be starting again; after a while its absence is a failure."""
    text = 'pods "web-" is forbidden: error looking up service account team/default: serviceaccount "default" not found'
    made = deployment(updated=0, refused=text)
    owner = replica_set(made)
    assert workload_status("Deployment", "web", snapshot(made, owner, age={"unserved": seconds})).state is state


def test_a_container_that_runs_before_fails() -> None:
    """An image that can't be pulled is reported of a container that only prepares the pod, too."""
    made = deployment()
    owner = replica_set(made)
    row = pod(owner, state=waiting("PodInitializing"))
    row["status"]["initContainerStatuses"] = [
        {"name": "seed", "image": IMAGE, "restartCount": 0, "state": waiting("ImagePullBackOff", f"{IMAGE}: not found")}
    ]
    status = workload_status("Deployment", "web", snapshot(made, owner, row))
    assert status.cause is not None
    assert (status.cause.code, status.cause.container) == ("image-not-pulled", "seed")


@pytest.mark.parametrize(("exit_status", "state"), [(0, WorkloadState.WAITING), (1, WorkloadState.FAILED)])
def test_an_init_container_after_a_restart_of_the_node(exit_status: int, state: WorkloadState) -> None:
    """With a new sandbox of the pod, an init container runs once more: that it ends is a failure only if it fails."""
    row = pod(SET, state=waiting("PodInitializing"))
    end = ended(exit_status)["terminated"] | {"startedAt": MOMENT}
    row["status"]["initContainerStatuses"] = [
        {"name": "platform-tools", "image": IMAGE, "restartCount": 1, "state": {"terminated": end}}
    ]

    assert web(row).state is state


@pytest.mark.parametrize(
    ("container", "status", "expected"),
    [
        pytest.param(
            "platform-tools",
            {"state": waiting("ImagePullBackOff", "busybox: not found")},
            (
                "image-not-pulled",
                f"image '{IMAGE}' can't be pulled: there is no such image in its registry",
                "it fills new volumes: name one that the cluster can pull, with --fill-image",
                False,
            ),
            id="no tools",
        ),
        pytest.param(
            "platform-fill",
            {"state": waiting("CrashLoopBackOff"), "lastState": {"terminated": {"exitCode": 1}}, "restartCount": 1},
            (
                "volume-not-filled",
                "a volume can't be filled with the content of the image: exit status 1",
                "make it larger with `size`, or leave it empty with `nocopy`",
                True,
            ),
            id="full",
        ),
    ],
)
def test_a_volume_that_is_not_filled(container: str, status: Object, expected: tuple[str, str, str, bool]) -> None:
    """The cause is at the service's volumes, with the log of the container that fills them."""
    started = pod(SET, state=waiting("PodInitializing"))
    started["status"]["initContainerStatuses"] = [{"name": container, "image": IMAGE, "restartCount": 0, **status}]
    cause = web(started).cause

    assert cause is not None
    assert (cause.code, cause.message, cause.hint, cause.previous) == expected
    assert (cause.origin, cause.container) == (("volumes",), container)


def test_a_volume_of_a_job_that_is_not_filled() -> None:
    """A try of a job may fail before its own container starts."""
    tried = pod(SET, state=waiting("PodInitializing"))
    ended_with = {"state": {"terminated": {"exitCode": 1}}, "lastState": {}, "restartCount": 0}
    tried["status"]["initContainerStatuses"] = [{"name": "platform-fill", "image": IMAGE, **ended_with}]
    cause = job_failure_cause({"status": {}}, {}, [tried])

    assert cause.message == "a volume can't be filled with the content of the image: exit status 1"
    assert (cause.code, cause.container, cause.logs) == (CauseCode.JOB_FAILED, "platform-fill", True)


def test_long_messages_are_shortened() -> None:
    """Words that nobody would read to the end are cut, and kept on one line."""
    cause = web(pod(SET, state=waiting("ErrImageNeverPull", "a\tb\n" * 200)), age={"unloaded": 30.0}).cause

    assert cause is not None
    assert cause.message == f"image '{IMAGE}' can't be pulled: {'a b ' * 74}a b…"


# crashes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "message", "hint"),
    [
        pytest.param(ended(1), "crashes with exit status 1", "", id="exit-status"),
        pytest.param(ended(127), "crashes with exit status 127", "the program to run was not found", id="not-found"),
        pytest.param(
            ended(137),
            "crashes with exit status 137",
            "killed, by its liveness check or probably out of memory",
            id="killed",
        ),
        pytest.param(
            ended(0, "Completed"),
            "ends by itself, with exit status 0",
            'if that is meant, say restart: "no", which makes it a job',
            id="ends-well",
        ),
    ],
)
def test_crash_loop(last: Object, message: str, hint: str) -> None:
    """A container that crashed again after its restart fails its service; the log is that of the crash."""
    cause = Cause(
        code=CauseCode.CRASH_LOOP,
        message=f"{message} (3 times)",
        origin=("command",),
        hint=hint,
        logs=True,
        previous=True,
        pod=POD,
        container="web",
        exit_status=last["terminated"]["exitCode"],
    )

    assert failed(cause, POD) == web(pod(SET, **CRASHING, last=last))


def test_out_of_memory() -> None:
    """A container that was killed for its memory is to blame on its limit, whatever its exit status."""
    cause = Cause(
        code=CauseCode.CRASH_LOOP,
        message="was killed: out of memory (3 times)",
        origin=("mem_limit",),
        hint="raise its memory limit",
        logs=True,
        previous=True,
        pod=POD,
        container="web",
        exit_status=137,
    )

    assert failed(cause, POD) == web(pod(SET, **CRASHING, last=ended(137, "OOMKilled")))


def test_start_error() -> None:
    """A container that never ran has the runtime's words for it, and no log."""
    text = 'exec: "serve": executable file not found in $PATH'
    cause = Cause(
        code=CauseCode.CRASH_LOOP,
        message=f"can't be started: {text} (3 times)",
        origin=("command",),
        hint="check that the image has that program",
        pod=POD,
        container="web",
        exit_status=128,
    )

    assert failed(cause, POD) == web(pod(SET, **CRASHING, last=ended(128, "StartError", text)))


def test_crashes_are_counted() -> None:
    """There is one crash more than there were restarts."""
    cause = web(pod(SET, state=waiting("CrashLoopBackOff"), last=ended(1), restarts=1)).cause

    assert cause is not None
    assert cause.message == "crashes with exit status 1 (2 times)"


@pytest.mark.parametrize(("moment", "is_old"), [("2025-06-01T12:00:14Z", False), ("2025-06-01T12:00:16Z", True)])
def test_an_old_crash(moment: str, *, is_old: bool) -> None:
    """What made it crash may be mended since, while the kubelet pauses before it starts the container again."""
    hints: dict[int, str] = {}
    for status in (1, 127):
        crashing = pod(SET, **CRASHING, last=ended(status))
        cause = workload_status("Deployment", "web", snapshot(WEB, SET, crashing, moment=moment)).cause
        assert cause is not None
        hints[status] = cause.hint

    mended = "if its cause is mended by now, 'platform restart' starts it at once"
    assert hints == {1: mended if is_old else "", 127: "the program to run was not found"}


def again(*, finished: str, going: bool = False, reason: str = "Error") -> Object:
    """A pod whose container started at 12:00:20, after a crash, and ended."""
    end = {**ended(1, reason)["terminated"], "startedAt": "2025-06-01T12:00:20Z", "finishedAt": finished}
    return pod(SET, state={"terminated": end}, last=ended(1), restarts=1, going=going)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        pytest.param(again(finished="2025-06-01T12:00:21Z"), "crash-loop", id="after-a-second"),
        pytest.param(again(finished="2025-06-01T12:01:21Z"), "", id="after-a-minute"),
        pytest.param(again(finished="2025-06-01T12:00:21Z", going=True), "", id="as-its-pod-is-deleted"),
        pytest.param(again(finished="2025-06-01T12:00:21Z", reason="Unknown"), "", id="as-its-node-was-off"),
    ],
)
def test_a_second_crash_before_the_kubelet_waits(made: Object, code: str) -> None:
    """A container that ends soon after its restart has failed, before the kubelet reports a crash loop."""
    cause = web(made).cause

    assert (cause.code if cause else "") == code
    assert cause is None or not cause.previous


@pytest.mark.parametrize(
    ("moment", "state"),
    [
        pytest.param("2025-06-01T12:00:31Z", WorkloadState.FAILED, id="a-moment-ago"),
        pytest.param("2025-06-01T12:00:41Z", WorkloadState.WAITING, id="before-the-node-was-off"),
    ],
)
def test_an_end_that_the_kubelet_has_not_seen_yet(moment: str, state: WorkloadState) -> None:
    """Where a cluster was stopped and started again, its containers have ended, and that is no failure."""
    stopped = again(finished="2025-06-01T12:00:21Z")
    found = workload_status("Deployment", "web", snapshot(WEB, SET, stopped, moment=moment))

    assert found.state == state
    if state == WorkloadState.WAITING:
        assert found.message == "0/1 ready, its container ended, and is not restarted yet"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
@pytest.mark.parametrize(
    ("successor", "state"),
    [
        pytest.param(pod(SET, "z9k2p"), WorkloadState.WAITING, id="not-yet-created"),
        pytest.param(pod(SET, "z9k2p", state=running(), ready=True), WorkloadState.READY, id="ready"),
    ],
)
def test_a_pod_that_its_node_has_ended(phase: str, successor: Object, state: WorkloadState) -> None:
    """An evicted pod, or one of a node that was shut down, stays as an object: it neither runs nor is asked."""
    evicted = pod(SET, "a1b2c", state=ended(0, "Completed"))
    evicted["status"] |= {"phase": phase, "podIP": "10.0.0.7"}
    found = workload_status("Deployment", "web", snapshot(WEB, SET, evicted, successor))

    assert (found.state, found.pods) == (state, (successor["metadata"]["name"],))


@pytest.mark.parametrize(
    ("workload", "owners"),
    [
        pytest.param(WEB, [SET], id="deployment"),
        pytest.param(DB, [], id="stateful-set"),
        pytest.param(MIGRATE, [], id="job"),
    ],
)
def test_a_pod_that_the_kubelet_refuses(workload: Object, owners: list[Object]) -> None:
    """No waiting mends a forbidden sysctl: the next pod is refused too. While a new pod is alive, nothing is known."""
    owner = owners[0] if owners else workload
    refused, made = pod(owner, "a1b2c"), pod(owner, "z9k2p")
    message = 'Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted'
    refused["status"] = {"phase": "Failed", "reason": "SysctlForbidden", "message": message}

    cause = status_of(workload, *owners, refused).cause
    assert cause is not None
    assert (cause.code, cause.origin) == ("pod-refused", ("sysctls",))
    assert cause.message == 'its pods are refused by their node: forbidden sysctl: "net.core.somaxconn" not allowlisted'
    assert status_of(workload, *owners, refused, made).cause is None


def database(*, since: str, ready: bool = True) -> Object:
    """A pod of another service, and since when it is ready, or not."""
    made = pod(DB, "0", state=running(), ready=ready)
    made["metadata"]["labels"] = {SERVICE_LABEL: "db"}
    made["status"]["conditions"][-1]["lastTransitionTime"] = since
    return made


def crashing(status: int = 1, *, restarts: int = 1, reason: str = "Error") -> Object:
    """A pod whose container started at 12:00:20 and ended."""
    last = {"terminated": {**ended(status, reason)["terminated"], "startedAt": "2025-06-01T12:00:20Z"}}
    return pod(SET, state=waiting("CrashLoopBackOff"), last=last, restarts=restarts)


@pytest.mark.parametrize(
    ("made", "other", "state"),
    [
        pytest.param(crashing(), database(ready=False, since=MOMENT), WorkloadState.WAITING, id="another-is-not-ready"),
        pytest.param(
            crashing(), database(since="2025-06-01T12:00:15Z"), WorkloadState.WAITING, id="another-is-ready-for-5-s"
        ),
        pytest.param(
            crashing(), database(since="2025-06-01T12:00:09Z"), WorkloadState.FAILED, id="another-is-ready-for-11-s"
        ),
        pytest.param(crashing(restarts=4), database(ready=False, since=MOMENT), WorkloadState.FAILED, id="too-often"),
        pytest.param(crashing(127), database(ready=False, since=MOMENT), WorkloadState.FAILED, id="program-not-found"),
        pytest.param(crashing(0), database(ready=False, since=MOMENT), WorkloadState.FAILED, id="ends-well"),
        pytest.param(
            crashing(137, reason="OOMKilled"), database(ready=False, since=MOMENT), WorkloadState.FAILED, id="memory"
        ),
    ],
)
def test_a_crash_while_another_service_is_not_ready(made: Object, other: Object, state: WorkloadState) -> None:
    """Programs that end while their database does not answer get a few restarts before they fail a deploy."""
    assert web(made, other).state is state


@pytest.mark.parametrize(
    ("reason", "text", "state"),
    [
        pytest.param("ImagePullBackOff", "not found", WorkloadState.FAILED, id="no-image"),
        pytest.param("ErrImagePull", "dial tcp", WorkloadState.WAITING, id="maybe-no-image"),
        pytest.param("CrashLoopBackOff", "", WorkloadState.WAITING, id="it-crashes-too"),
    ],
)
def test_a_crash_while_another_service_never_starts(reason: str, text: str, state: WorkloadState) -> None:
    """Nothing comes of waiting for a database that can't be there."""
    other = pod(DB, "0", state=waiting(reason, text))
    other["metadata"]["labels"] = {SERVICE_LABEL: "db"}

    assert web(crashing(), other).state is state


@pytest.mark.parametrize(
    ("made", "state"),
    [
        pytest.param(
            pod(SET, state=waiting("CrashLoopBackOff"), last=ended(1), restarts=0),
            WorkloadState.WAITING,
            id="not-restarted",
        ),
        pytest.param(pod(SET, state=running(), last=ended(1), restarts=5), WorkloadState.STARTED, id="runs-again"),
        pytest.param(pod(SET, state=ended(1), restarts=0), WorkloadState.WAITING, id="just-ended"),
    ],
)
def test_one_crash_is_forgiven(made: Object, state: WorkloadState) -> None:
    """A container that is not held back by its crashes, or had but one, may still come up."""
    assert web(made).state is state


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("CreateContainerConfigError", id="config"),
        pytest.param("CreateContainerError", id="create"),
        pytest.param("RunContainerError", id="run"),
    ],
)
def test_not_started(reason: str) -> None:
    """A container that can't be made fails its service once that has lasted; before, it waits for that reason."""
    made = pod(SET, state=waiting(reason, 'secret "web-env"\nnot found'))
    cause = Cause(
        code=CauseCode.NOT_STARTED,
        message='can\'t be started: secret "web-env" not found',
        origin=("command",),
        pod=POD,
        container="web",
    )

    message = '0/1 ready, can\'t be started yet: secret "web-env" not found'
    assert failed(cause, POD) == web(made, age={"unmade": 5.0})
    assert ServiceStatus(state=WorkloadState.WAITING, message=message, desired=1, pods=(POD,)) == web(
        made, age={"unmade": 4.9}
    )


def test_a_user_that_may_not_be_root() -> None:
    """In a pod that must not run as root, the user of the image is the cause."""
    text = "container has runAsNonRoot and image will run as root"
    status = web(pod(SET, state=waiting("CreateContainerConfigError", text)), age={"unmade": 5.0})

    assert status.cause is not None
    assert (status.cause.message, status.cause.origin) == (f"can't be started: {text}", ("user",))
    assert status.cause.hint == "give the number of another user than root with 'user'"


@pytest.mark.parametrize(
    ("text", "found", "origin"),
    [
        pytest.param(
            'MountVolume.SetUp failed for volume "secret-a" : secret "shop-a" not found',
            'secret "shop-a" not found',
            "secrets",
            id="secret",
        ),
        pytest.param(
            'MountVolume.SetUp failed for volume "c" : configmap "c" not found', 'configmap "c" not found', "configs",
            id="config",
        ),
        pytest.param(
            'MountVolume.SetUp failed for volume "c" : references non-existent secret key: a.txt',
            "non-existent secret key: a.txt",
            "secrets",
            id="key",
        ),
    ],
)  # fmt: skip
def test_not_mounted(text: str, found: str, origin: str) -> None:
    """A Secret or ConfigMap that is not there fails the service once that has lasted; an old event does not."""
    made = pod(SET, state=waiting("ContainerCreating"))
    lacks = event(made, "FailedMount", text)
    cause = Cause(
        code=CauseCode.NOT_STARTED,
        message=f"can't be started: {found}",
        origin=(origin,),
        hint="create it again, if it is external; otherwise deploy again",
        pod=POD,
    )

    assert web(made, lacks, age={"unmounted": 5.0}) == failed(cause, POD)
    assert web(made, lacks, age={"unmounted": 4.9}).state is WorkloadState.WAITING
    assert web(made, lacks, event(made, "Pulling"), age={"unmounted": 99.0}).state is WorkloadState.WAITING
    assert web(made, event(made, "FailedMount", "timed out"), age={"unmounted": 99}).state is WorkloadState.WAITING


# nodes ----------------------------------------------------------------------------------------------------------------

CORDONED = "a node is cordoned, as for maintenance: kubectl get nodes shows which, kubectl uncordon NODE ends it"
ROOM = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available."


@pytest.mark.parametrize(
    ("message", "origin", "hint"),
    [
        pytest.param(
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            ("x-node-selector",),
            "label a node accordingly, or change the selector",
            id="node-selector",
        ),
        pytest.param(
            "0/3 nodes are available: 3 node(s) didn't match node selector.",
            ("x-node-selector",),
            "label a node accordingly, or change the selector",
            id="node-selector-in-older-words",
        ),
        pytest.param(
            "0/3 nodes are available: 1 Insufficient memory, 2 node(s) didn't match pod affinity rules.",
            ("volumes",),
            "services that share a volume run on one node, and that node is full",
            id="pod-affinity",
        ),
        pytest.param(ROOM, ("resources", "cpu"), "request less, or add capacity to the cluster", id="cpu"),
        pytest.param(
            "0/1 nodes are available: 1 Insufficient memory.",
            ("resources", "memory"),
            "request less, or add capacity to the cluster",
            id="memory",
        ),
        pytest.param(
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found',
            ("volumes",),
            "platform deploy --refresh creates the volume again, without the data it had",
            id="no-claim",
        ),
        pytest.param(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            ("volumes",),
            "",
            id="unbound-claim",
        ),
        pytest.param("0/1 nodes are available: 1 node(s) exceed max volume count.", ("volumes",), "", id="volumes"),
        pytest.param(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.",
            (),
            "the disk of the nodes is full: free space there; of the local cluster: platform cluster prune --all",
            id="full-disk",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }.",
            (),
            CORDONED,
            id="cordoned-as-a-taint",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate.",
            (),
            CORDONED,
            id="cordoned",
        ),
        pytest.param(
            "0/2 nodes are available: 1 node(s) were unschedulable, 1 Insufficient cpu.",
            ("resources", "cpu"),
            "request less, or add capacity to the cluster",
            id="cordoned-and-full",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) had untolerated taint {team: a}.",
            (),
            "kubectl describe nodes shows the taints, which nodes that are not ready have too: remove one, or add"
            " tolerations with x-kubernetes in full mode",
            id="taint",
        ),
        pytest.param(
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available.",
            (),
            "no node has enough 'nvidia.com/gpu' left: reserve less, add a node, or check its device plugin",
            id="device",
        ),
        pytest.param(
            "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.",
            ("deploy", "placement"),
            "it asks for more nodes, or for other ones",
            id="spread",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
            (),
            "another pod has that port of the node: network_mode: host lets one pod per node use it",
            id="ports",
        ),
        pytest.param(
            "0/1 nodes are available: 1 Too many pods.",
            (),
            "the nodes run as many pods as they may: scale services down, or add a node",
            id="pods",
        ),
        pytest.param("0/1 nodes are available: a plugin refused it.", (), "", id="others"),
    ],
)
def test_unschedulable(message: str, origin: tuple[str, ...], hint: str) -> None:
    """A pod that no node can run for a while fails its service, in the scheduler's words and with what to look at."""
    cause = Cause(
        code=CauseCode.UNSCHEDULABLE, message=f"no node can run it: {message}", origin=origin, hint=hint, pod=POD,
        has_subject=True,
    )  # fmt: skip

    assert failed(cause, POD) == web(pod(SET, scheduling_failure=message), age={"unscheduled": 8.0})


def test_unschedulable_by_a_limit() -> None:
    """Kubernetes requests the limit of a container that has no request, which Docker does not."""
    refused = pod(SET, scheduling_failure=ROOM)
    refused["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    cause = web(refused, age={"unscheduled": 8.0}).cause

    assert cause is not None
    hint = (
        "a limit is requested as a whole, unless deploy.resources.reservations asks for less: set that, or add capacity"
    )
    assert cause.hint == hint


def test_unschedulable_for_a_moment() -> None:
    """For some seconds a pod may find no node; the scheduler's words for it are reported at once."""
    status = web(pod(SET, scheduling_failure=ROOM), age={"unscheduled": 7.9})

    assert (
        ServiceStatus(state=WorkloadState.WAITING, message=f"0/1 ready, {WAITS}: {ROOM}", desired=1, pods=(POD,))
        == status
    )


WAITS = "no node can run it yet"
LATER, EARLIER = {"lastTimestamp": "2025-06-01T12:05:00Z"}, {"lastTimestamp": "2025-06-01T12:00:00Z"}
NOT_ADDED = "pod didn't trigger scale-up: 1 max node group size reached"
KARPENTER = {"source": {"component": "karpenter"}}


@pytest.mark.parametrize(
    ("events", "limit"),
    [
        pytest.param([], 8.0, id="nothing-said"),
        pytest.param([("TriggeredScaleUp", "Normal", LATER)], None, id="cluster-autoscaler"),
        pytest.param([("Nominated", "Normal", {**LATER, **KARPENTER})], None, id="karpenter"),
        pytest.param([("NotTriggerScaleUp", "Normal", LATER)], 60.0, id="refused"),
        pytest.param([("FailedScheduling", "Warning", {**LATER, **KARPENTER})], 60.0, id="refused-by-karpenter"),
        pytest.param(
            [("FailedScheduling", "Warning", {**LATER, "reportingComponent": "default-scheduler"})], 8.0,
            id="the-scheduler-itself",
        ),
        pytest.param([("FailedScheduling", "Warning", LATER)], 8.0, id="of-nobody"),
        pytest.param(
            [("TriggeredScaleUp", "Normal", LATER), ("NotTriggerScaleUp", "Normal", EARLIER)], None, id="refused-before"
        ),
        pytest.param(
            [("TriggeredScaleUp", "Normal", EARLIER), ("NotTriggerScaleUp", "Normal", LATER)], 60.0, id="refused-after"
        ),
    ],
)  # fmt: skip
def test_unschedulable_where_nodes_are_added(
    events: list[tuple[str, str, dict[str, Any]]], limit: float | None
) -> None:
    """While an autoscaler adds a node a pod may wait for long; what it refuses now it may do a little later."""
    made = pod(SET, scheduling_failure=ROOM)
    output = [event(made, reason, NOT_ADDED, kind=kind, **more) for reason, kind, more in events]

    def state(age: float) -> WorkloadState:
        return web(made, *output, age={"unscheduled": age}).state

    if limit is None:
        assert state(10_000.0) is WorkloadState.WAITING
    else:
        assert (state(limit - 0.1), state(limit)) == (WorkloadState.WAITING, WorkloadState.FAILED)


@pytest.mark.parametrize("taint", ["(s)", " {node.kubernetes.io/not-ready: }", " {node.kubernetes.io/unreachable: }"])
def test_a_tainted_node(taint: str) -> None:
    """The taint of a node that was asleep goes away by itself, after more than the usual time."""
    made = pod(SET, scheduling_failure=f"0/1 nodes are available: 1 node(s) had untolerated taint{taint}.")

    states = [web(made, age={"unscheduled": age}).state for age in (8.0, 29.9, 30.0)]

    assert states == [WorkloadState.WAITING, WorkloadState.WAITING, WorkloadState.FAILED]


def test_an_autoscaler_that_refuses() -> None:
    """Its words are reported behind the scheduler's."""
    made = pod(SET, scheduling_failure=ROOM)
    status = web(made, event(made, "NotTriggerScaleUp", NOT_ADDED, kind="Normal"), age={"unscheduled": 60.0})

    assert status.message == f"no node can run it: {ROOM}; the autoscaler adds no node: {NOT_ADDED}"


def test_room_that_is_being_made() -> None:
    """A node on its way is reported; the scheduler may make room by itself, too, and names the node then."""
    made = pod(SET, scheduling_failure=ROOM)
    preempting = {**made, "status": {**made["status"], "nominatedNodeName": "node-1"}}

    for held in ((made, event(made, "Nominated", kind="Normal")), (preempting,)):
        status = web(*held, age={"unscheduled": 10_000.0})
        assert (status.state, status.message) == (
            WorkloadState.WAITING,
            f"0/1 ready, {WAITS}: a node is being prepared",
        )


ENDING = pod(SET, "b9c4d", state=running(), going=True)
NEVER_FREE = pod(SET, "b9c4d", scheduling_failure=ROOM, going=True)
NO_LABEL = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."


@pytest.mark.parametrize(
    "taken",
    [
        "1 Insufficient cpu",
        "1 Too many pods",
        "1 node(s) didn't have free ports for the requested pod ports",
        "1 node(s) didn't match pod anti-affinity rules",
        "1 node(s) didn't match pod topology spread constraints",
        "1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        "1 node(s) exceed max volume count",
    ],
)
def test_room_that_an_old_pod_still_has(taken: str) -> None:
    """While a pod ends that may have what is missing, the new one waits for it; its time begins after that."""
    made = pod(SET, scheduling_failure=f"0/1 nodes are available: {taken}.")
    keys: set[str] = set()

    def age(key: str) -> float:
        keys.add(key)
        return 10_000.0

    held = replace(snapshot(WEB, SET, made, ENDING), age=age)
    status = workload_status("Deployment", "web", held)

    assert (status.state, status.message) == (WorkloadState.WAITING, f"0/1 ready, {WAITS}: an old pod is still ending")
    assert not [key for key in keys if key.startswith("unscheduled/")]


@pytest.mark.parametrize(
    ("message", "others"),
    [
        pytest.param(NO_LABEL, [ENDING], id="no-pod-has-it"),
        pytest.param(ROOM, [], id="none-ends"),
        pytest.param(ROOM, [NEVER_FREE], id="without-a-node"),
    ],
)
def test_room_that_no_old_pod_has(message: str, others: list[Object]) -> None:
    """Where nothing is freed by the end of a pod, a new one fails after the usual time."""
    status = web(pod(SET, scheduling_failure=message), *others, age={"unscheduled": 8.0})

    assert status.state is WorkloadState.FAILED


@pytest.mark.parametrize("has_autoscaler", [pytest.param(True, id="there"), pytest.param(None, id="unknown")])
def test_unschedulable_where_an_autoscaler_is(has_autoscaler: bool | None) -> None:  # noqa: FBT001 -- a case
    """A cluster that has an autoscaler, or may have one, is given its time before that has said a word."""
    made = pod(SET, scheduling_failure=ROOM)
    states = [
        workload_status(
            "Deployment",
            "web",
            replace(snapshot(WEB, SET, made, age={"unscheduled": age}), has_autoscaler=has_autoscaler),
        ).state
        for age in (59.9, 60.0)
    ]

    assert states == [WorkloadState.WAITING, WorkloadState.FAILED]


# volumes --------------------------------------------------------------------------------------------------------------

UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
LONG = {"unbound": 8.0, "unscheduled": 8.0}


def db(*held: Object, age: dict[str, float]) -> ServiceStatus:
    """How a StatefulSet stands whose pod waits for its claim."""
    made = pod(DB, "0", scheduling_failure=UNBOUND, claims=("data",))
    return workload_status("StatefulSet", "db", snapshot(DB, made, *held, age=age))


NO_CLASS = claim(storage_class=None)
REFUSED = event(claim(), "ProvisioningFailed", 'storageclass.storage.k8s.io "standard"\nnot found')


@pytest.mark.parametrize(
    ("held", "why"),
    [
        pytest.param([NO_CLASS], "the cluster has no default storage class", id="no-class"),
        pytest.param([claim(), REFUSED], 'storageclass.storage.k8s.io "standard" not found', id="provisioning-failed"),
        pytest.param([NO_CLASS, REFUSED], 'storageclass.storage.k8s.io "standard" not found', id="both"),
        pytest.param(
            [claim(), event(claim(), "ProvisioningFailed", "at first"), REFUSED],
            'storageclass.storage.k8s.io "standard" not found',
            id="the-last-words",
        ),
    ],
)
def test_volume_not_bound(held: list[Object], why: str) -> None:
    """A claim that gets no storage for a while fails the service that mounts it, and is reported instead of the pod."""
    cause = Cause(
        code=CauseCode.VOLUME_NOT_BOUND,
        has_subject=True,
        message=f"volume 'data' is not provisioned: {why}",
        origin=("volumes",),
        hint="set driver_opts.class to a storage class of the cluster",
        pod="db-0",
    )

    assert failed(cause, "db-0") == db(*held, age=LONG)


@pytest.mark.parametrize("held", [pytest.param([NO_CLASS], id="no-class"), pytest.param([claim(), REFUSED], id="told")])
def test_volume_not_bound_for_a_moment(held: list[Object]) -> None:
    """For some seconds a claim may get no storage."""
    assert db(*held, age={"unbound": 7.9, "unscheduled": 7.9}).state is WorkloadState.WAITING


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([claim(phase="Bound", storage_class=None), REFUSED], id="bound-by-now"),
        pytest.param([claim("other", storage_class=None)], id="of-another-service"),
        pytest.param([claim()], id="nothing-said-yet"),
    ],
)
def test_claims_that_are_not_the_cause(held: list[Object]) -> None:
    """A claim that is bound, another's, or of which nothing is known is not what keeps a pod from a node."""
    cause = db(*held, age=LONG).cause

    assert cause is not None
    assert cause.code == "unschedulable"


def without_node(made: Object) -> Object:
    """The pod before the scheduler has looked at it."""
    made["spec"].pop("nodeName", None)
    return made


DRIVER = "Waiting for a volume to be created by the external provisioner 'csi.example.com'"


@pytest.mark.parametrize("scheduling_failure", [UNBOUND, None])
@pytest.mark.parametrize("reason", ["Provisioning", "ExternalProvisioning"])
def test_volume_under_way(reason: str, scheduling_failure: str | None) -> None:
    """A volume may take minutes to be made: the pod waits for it, with what is known, before and after binding."""
    made = without_node(pod(DB, "0", scheduling_failure=scheduling_failure, claims=("data",)))
    news = event(claim(), reason, f"{DRIVER}. Is it there?", kind="Normal")
    held = snapshot(DB, made, claim(), news, age=dict.fromkeys(LONG, 600.0))
    found = workload_status("StatefulSet", "db", held)

    assert (found.state, found.message) == (WorkloadState.WAITING, f"0/1 ready, waiting for volume 'data': {DRIVER}")


def test_volume_of_a_pod_that_is_not_scheduled() -> None:
    """A class that binds at the first consumer holds a pod back without a condition: its claim has the reason."""
    made = without_node(pod(DB, "0", claims=("data",)))
    found = workload_status("StatefulSet", "db", snapshot(DB, made, claim(), REFUSED, age=LONG))

    assert found.cause is not None
    assert found.cause.code == "volume-not-bound"


# refused pods ---------------------------------------------------------------------------------------------------------

OVER = "exceeded quota: small, requested: cpu=2,memory=1Gi, used: cpu=1,memory=1Gi, limited: cpu=2,memory=2Gi"
OVER_QUOTA = Cause(
    code=CauseCode.OVER_QUOTA,
    message="exceeds the quota 'small': requests cpu=2,memory=1Gi, cpu=1,memory=1Gi of cpu=2,memory=2Gi used",
    origin=("resources", "cpu"),
    hint="request less, or raise the quota",
)
HOOK = 'admission webhook "policy.example.com" denied the request: no root, please'
AFTER_A_WHILE = "2025-06-01T12:00:05Z"
OLD = replica_set(WEB, revision=1)


def changed(item: Object) -> Object:
    """The object, changed a while after ``MOMENT``; its status was changed much later."""
    fields = [{"time": AFTER_A_WHILE}, {"time": "2025-06-01T13:00:00Z", "subresource": "status"}]
    return {**item, "metadata": {**item["metadata"], "managedFields": fields}}


def created(item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "creationTimestamp": AFTER_A_WHILE}}


def refused(item: Object) -> Object:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": HOOK}
    return {**item, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("text", "origin", "hint"),
    [
        pytest.param(
            'violates PodSecurity "restricted:latest": runAsNonRoot != true',
            (),
            "deploy with --pod-security restricted",
            id="pod-security",
        ),
        pytest.param(
            "failed quota: team: must specify limits.cpu for: web; limits.memory for: web",
            ("resources",),
            "set these under 'resources', or give the namespace a LimitRange with defaults",
            id="nothing-specified",
        ),
        pytest.param(
            "maximum cpu usage per Container is 500m, but limit is 2",
            ("resources", "cpu"),
            "keep the CPU within the namespace's LimitRange",
            id="too-much-cpu",
        ),
        pytest.param(
            "[maximum memory usage per Pod is 1Gi.  No limit is specified]",
            ("resources", "memory"),
            "keep the memory within the namespace's LimitRange",
            id="no-memory-limit",
        ),
        pytest.param(
            "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000",
            ("resources", "memory"),
            "request more memory, as the namespace's LimitRange asks",
            id="ratio",
        ),
        pytest.param(HOOK, (), "", id="unknown"),
    ],
)
def test_fixes_of_refusals(text: str, origin: tuple[str, ...], hint: str) -> None:
    """A refusal of Kubernetes itself has the key that is responsible, and a hint."""
    refusal = event(SET, "FailedCreate", f'Error creating: pods "{POD}" is forbidden: {text}')
    cause = workload_status("Deployment", "web", snapshot(WEB, SET, refusal)).cause

    assert cause is not None
    assert (cause.origin, cause.hint) == (origin, hint)


@pytest.mark.parametrize(
    ("workload", "held"),
    [
        pytest.param(
            WEB,
            [SET, event(SET, "FailedCreate", f'Error creating: pods "{POD}" is forbidden: {OVER}')],
            id="replica-set",
        ),
        pytest.param(
            deployment(refused=f'pods "{POD}" is forbidden: {OVER}'),
            [SET],
            id="condition",
        ),
        pytest.param(
            DB,
            [event(DB, "FailedCreate", f'create Pod db-0 in StatefulSet db failed error: pods "db-0": {OVER}')],
            id="stateful-set",
        ),
        pytest.param(MIGRATE, [event(MIGRATE, "FailedCreate", f"Error creating: forbidden: {OVER}")], id="job"),
    ],
)
def test_over_quota(workload: Object, held: list[Object]) -> None:
    """A quota that has no room for a pod is named, with what was asked for and what there is."""
    assert failed(OVER_QUOTA) == status_of(workload, *held)


SITE = deployment("site")
NEW_SITE, OLD_SITE = replica_set(SITE), replica_set(SITE, revision=1)
NO_ROOM = event(SET, "FailedCreate", f"Error creating: forbidden: {OVER}")


def ready_at(moment: str) -> Object:
    """A pod of the new revision of another service."""
    made = pod(NEW_SITE, state=running(), ready=True)
    made["status"]["conditions"][-1]["lastTransitionTime"] = moment
    return made


@pytest.mark.parametrize(
    ("held", "is_failed"),
    [
        pytest.param([pod(DB, state=running(), going=True)], False, id="a-pod-leaves"),
        pytest.param([SITE, NEW_SITE, OLD_SITE, pod(OLD_SITE, state=running())], False, id="an-old-pod-is-there"),
        pytest.param([SITE, NEW_SITE, OLD_SITE, ready_at(AFTER_A_WHILE)], False, id="a-moment-ago"),
        pytest.param([SITE, NEW_SITE, OLD_SITE, ready_at(MOMENT)], True, id="a-while-ago"),
        pytest.param([SITE, NEW_SITE, ready_at(AFTER_A_WHILE)], True, id="no-update"),
        pytest.param(
            [SITE, NEW_SITE, OLD_SITE, pod(OLD_SITE), event(NEW_SITE, "FailedCreate", OVER)], True, id="refused-too"
        ),
    ],
)
def test_a_quota_that_gets_room(held: list[Object], *, is_failed: bool) -> None:
    """Beside a rolling update of another service a quota has room soon; it is waited for, but not for long."""

    def is_failure(age: float) -> bool:
        seen = snapshot(WEB, SET, NO_ROOM, *held, age={"no-room": age}, moment="2025-06-01T12:00:31Z")
        return workload_status("Deployment", "web", seen).state is WorkloadState.FAILED

    assert is_failure(59.0) is is_failed
    assert is_failure(61.0)


@pytest.mark.parametrize(
    ("workload", "held"),
    [
        pytest.param(WEB, [SET, event(SET, "FailedCreate", HOOK)], id="replica-set"),
        pytest.param(deployment(refused=HOOK), [SET], id="condition"),
        pytest.param(DB, [event(DB, "FailedCreate", HOOK)], id="stateful-set"),
        pytest.param(MIGRATE, [event(MIGRATE, "FailedCreate", HOOK)], id="job"),
    ],
)
def test_pods_refused(workload: Object, held: list[Object]) -> None:
    """Pods that the cluster does not take fail their service in the message of what refused them."""
    cause = Cause(code=CauseCode.POD_REFUSED, message=f"its pods are refused: {HOOK}", has_subject=True)

    assert failed(cause) == status_of(workload, *held)


def test_failures_of_pods_come_before_refused_pods() -> None:
    """Of a pod that fails and another that is refused, the one that fails is reported."""
    workload = deployment(replicas=2, refused=HOOK)
    cause = status_of(workload, SET, pod(SET, **CRASHING, last=ended(1))).cause

    assert cause is not None
    assert cause.code == "crash-loop"


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(event(replica_set(deployment("site")), "FailedCreate", HOOK), id="of-another-workload"),
        pytest.param(event(SET, "SuccessfulCreate", HOOK, kind="Normal"), id="of-another-kind"),
    ],
)
def test_refusals_of_others(output: Object) -> None:
    """Only what was refused of this workload counts."""
    assert web(output).state is WorkloadState.WAITING


@pytest.mark.parametrize(("workload", "owner"), [(WEB, SET), (MIGRATE, MIGRATE)], ids=["deployment", "job"])
def test_refused_at_first(workload: Object, owner: Object) -> None:
    """What was refused once does not matter when the pods are there."""
    held = (SET, pod(owner, state=running()), event(owner, "FailedCreate", HOOK))

    assert status_of(workload, *held).state is WorkloadState.STARTED


@pytest.mark.parametrize(
    ("workload", "held"),
    [
        pytest.param(changed(DB), [event(DB, "FailedCreate", HOOK, lastTimestamp=MOMENT)], id="changed-since"),
        pytest.param(
            stateful_set(replicas=2),
            [created(pod(DB, state=running())), event(DB, "FailedCreate", HOOK, lastTimestamp=MOMENT)],
            id="a-pod-since",
        ),
        pytest.param(WEB, [changed(SET), event(SET, "FailedCreate", HOOK, lastTimestamp=MOMENT)], id="scaled-since"),
        pytest.param(WEB, [SET, OLD, event(OLD, "FailedCreate", HOOK)], id="of-the-old-revision"),
        pytest.param(deployment(refused=HOOK), [SET, refused(OLD)], id="the-condition-of-the-old-revision"),
        pytest.param(
            deployment(refused=f'pods "web-7d4b9c6f1-x2": {OVER}'), [SET, OLD], id="a-pod-of-the-old-revision"
        ),
    ],
)
def test_refused_before(workload: Object, held: list[Object]) -> None:
    """An event that is older than the last change or than a pod, or of an old revision, is no failure any more."""
    assert status_of(workload, *held).cause is None


@pytest.mark.parametrize(
    ("workload", "held"),
    [
        pytest.param(changed(DB), [event(DB, "FailedCreate", HOOK, lastTimestamp=AFTER_A_WHILE)], id="event"),
        pytest.param(deployment(refused=HOOK), [refused(SET), refused(OLD)], id="condition"),
        pytest.param(WEB, [refused(SET)], id="condition-of-the-new-revision"),
    ],
)
def test_refused_again(workload: Object, held: list[Object]) -> None:
    """What is refused after the last change is a failure."""
    assert status_of(workload, *held).state is WorkloadState.FAILED


def _refused(name: str) -> list[Object]:
    """An update whose new pod a quota refuses, beside the old one."""
    workload = deployment(name)
    new, old = replica_set(workload), replica_set(workload, revision=1)
    return [workload, new, old, pod(old, ready=True, state=running()), event(new, "FailedCreate", OVER)]


def _without_storage(name: str) -> list[Object]:
    """A pod whose volume is not provisioned."""
    workload, unbound = stateful_set(name), claim(name)
    made = without_node(pod(workload, "0", scheduling_failure=UNBOUND, claims=(name,)))
    return [workload, unbound, made, event(unbound, "ProvisioningFailed", "no driver")]


def _without_node(name: str) -> list[Object]:
    workload = stateful_set(name)
    return [workload, pod(workload, "0", scheduling_failure="0/1 nodes are available: 1 Insufficient cpu.")]


@pytest.mark.parametrize("of_service", [_refused, _without_storage, _without_node])
def test_many_that_can_not_start(of_service: Callable[[str], list[Object]]) -> None:
    """The work for a service does not grow with the number of services."""

    def steps(services: int) -> int:
        held = snapshot(*(item for number in range(services) for item in of_service(f"app{number}")))
        return count_steps(lambda: [workload_status(kind, name, held) for kind, name in held.workloads])

    assert steps(200) < 10.5 * steps(20)


def test_what_creates_refused_pods() -> None:
    """A ReplicaSet for a Deployment; not one of an old revision, nor a workload that has its pods."""
    held = [WEB, SET, OLD, event(SET, "FailedCreate", HOOK), DB, event(DB, "FailedCreate", HOOK), MIGRATE, SITE]

    assert list(refused_owners(snapshot(*held))) == [("ReplicaSet", SET["metadata"]["name"]), ("StatefulSet", "db")]


# health checks --------------------------------------------------------------------------------------------------------

PROBE: Object = {"exec": {"command": ["check"]}, "initialDelaySeconds": 2, "periodSeconds": 5, "failureThreshold": 4}
TIMEOUT_S = 22.0
BAD = "Readiness probe failed: HTTP probe failed\nwith statuscode: 500"


def checked(*held: Object, age: float, state: Object | None = None, probe: Object | None = PROBE) -> ServiceStatus:
    """How the Deployment stands whose pod runs and is not ready."""
    return web(pod(SET, state=state or running(), probe=probe), *held, age={"unready": age})


def unhealthy(message: str = BAD, **more: Any) -> Object:
    return event(pod(SET), "Unhealthy", message, **more)


@pytest.mark.parametrize(
    ("events", "times"),
    [
        pytest.param([unhealthy(count=4)], 4, id="counted"),
        pytest.param([unhealthy(series={"count": 5})], 5, id="a-series"),
        pytest.param([unhealthy(count=2), unhealthy(), unhealthy(count=4)], 7, id="several-events"),
    ],
)
def test_unhealthy(events: list[Object], times: int) -> None:
    """A health check that failed as often as it may, for as long as that takes, fails its service."""
    cause = Cause(
        code=CauseCode.UNHEALTHY,
        has_subject=True,
        message=f"its health check failed {times} times: HTTP probe failed with statuscode: 500",
        origin=("healthcheck",),
        logs=True,
        pod=POD,
        container="web",
    )

    assert failed(cause, POD) == checked(*events, age=TIMEOUT_S)


@pytest.mark.parametrize(
    ("count", "age", "message"),
    [
        pytest.param(1, TIMEOUT_S, "health check failed once", id="not-often-enough"),
        pytest.param(3, TIMEOUT_S, "health check failed 3 times", id="still-not"),
        pytest.param(4, TIMEOUT_S - 0.1, "health check failed 4 times", id="not-long-enough"),
    ],
)
def test_not_yet_unhealthy(count: int, age: float, message: str) -> None:
    """A health check may fail some times, and for some time."""
    assert ServiceStatus(
        state=WorkloadState.STARTED, message=f"0/1 ready, {message}", desired=1, pods=(POD,)
    ) == checked(unhealthy(count=count), age=age)


@pytest.mark.parametrize(
    ("age", "state"),
    [
        pytest.param(30.0, WorkloadState.FAILED, id="long-enough"),
        pytest.param(29.9, WorkloadState.STARTED, id="not-yet"),
    ],
)
def test_timeout_of_an_empty_probe(age: float, state: WorkloadState) -> None:
    """A probe that says no numbers has those of Kubernetes: three times, ten seconds apart."""
    assert checked(unhealthy(count=3), age=age, probe={"tcpSocket": {"port": 80}}).state is state


def test_unhealthy_over_http() -> None:
    """A check that is made over HTTP has its port in question."""
    status = checked(unhealthy(count=4), age=TIMEOUT_S, probe={**PROBE, "httpGet": {"port": 8080, "path": "/"}})

    assert status.cause is not None
    assert status.cause.hint == "the check requests port 8080: does the program listen there?"


def test_unhealthy_without_a_message() -> None:
    """A command that fails may print nothing."""
    status = checked(unhealthy("Readiness probe failed: ", count=4), age=TIMEOUT_S)

    assert status.message == "its health check failed 4 times: its command fails without output"


@pytest.mark.parametrize(
    ("more", "output"),
    [
        pytest.param({"probe": None}, unhealthy(count=9), id="no-readiness-check"),
        pytest.param({}, unhealthy("Liveness probe failed: no", count=9), id="another-check"),
        pytest.param({}, event(pod(SET), "BackOff", BAD, count=9), id="another-event"),
        pytest.param({}, event(pod(SET, "other"), "Unhealthy", BAD, count=9), id="another-pod"),
        pytest.param({"state": ended(1)}, unhealthy(count=9), id="not-running"),
    ],
)
def test_healthy_pods(more: dict[str, Any], output: Object) -> None:
    """Only failures of a running pod's own readiness check make it unhealthy."""
    assert checked(output, age=TIMEOUT_S, **more).cause is None


def test_ready_after_failures() -> None:
    """A pod that is ready is not unhealthy, whatever its check said before."""
    workload = deployment(replicas=2)
    pods = [pod(SET, state=running(), probe=PROBE, ready=True), pod(SET, "other", state=running())]
    held = snapshot(workload, SET, *pods, unhealthy(count=9), age={"unready": 99.0})

    assert workload_status("Deployment", "web", held).state is WorkloadState.STARTED


def test_unhealthy_job() -> None:
    """A Job is not asked how healthy it is."""
    made = pod(MIGRATE, state=running(), probe=PROBE)
    held = snapshot(MIGRATE, made, event(made, "Unhealthy", BAD, count=9), age={"unready": 99.0})

    assert workload_status("Job", "migrate", held).state is WorkloadState.STARTED


# ages -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "held", "asked"),
    [
        pytest.param(
            WEB, [SET, pod(SET, scheduling_failure=ROOM)], [f"unscheduled/pod-{POD}-4f1c"], id="unschedulable"
        ),
        pytest.param(
            WEB,
            [SET, pod(SET, state=waiting("CreateContainerConfigError"))],
            [f"unmade/pod-{POD}-4f1c"],
            id="not-started",
        ),
        pytest.param(
            WEB, [SET, pod(SET, state=waiting("ErrImageNeverPull"))], [f"unloaded/pod-{POD}-4f1c"], id="not-loaded"
        ),
        pytest.param(
            WEB,
            [SET, pod(SET, state=running(), probe=PROBE), unhealthy(count=4)],
            [f"unready/pod-{POD}-4f1c"],
            id="unhealthy",
        ),
        pytest.param(
            DB,
            [pod(DB, "0", scheduling_failure=UNBOUND, claims=("data",)), NO_CLASS],
            ["unbound/persistentvolumeclaim-data-4f1c", "unscheduled/pod-db-0-4f1c"],
            id="volume-not-bound",
        ),
    ],
)
def test_each_has_its_own_age(workload: Object, held: list[Object], asked: list[str]) -> None:
    """How long something has been so is counted for that pod or claim alone, and for that trouble."""
    output: list[str] = []

    def age(what: str) -> float:
        output.append(what)
        return 0.0

    view = snapshot(workload, *held)
    view.age = age
    workload_status(workload["kind"], workload["metadata"]["name"], view)

    assert asked == output


@pytest.mark.parametrize(
    ("cause", "clause", "sentence"),
    [
        pytest.param(
            Cause(code=CauseCode.UNHEALTHY, message="needs more memory"),
            "which needs more memory",
            "it needs more memory",
            id="verb",
        ),
        pytest.param(
            Cause(code=CauseCode.UNHEALTHY, message="its health check failed", has_subject=True),
            "which failed: its health check failed",
            "it failed: its health check failed",
            id="own-subject",
        ),
    ],
)
def test_a_clause(cause: Cause, clause: str, sentence: str) -> None:
    """A failure is a sentence after the name of its service, whatever its first word is."""
    assert (clause, sentence) == (cause.clause, cause.sentence("it"))
