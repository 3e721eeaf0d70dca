"""The status of each service of an environment, as rows for people and programs.

Owns the columns, and the message for the last problem.
Must not know the API, nor how a table looks: a snapshot comes in, rows go out.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import WorkloadState, describe_outdated_pods, service_status
from composeplat.cluster.pod_status import PodRow, pod_rows
from composeplat.cluster.schedules import ScheduleStatus, schedule_status
from composeplat.cluster.snapshot import (
    Object,
    Snapshot,
    container_statuses,
    is_on_no_node,
    is_ready,
    pod_names,
    statuses_of,
)
from composeplat.diagnostics import Span
from composeplat.system.records import record

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHORT_DIGEST_CHARS = 12
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400

#: The names of states in a column.
STATE_NAMES = {
    WorkloadState.ABSENT: "absent",
    WorkloadState.WAITING: "starting",
    WorkloadState.STARTED: "started",
    WorkloadState.READY: "ready",
    WorkloadState.COMPLETED: "completed",
    WorkloadState.FAILED: "failing",
}
_NOT_THERE_YET = (WorkloadState.FAILED, WorkloadState.WAITING, WorkloadState.STARTED)
ASLEEP, IN_DEVELOPMENT, SCHEDULED, MANUAL = "asleep", "in-development", "scheduled", "manual"
STATES = (*STATE_NAMES.values(), ASLEEP, IN_DEVELOPMENT, SCHEDULED, MANUAL)


@record(kw_only=True)
class ServiceQuery:
    """A service whose status is requested."""

    name: str
    cluster_name: str
    kind: str
    pod_of: str = ""
    """The service in whose pods it runs, by its cluster name; empty if it has its own."""
    urls: tuple[str, ...] = ()
    dev_workload: str = ""
    """The Deployment that replaces it during development."""


@record(kw_only=True)
class StatusRow:
    service: str
    kind: str
    state: str
    ready: int
    desired: int
    restarts: int
    image: str
    """The digest of the running image; several if pods differ."""
    created: str
    """When its workload was created, as the cluster writes it."""
    urls: tuple[str, ...]
    problem: str
    hint: str
    pods: tuple[str, ...]
    cause: Cause | None = None
    """Why it fails, or why its last try failed."""
    lines: tuple[str, ...] = ()
    """The last log lines that show why, if they were requested."""
    left_out: tuple[Mapping[str, object], ...] = ()
    """What its container lacks of the definition, each with its place."""
    schedule: ScheduleStatus | None = None
    pod_rows: tuple[PodRow, ...] = ()
    developer: str = ""
    """Who develops it, if somebody does."""
    place: Span | None = None
    """The part of the definition that its problem originates in."""


def status_rows(services: Iterable[ServiceQuery], snapshot: Snapshot, now: datetime) -> list[StatusRow]:
    shown = replace(snapshot, pods=[_as_crash_loop(pod) for pod in snapshot.pods])
    return [_row(service, shown, now) for service in services]


def _as_crash_loop(pod: Object) -> Object:
    """Return a pod as it will be in a moment: the kubelet reports late that it waits before a restart."""
    owners = pod["metadata"].get("ownerReferences") or []
    if any(owner.get("kind") == "Job" for owner in owners) or not any(map(_ended_again, container_statuses(pod))):
        return pod
    statuses = [
        {**status, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": status["state"]}
        if _ended_again(status)
        else status
        for status in container_statuses(pod)
    ]
    return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}


def _ended_again(status: Object) -> bool:
    return bool((status.get("state") or {}).get("terminated")) and status.get("restartCount", 0) > 0


def _row(service: ServiceQuery, snapshot: Snapshot, now: datetime) -> StatusRow:
    own = (service.kind, service.pod_of or service.cluster_name)
    kind, name = ("Deployment", service.dev_workload) if service.dev_workload else own
    found = service_status(kind, name, service.cluster_name, snapshot)
    workload = snapshot.workloads.get((kind, name), {"metadata": {}, "spec": {}})
    pods = [pod for pod in map(snapshot.pod, found.pods) if pod is not None]
    statuses = [status for pod in pods for status in statuses_of(pod, service.cluster_name)]
    state = STATE_NAMES[found.state]
    if service.dev_workload:
        state = IN_DEVELOPMENT
    elif _sleeps(workload) and found.state not in (WorkloadState.COMPLETED, WorkloadState.FAILED):
        state = ASLEEP
    schedule = schedule_status(workload, snapshot, now) if _has_schedule(kind, workload) else None
    last = schedule.last_ended if schedule else None
    if schedule and not schedule.cron:
        state = MANUAL
    elif schedule and state == STATE_NAMES[WorkloadState.READY]:
        state = SCHEDULED
    cause = found.cause or found.retry or (last.cause if last else None)
    waits = found.state in _NOT_THERE_YET and state != ASLEEP and not found.is_as_meant
    its_own = [status for status in statuses if status["name"] == service.cluster_name] or statuses
    problem = found.message if waits else _last_end(its_own, now)
    if schedule:
        problem = f"its last run {cause.message}" if cause else ""
    if found.outdated and not waits:
        problem = describe_outdated_pods(found.outdated)
    elif found.state is WorkloadState.FAILED and (old := _old_pods(workload, snapshot, found.pods)):
        problem = f"{problem}; {describe_outdated_pods(old)}"
    return StatusRow(
        service=service.name,
        kind=service.kind,
        state=state,
        ready=found.ready,
        desired=found.desired,
        restarts=sum(status.get("restartCount", 0) for status in statuses),
        image=_images([statuses_of(pod, service.cluster_name)[:1] for pod in pods]),
        created=str(workload["metadata"].get("creationTimestamp", "")),
        urls=service.urls,
        problem=problem,
        hint=cause.hint if cause else found.hint,
        pods=found.pods,
        cause=cause,
        schedule=schedule,
        pod_rows=pod_rows(pods, service.cluster_name),
    )


def _old_pods(workload: Object, snapshot: Snapshot, current: Container[str]) -> tuple[str, ...]:
    """Return the ready pods of earlier revisions: they stay until new ones are ready."""
    ready = list(filter(is_ready, snapshot.pods_of_all_revisions(workload)))
    return tuple(name for name in pod_names(ready) if name not in current)


def _has_schedule(kind: str, workload: Object) -> bool:
    return kind == "CronJob" and bool(workload["spec"])


def _sleeps(workload: Object) -> bool:
    """Return whether a workload is scaled to 0, suspended, or kept from all nodes."""
    spec = workload["spec"]
    return spec.get("replicas") == 0 or bool(spec.get("suspend")) or is_on_no_node(workload)


def _images(statuses: Iterable[list[Object]]) -> str:
    """Return the digests of the running images, as the kubelet reports them."""
    found: dict[str, None] = {}
    for status in (status for listed in statuses for status in listed):
        digest = _DIGEST.search(str(status.get("imageID", "")))
        found[digest[0] if digest else str(status.get("image", ""))] = None
    return ", ".join(found)


def short_image(image: str) -> str:
    """Cut digests to the length that Docker shows."""
    return _DIGEST.sub(lambda match: match[0][: len("sha256:") + _SHORT_DIGEST_CHARS], image)


def _last_end(statuses: Iterable[Object], now: datetime) -> str:
    """Return how a restarted container ended the last time."""
    ends = [
        status["lastState"]["terminated"] for status in statuses if (status.get("lastState") or {}).get("terminated")
    ]
    last = max(ends, key=lambda end: str(end.get("finishedAt") or ""), default=None)
    if last is None:
        return ""
    reason = "was killed: out of memory" if last.get("reason") == "OOMKilled" else f"ended with {_status(last)}"
    return f"{reason}, {age(str(last.get('finishedAt') or ''), now)} ago"


def _status(end: Mapping[str, object]) -> str:
    return f"signal {end['signal']}" if end.get("signal") else f"exit status {end.get('exitCode')}"


def age(time: str, now: datetime) -> str:
    """Return how long ago a time was, in one unit: ``40s``, ``5m``, ``3h``, ``2d``."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return "?"
    seconds = max(0, int((now - then.astimezone(UTC)).total_seconds()))
    for unit, letter in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m")):
        if seconds >= unit * 2 or (unit == _MINUTE_S and seconds >= unit):
            return f"{seconds // unit}{letter}"
    return f"{seconds}s"
