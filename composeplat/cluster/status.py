"""How each service of an environment stands, as rows for people and programs. Pure: a view comes in.

Owns what is worth a column, and how the last problem is put into words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from composeplat.cluster.conditions import WorkloadState, describe_outdated_pods, workload_status
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import Object, Snapshot, container_statuses

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHORT = 12
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

#: What a state is called in a column.
WORDS = {
    WorkloadState.ABSENT: "absent",
    WorkloadState.WAITING: "starting",
    WorkloadState.STARTED: "started",
    WorkloadState.READY: "ready",
    WorkloadState.COMPLETED: "completed",
    WorkloadState.FAILED: "failing",
}
ASLEEP, IN_DEVELOPMENT = "asleep", "in-development"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceQuery:
    """A service that is asked about."""

    name: str
    cluster_name: str
    kind: str
    urls: tuple[str, ...] = ()
    dev_workload: str = ""
    """The Deployment that stands in for it while it is developed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    service: str
    kind: str
    state: str
    ready: int
    wanted: int
    restarts: int
    image: str
    """The digest that runs; several where pods differ."""
    created: str
    """When its workload was made, as the cluster writes it."""
    urls: tuple[str, ...]
    problem: str
    hint: str
    pods: tuple[str, ...]
    cause: Cause | None = None
    """Why it fails, or why its last try did."""
    lines: tuple[str, ...] = ()
    """The last lines that show why, where they have been asked for."""
    left_out: tuple[Mapping[str, object], ...] = ()
    """What its container lacks of the definition, each with its place."""


def status_rows(services: Iterable[ServiceQuery], snapshot: Snapshot, now: datetime) -> list[StatusRow]:
    shown = replace(snapshot, pods=[_settled(pod) for pod in snapshot.pods])
    return [_row(service, shown, now) for service in services]


def _settled(pod: Object) -> Object:
    """A pod as it soon will be: the kubelet takes its time to say that it waits before it starts a container again."""
    owners = pod["metadata"].get("ownerReferences") or []
    if any(owner.get("kind") == "Job" for owner in owners) or not any(map(_ended_again, container_statuses(pod))):
        return pod
    statuses = [
        {**one, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": one["state"]}
        if _ended_again(one)
        else one
        for one in container_statuses(pod)
    ]
    return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}


def _ended_again(status: Object) -> bool:
    return bool((status.get("state") or {}).get("terminated")) and status.get("restartCount", 0) > 0


def _row(service: ServiceQuery, snapshot: Snapshot, now: datetime) -> StatusRow:
    kind, name = ("Deployment", service.dev_workload) if service.dev_workload else (service.kind, service.cluster_name)
    standing = workload_status(kind, name, snapshot)
    workload = snapshot.workloads.get((kind, name), {"metadata": {}, "spec": {}})
    pods = [pod for pod in snapshot.pods if pod["metadata"]["name"] in standing.pods]
    state = WORDS[standing.state]
    if service.dev_workload:
        state = IN_DEVELOPMENT
    elif _sleeps(workload) and standing.state not in (WorkloadState.COMPLETED, WorkloadState.FAILED):
        state = ASLEEP
    cause = standing.cause or standing.retry
    waits = standing.state in (WorkloadState.FAILED, WorkloadState.WAITING, WorkloadState.STARTED) and state != ASLEEP
    problem = standing.message if waits else _last_end(pods, now)
    if standing.outdated and not waits:
        problem = describe_outdated_pods(standing.outdated)
    return StatusRow(
        service=service.name,
        kind=service.kind,
        state=state,
        ready=standing.ready,
        wanted=standing.wanted,
        restarts=sum(one.get("restartCount", 0) for pod in pods for one in container_statuses(pod)),
        image=_images(pods),
        created=str(workload["metadata"].get("creationTimestamp", "")),
        urls=service.urls,
        problem=problem,
        hint=cause.hint if cause else "",
        pods=standing.pods,
        cause=cause,
    )


def _sleeps(workload: Object) -> bool:
    """Say whether a workload is to have no pods."""
    return workload["spec"].get("replicas") == 0 or bool(workload["spec"].get("suspend"))


def _images(pods: Iterable[Object]) -> str:
    """The digests of what runs; the kubelet knows them, a tag says nothing."""
    found: dict[str, None] = {}
    for pod in pods:
        for one in container_statuses(pod)[:1]:
            digest = _DIGEST.search(str(one.get("imageID", "")))
            found[digest[0] if digest else str(one.get("image", ""))] = None
    return ", ".join(found)


def short_image(image: str) -> str:
    """Digests cut to what tells them apart."""
    return _DIGEST.sub(lambda match: match[0][: len("sha256:") + _SHORT], image)


def _last_end(pods: Iterable[Object], now: datetime) -> str:
    """How a container that runs again ended the last time, in words."""
    ends = [
        one["lastState"]["terminated"]
        for pod in pods
        for one in container_statuses(pod)
        if (one.get("lastState") or {}).get("terminated")
    ]
    last = max(ends, key=lambda end: str(end.get("finishedAt") or ""), default=None)
    if last is None:
        return ""
    reason = "was killed: out of memory" if last.get("reason") == "OOMKilled" else f"ended with {_status(last)}"
    return f"{reason}, {age(str(last.get('finishedAt') or ''), now)} ago"


def _status(end: Mapping[str, object]) -> str:
    return f"signal {end['signal']}" if end.get("signal") else f"exit status {end.get('exitCode')}"


def age(moment: str, now: datetime) -> str:
    """How long ago something was, in one unit: ``40s``, ``5m``, ``3h``, ``2d``."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return "?"
    seconds = max(0, int((now - then.astimezone(UTC)).total_seconds()))
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit * 2 or (unit == _MINUTE and seconds >= unit):
            return f"{seconds // unit}{letter}"
    return f"{seconds}s"
