"""Pods to which others added a container, as a service mesh does: status and failures are those of the service."""

from __future__ import annotations

from datetime import UTC, datetime

from composeplat.cluster.conditions import WorkloadState, service_status, workload_status
from composeplat.cluster.snapshot import with_status_of
from composeplat.cluster.status import ServiceQuery, status_rows
from composeplat.names import SERVICE_LABEL
from tests.cluster.objects import (
    deployment,
    ended,
    event,
    job,
    pod,
    replica_set,
    running,
    snapshot,
    waiting,
    with_sidecar,
)

WEB, MIGRATE = deployment(), job(condition="Failed", reason="BackoffLimitExceeded")
SET = replica_set(WEB)
NOW = datetime(2025, 6, 1, 12, 10, tzinfo=UTC)
DIGEST = f"sha256:{'ab' * 32}"


def test_the_image_is_that_of_the_service() -> None:
    """The image of the added container is not shown in its place."""
    made = with_sidecar(pod(SET, state=running(), ready=True), "web")
    made["status"]["containerStatuses"][1]["imageID"] = f"registry.example.com/web@{DIGEST}"
    query = ServiceQuery(name="web", cluster_name="web", kind="Deployment")

    (row,) = status_rows([query], snapshot(WEB, SET, made), NOW)

    assert row.image == DIGEST


def test_an_added_container_that_was_restarted() -> None:
    """How it ended is no problem of the service."""
    made = with_sidecar(pod(SET, state=running(), ready=True), "web", last=ended(137))
    query = ServiceQuery(name="web", cluster_name="web", kind="Deployment")

    (row,) = status_rows([query], snapshot(WEB, SET, made), NOW)

    assert (row.state, row.problem) == ("ready", "")


def test_a_service_that_has_not_started() -> None:
    """A container that others added may run before: a dependent of the service still waits."""
    made = with_sidecar(pod(SET, state=waiting("ContainerCreating")), "web")

    found = service_status("Deployment", "web", "web", snapshot(WEB, SET, made))

    assert (found.state, found.message) == (WorkloadState.WAITING, "0/1 ready, creating its container")


def test_a_job_that_failed() -> None:
    """The exit status and the log are those of its own container."""
    made = with_sidecar(pod(MIGRATE, state=ended(3)), "migrate", state=ended(0, "Completed"))

    cause = workload_status("Job", "migrate", snapshot(MIGRATE, made)).cause

    assert cause is not None
    assert (cause.message, cause.exit_status, cause.container) == ("failed with exit status 3", 3, "migrate")


def test_a_job_that_an_added_container_holds() -> None:
    """Kubernetes lets it run on; what it waits for is not the service."""
    made = with_sidecar(pod(job(), state=ended(0, "Completed")), "migrate")
    made["status"]["phase"] = "Running"

    found = workload_status("Job", "migrate", snapshot(job(), made))

    assert found.state is WorkloadState.STARTED
    assert found.message == "its container has ended, but 'a-mesh' in its pod still runs, which is no service"


def test_an_added_container_that_crashes() -> None:
    """It is named, and no key of the service is blamed for it."""
    crash, exited = waiting("CrashLoopBackOff"), ended(1)
    made = with_sidecar(pod(SET, state=running()), "web", state=crash, last=exited)

    cause = service_status("Deployment", "web", "web", snapshot(WEB, SET, made)).cause

    assert cause is not None
    assert cause.message == "is in one pod with 'a-mesh', which is no service and crashes with exit status 1 (6 times)"
    assert (cause.container, cause.origin) == ("a-mesh", ())
    assert cause.hint == "find what adds that container to pods, such as a service mesh"


def test_an_added_init_container_that_crashes() -> None:
    """One that runs beside the others, as newer service meshes add it, is named too."""
    made = pod(SET, state=waiting("PodInitializing"))
    made["metadata"]["labels"] = {SERVICE_LABEL: "web"}
    made["spec"]["initContainers"] = [{"name": "a-mesh", "image": "mesh:1", "restartPolicy": "Always"}]
    status = {"name": "a-mesh", "restartCount": 5, "state": waiting("CrashLoopBackOff"), "lastState": ended(1)}
    made["status"]["initContainerStatuses"] = [status]

    found = service_status("Deployment", "web", "web", snapshot(WEB, SET, made))

    assert found.message == "is in one pod with 'a-mesh', which is no service and crashes with exit status 1 (6 times)"


def test_a_failed_probe_of_an_added_container() -> None:
    """It is not the health check of the service, which succeeds."""
    made = with_sidecar(pod(SET, state=running(), probe={"failureThreshold": 3, "periodSeconds": 1}), "web")
    made["status"]["containerStatuses"][0]["ready"] = False
    made["status"]["containerStatuses"][1]["ready"] = True
    failed = event(made, "Unhealthy", "Readiness probe failed: HTTP 503", count=9)
    failed["involvedObject"]["fieldPath"] = "spec.containers{a-mesh}"

    found = service_status("Deployment", "web", "web", snapshot(WEB, SET, made, failed, age={"unready": 60.0}))

    assert (found.state, found.cause) == (WorkloadState.STARTED, None)


def test_a_pod_of_another_form() -> None:
    """Where no container is that of a service, none counts as added."""
    made = with_status_of(pod(SET, state=running(), ready=True), "web")

    assert service_status("Deployment", "web", "web", snapshot(WEB, SET, made)).state is WorkloadState.READY
