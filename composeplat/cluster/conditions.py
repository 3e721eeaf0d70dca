"""The status of a workload: absent, waiting, started, ready, completed or failed.

Owns when a workload counts as ready.
Must not know the API: a snapshot comes in, a status goes out, so that every state of a cluster can be tested as data.

Only pods of the current revision count; a pod of an old revision may crash.
A StatefulSet with ``OnDelete`` keeps pods of any revision, so all its pods count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum

from composeplat.cluster.cause import Cause
from composeplat.cluster.error_text import shorten
from composeplat.cluster.failure_causes import UNSTARTED, format_times, pod_failure_cause
from composeplat.cluster.jobs import describe_disruption, job_failure_cause, job_retry_cause
from composeplat.cluster.refused_pods import node_refusal_cause, pod_creation_failure_cause
from composeplat.cluster.scheduling import is_node_coming, is_room_coming
from composeplat.cluster.snapshot import (
    TEMPLATE_GENERATION,
    Object,
    Snapshot,
    container_statuses,
    event_count,
    event_time,
    has_ended,
    held_by_others,
    init_container_statuses,
    is_completed,
    is_of_others,
    is_ready,
    is_running,
    owner_uid,
    pod_names,
    probe_failures,
    scheduling_failure,
    services_of,
)
from composeplat.cluster.unbound_claims import provisioning_step
from composeplat.cluster.unreachable_nodes import (
    describe_unreachable,
    find_unreachable_node,
    unreachable_hint,
    unreachable_node,
)
from composeplat.diagnostics import format_count
from composeplat.system.records import record


class WorkloadState(IntEnum):
    ABSENT = 0
    WAITING = 1
    STARTED = 2
    """A pod runs, and is not ready yet."""
    READY = 3
    COMPLETED = 4
    FAILED = 5


@record(kw_only=True)
class ServiceStatus:
    state: WorkloadState
    message: str
    ready: int = 0
    desired: int = 0
    cause: Cause | None = None
    pods: tuple[str, ...] = ()
    retry: Cause | None = None
    """Why the last try of a Job failed that tries again."""
    outdated: tuple[str, ...] = ()
    """The pods that keep an old revision until someone deletes them."""
    waits_for_outdated: bool = False
    """Only outdated pods are not ready, which no deploy can change."""
    is_as_meant: bool = False
    """It is not done, and that is no problem: a Job runs, and none of its tries is known to have failed."""
    unreachable_node: str = ""
    """The node of its pods that does not report any more."""

    @property
    def is_done(self) -> bool:
        """Return whether a deploy can stop waiting."""
        return self.state in (WorkloadState.READY, WorkloadState.COMPLETED) or self.waits_for_outdated

    @property
    def hint(self) -> str:
        """The hint where only a person can end the wait; empty elsewhere."""
        return unreachable_hint(self.unreachable_node)


def workload_status(kind: str, name: str, snapshot: Snapshot) -> ServiceStatus:
    workload = snapshot.workloads.get((kind, name))
    if workload is None:
        return ServiceStatus(state=WorkloadState.ABSENT, message="does not exist yet")
    if "deletionTimestamp" in workload["metadata"]:
        return ServiceStatus(state=WorkloadState.WAITING, message="is being deleted")
    if kind == "CronJob":
        return _scheduled(workload, snapshot)
    status = workload.get("status", {})
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0) and kind != "Job":
        return ServiceStatus(state=WorkloadState.WAITING, message="is being updated")
    if kind == "Job":
        return _job(workload, snapshot)
    present = _current_pods(kind, workload, snapshot)
    held = _held_pods(workload, present, snapshot)
    found = _long_running(kind, workload, [*present, *held], len(held), snapshot)
    return _with_outdated(found, present, held) if held else found


def service_status(kind: str, name: str, container: str, snapshot: Snapshot) -> ServiceStatus:
    """Return the status of a service by its workload and its container; the failure of another one says so."""
    found = workload_status(kind, name, snapshot)
    cause = found.cause
    pod = snapshot.pod(cause.pod) if cause is not None else None
    if cause is None or pod is None or cause.container == container:
        return found
    if cause.container in services_of(pod):
        message = cause.sentence(f"is in one pod with '{cause.container}', which")
        return replace(found, message=message, cause=replace(cause, message=message, has_subject=False))
    if is_of_others(pod, cause.container):
        message = cause.sentence(f"is in one pod with '{cause.container}', which is no service and")
        hint = "find what adds that container to pods, such as a service mesh"
        cause = replace(cause, message=message, has_subject=False, origin=(), hint=hint)
        return replace(found, message=message, cause=cause)
    return found


def _scheduled(cron_job: Object, snapshot: Snapshot) -> ServiceStatus:
    """A CronJob is ready at once: nobody waits for its runs."""
    uid = cron_job["metadata"]["uid"]
    jobs = {item["metadata"]["uid"] for item in snapshot.workloads.values() if owner_uid(item) == uid}
    names = pod_names([pod for job in jobs for pod in snapshot.pods_of(job)])
    return ServiceStatus(state=WorkloadState.READY, message="is scheduled", pods=names)


def _job(job: Object, snapshot: Snapshot) -> ServiceStatus:
    status = job.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    uid = job["metadata"]["uid"]
    pods = snapshot.pods_of(uid)
    names = pod_names(pods)
    if "Complete" in conditions:
        return ServiceStatus(state=WorkloadState.COMPLETED, message="completed", ready=1, desired=1, pods=names)
    if "Failed" in conditions or "FailureTarget" in conditions:
        failed = conditions.get("Failed") or conditions["FailureTarget"]
        return _failed(job_failure_cause(job, failed, pods), 0, 1, names)
    # The next try begins while a pod ends that was evicted or deleted.
    alive = list(filter(_is_alive, pods))
    cause = next((c for c in (pod_failure_cause(p, snapshot, is_job=True) for p in alive) if c), None)
    if cause is None and len(alive) < job["spec"].get("parallelism", 1):
        cause = pod_creation_failure_cause(job, snapshot) or node_refusal_cause(pods)
    if cause:
        return _failed(cause, 0, 1, names)
    retry = job_retry_cause(job, pods)
    if any(is_running(pod) for pod in pods if _is_alive(pod) or is_completed(pod)):
        return _running_job(retry, names, find_unreachable_node(alive))
    held = next(filter(None, map(held_by_others, alive)), ())
    if held:
        message = f"its container has ended, but '{held[0]}' in its pod still runs, which is no service"
        return ServiceStatus(state=WorkloadState.STARTED, message=message, desired=1, pods=names)
    message = _waiting_reason(alive, snapshot) or describe_disruption(pods) or (retry.message if retry else "")
    return ServiceStatus(state=WorkloadState.WAITING, message=message, desired=1, pods=names, retry=retry)


def _running_job(retry: Cause | None, pods: tuple[str, ...], node: str) -> ServiceStatus:
    message = ", ".join(filter(None, ("is running", describe_unreachable(node))))
    return ServiceStatus(
        state=WorkloadState.STARTED,
        message=f"{message}; {retry.message}" if retry else message,
        desired=1,
        pods=pods,
        retry=retry,
        is_as_meant=retry is None and not node,
        unreachable_node=node,
    )


def _long_running(kind: str, workload: Object, pods: list[Object], held: int, snapshot: Snapshot) -> ServiceStatus:
    desired, updated, others = _pod_counts(kind, workload)
    ready = sum(is_ready(pod) for pod in pods)
    names = pod_names(pods)
    others -= held
    if desired == 0:
        message = "runs on no node" if kind == "DaemonSet" else "is scaled to 0"
        return ServiceStatus(state=WorkloadState.READY, message=message, pods=names)
    if ready >= desired and updated + held >= desired and (others <= 0 or kind == "StatefulSet"):
        return ServiceStatus(
            state=WorkloadState.READY, message=f"{ready}/{desired} ready", ready=ready, desired=desired, pods=names
        )
    cause = next((c for c in (pod_failure_cause(p, snapshot) for p in pods) if c), None)
    if cause is None and len(pods) < desired:
        ended = _current_pods(kind, workload, snapshot, has_ended)
        cause = pod_creation_failure_cause(workload, snapshot) or node_refusal_cause(ended)
    if cause:
        return _failed(cause, ready, desired, names)
    message = f"{ready}/{desired} ready"
    ending = _ending_pods(workload, snapshot) if len(pods) < desired else []
    node = find_unreachable_node(pods or ending)
    if others > 0 and ready >= desired:
        message = f"{message}, {format_count(others, 'old pod')} still ending"
    elif waiting := (describe_unreachable(node) if pods else "") or _waiting_reason(pods, snapshot):
        message = f"{message}, {waiting}"
    elif ending:
        why = f": {describe_unreachable(node)}" if node else ""
        message = f"{message}, {ending[0]['metadata']['name']} is still ending{why}"
    state = WorkloadState.STARTED if any(is_running(pod) for pod in pods) else WorkloadState.WAITING
    return ServiceStatus(state=state, message=message, ready=ready, desired=desired, pods=names, unreachable_node=node)


def _ending_pods(workload: Object, snapshot: Snapshot) -> list[Object]:
    """Return the pods of any revision that are being deleted, those first whose node does not report."""
    going = [pod for pod in snapshot.pods_of_all_revisions(workload) if "deletionTimestamp" in pod["metadata"]]
    return sorted(going, key=lambda pod: not unreachable_node(pod))


def _pod_counts(kind: str, workload: Object) -> tuple[int, int, int]:
    """Return the desired pods, those of the current revision, and the others."""
    status = workload.get("status", {})
    if kind == "DaemonSet":
        # It counts nodes, each of them by its oldest pod.
        return status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0), 0
    updated = status.get("updatedReplicas", 0)
    return workload["spec"].get("replicas", 1), updated, status.get("replicas", 0) - updated


def _failed(cause: Cause, ready: int, desired: int, pods: tuple[str, ...]) -> ServiceStatus:
    return ServiceStatus(
        state=WorkloadState.FAILED, message=cause.message, ready=ready, desired=desired, cause=cause, pods=pods
    )


def _with_outdated(found: ServiceStatus, present: list[Object], held: list[Object]) -> ServiceStatus:
    """Add the pods of old revisions, which stay until someone deletes them, to a status."""
    names = pod_names(held)
    message = f"{found.message}, {describe_outdated_pods(names)}"
    cause = found.cause
    if cause is not None and cause.pod in names:
        cause = replace(cause, hint=f"it runs the old revision: kubectl delete pod {cause.pod}")
    rest = len(present) + len(held) >= found.desired and all(is_ready(pod) for pod in present)
    return replace(found, message=message, cause=cause, outdated=names, waits_for_outdated=rest)


def describe_outdated_pods(names: Sequence[str]) -> str:
    return (
        f"{names[0]} still runs the old revision"
        if len(names) == 1
        else f"{len(names)} pods still run the old revision"
    )


def _held_pods(workload: Object, present: list[Object], snapshot: Snapshot) -> list[Object]:
    """Return the pods of old revisions that nothing replaces until they are deleted."""
    if workload["spec"].get("updateStrategy", {}).get("type") != "OnDelete":
        return []
    return [pod for pod in _alive_pods(snapshot, workload["metadata"]["uid"]) if pod not in present]


def _is_alive(pod: Object) -> bool:
    """Whether a pod is not being deleted, and did not end with its node and stays as an object."""
    return "deletionTimestamp" not in pod["metadata"] and not has_ended(pod)


def _alive_pods(snapshot: Snapshot, owner: str) -> list[Object]:
    return [pod for pod in snapshot.pods_of(owner) if _is_alive(pod)]


def _current_pods(
    kind: str, workload: Object, snapshot: Snapshot, counts: Callable[[Object], bool] = _is_alive
) -> list[Object]:
    """Return the pods of the current revision that count: by default, those that are alive."""
    uid = workload["metadata"]["uid"]
    if kind == "StatefulSet":
        revision = workload.get("status", {}).get("updateRevision")
        pods = filter(counts, snapshot.pods_of(uid))
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get("controller-revision-hash") == revision]
    if kind == "DaemonSet":
        return _pods_of_daemon_set(workload, list(filter(counts, snapshot.pods_of(uid))))
    if counts is _is_alive and not workload.get("status", {}).get("updatedReplicas"):
        # Where a change scales too, the controller scales the old ReplicaSet before it makes the new one.
        return []
    return [
        pod
        for replica_set in snapshot.current_replica_sets(workload)
        for pod in filter(counts, snapshot.pods_of(replica_set["metadata"]["uid"]))
    ]


def _pods_of_daemon_set(workload: Object, owned: list[Object]) -> list[Object]:
    """Return the pods of the current generation of the template; of an earlier one, if its template is the same."""
    status = workload.get("status", {})
    if status.get("updatedNumberScheduled", 0) >= status.get("desiredNumberScheduled", 0):
        return owned
    generation = workload["metadata"].get("annotations", {}).get(TEMPLATE_GENERATION)
    return [pod for pod in owned if pod["metadata"].get("labels", {}).get(_POD_GENERATION) == generation]


_POD_GENERATION = "pod-template-generation"


def _describe_waiting(reason: str, text: str) -> str:
    if reason in UNSTARTED and text:
        return f"can't be started yet: {shorten(text)}"
    return _REASONS.get(reason, reason)


def _waiting_reason(pods: list[Object], snapshot: Snapshot) -> str:
    """Return why the first pod that is not ready waits, as a short phrase."""
    for pod in pods:
        if is_ready(pod):
            continue
        for container in container_statuses(pod):
            waiting = container.get("state", {}).get("waiting", {})
            reason = waiting.get("reason", "")
            if reason in _CREATING:
                return _creation_step(pod, snapshot) or _CREATING[reason]
            if reason:
                return _describe_waiting(reason, str(waiting.get("message") or ""))
            if "terminated" in container.get("state", {}):
                is_restarted = pod["spec"].get("restartPolicy") != "Never"
                return "its container ended" + (", and is not restarted yet" if is_restarted else "")
        unhealthy = probe_failures(pod, snapshot)
        if unhealthy:
            return f"health check failed {format_times(event_count(unhealthy))}"
        unscheduled = _unscheduled_reason(pod, snapshot)
        if unscheduled:
            return unscheduled
        if any("running" in c.get("state", {}) for c in container_statuses(pod)):
            return "started, not ready yet"
        return "creating its pod"
    return ""


def _unscheduled_reason(pod: Object, snapshot: Snapshot) -> str:
    """Return why a pod has no node yet; empty if it has one, or if that is not known."""
    provisioning, refusal = provisioning_step(pod, snapshot), scheduling_failure(pod)
    if provisioning or refusal is None:
        return provisioning
    return f"no node can run it yet: {_coming_room(pod, snapshot) or shorten(refusal, _MAX_REFUSAL_CHARS)}"


def _coming_room(pod: Object, snapshot: Snapshot) -> str:
    if is_node_coming(pod, snapshot):
        return "a node is being prepared"
    return "an old pod is still ending" if is_room_coming(pod, snapshot) else ""


def _creation_step(pod: Object, snapshot: Snapshot) -> str:
    """Return what the creation of a pod waits for at present; empty if that is not known."""
    events = snapshot.events_of(pod["metadata"]["uid"])
    pulling, pulled = (
        event_count([event for event in events if event.get("reason") == reason]) for reason in ("Pulling", "Pulled")
    )
    if pulling > pulled:
        return "pulling its image"
    if not pulled and (refusal := _mount_failure(events)):
        return f"its volumes can't be mounted yet: {shorten(refusal, _MAX_REFUSAL_CHARS)}"
    running = [status["name"] for status in init_container_statuses(pod) if "running" in status.get("state", {})]
    return f"init container '{running[0]}' runs" if running else ""


def _mount_failure(events: list[Object]) -> str:
    """Return why the node of a pod could not mount its volumes the last time; empty if it could, or will soon."""
    failed = [event for event in events if event.get("reason") in _UNMOUNTED]
    message = str(max(failed, key=event_time).get("message") or "") if failed else ""
    return "" if _SOON_MOUNTED.search(message) else message


_MAX_REFUSAL_CHARS = 160
#: Reasons of events of pods whose node waits for a volume, which another node may still have.
_UNMOUNTED = ("FailedAttachVolume", "FailedMount", "FailedMapVolume")
#: A kubelet that has not read the objects of a new pod yet.
_SOON_MOUNTED = re.compile(r"failed to sync \w+ cache")
_REASONS = {
    "ErrImagePull": "its image could not be pulled yet",
    "ImagePullBackOff": "its image could not be pulled yet",
    "CrashLoopBackOff": "it crashed, and is being restarted",
}
_CREATING = {"ContainerCreating": "creating its container", "PodInitializing": "creating its pod"}
