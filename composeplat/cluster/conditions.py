"""Judge how a workload stands: absent, waiting, started, ready, completed or failed, and why.

Pure: a snapshot of the cluster comes in, a standing goes out.
Owns what counts as a failure that no waiting mends, and how it is said to a person.
Must not know Compose files; a cause names the part of a service that is to blame, and others find its place.

Only pods of a workload's present revision are judged: those of the one before may crash as they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from composeplat.model import COMPLETED, HEALTHY, STARTED

Object = dict[str, Any]

#: How long a pod may find no node before that is a failure, in seconds: claims are bound and images moved meanwhile.
UNSCHEDULABLE_FOR = 8.0
#: How long a container's making may fail before it is one: a Secret may come a moment after the pod.
UNMADE_FOR = 5.0
#: So long a namespace may be without its service account: a controller makes it, which may just be starting again.
UNSERVED_FOR = 30.0
#: How long a claim may fail to be provisioned.
UNBOUND_FOR = 8.0
_KILLED_FOR_MEMORY = 137
_NOT_FOUND = 127


class State(IntEnum):
    ABSENT = 0
    WAITING = 1
    STARTED = 2
    """A pod of it runs."""
    READY = 3
    COMPLETED = 4
    FAILED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a workload fails."""

    code: str
    message: str
    blame: tuple[str, ...] = ()
    """The part of the service to look at, such as ``("image",)``."""
    hint: str = ""
    pod: str = ""
    container: str = ""
    previous: bool = False
    """The lines to show are those of the container that ended, not of the one that runs now."""
    logs: bool = False
    """There may be lines to show: those of the container named."""
    lines: tuple[str, ...] = ()
    """The lines to show, where they are known already."""


#: What messages begin with that go on from "which".
_VERBS = ("can't", "crashes", "ends", "failed", "goes", "is", "took", "was")


def clause_of(cause: Cause) -> str:
    """A cause as it is said behind a service's name: ``db, which crashes``; some have a subject of their own."""
    goes_on = cause.message.startswith(tuple(f"{verb} " for verb in _VERBS))
    return f"which {cause.message}" if goes_on else f"which failed: {cause.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    state: State
    words: str
    ready: int = 0
    wanted: int = 0
    cause: Cause | None = None
    pods: tuple[str, ...] = ()


@dataclass(slots=True)
class Snapshot:
    """What a namespace held at one moment, as far as one environment goes."""

    workloads: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    """By kind and name."""
    replica_sets: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    events: list[Object] = field(default_factory=list)
    age: Callable[[str], float] = field(default=lambda _: 0.0)
    """For how many seconds something has been seen to be so; asking begins the count."""

    def events_of(self, uid: str) -> list[Object]:
        return [event for event in self.events if event.get("involvedObject", {}).get("uid") == uid]


def is_met(standing: Standing, condition: str) -> bool:
    """Say whether a dependency's condition holds; that a port answers is for the caller to see."""
    match condition:
        case _ if condition == STARTED:
            return standing.state in (State.STARTED, State.READY, State.COMPLETED)
        case _ if condition == HEALTHY:
            return standing.state in (State.READY, State.COMPLETED)
        case _ if condition == COMPLETED:
            return standing.state is State.COMPLETED
    return False


def judge(kind: str, name: str, snapshot: Snapshot) -> Standing:
    workload = snapshot.workloads.get((kind, name))
    if workload is None:
        return Standing(state=State.ABSENT, words="is not there yet")
    status = workload.get("status", {})
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0) and kind != "Job":
        return Standing(state=State.WAITING, words="is being taken up")
    if kind == "Job":
        return _job(workload, snapshot)
    return _steady(kind, workload, snapshot)


def _job(job: Object, snapshot: Snapshot) -> Standing:
    status = job.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    uid = job["metadata"]["uid"]
    pods = [pod for pod in snapshot.pods if _owner(pod) == uid]
    names = _names(pods)
    if "Complete" in conditions:
        return Standing(state=State.COMPLETED, words="completed", ready=1, wanted=1, pods=names)
    if "Failed" in conditions or "FailureTarget" in conditions:
        failed = conditions.get("Failed") or conditions["FailureTarget"]
        return _failed(_failed_job(failed, pods), 0, 1, names)
    cause = _creation(job, snapshot) or next((c for c in (_pod(p, snapshot, is_job=True) for p in pods) if c), None)
    if cause:
        return _failed(cause, 0, 1, names)
    if any(_runs(pod) for pod in pods):
        return Standing(state=State.STARTED, words="is running", wanted=1, pods=names)
    return Standing(state=State.WAITING, words=_waiting(pods, snapshot), wanted=1, pods=names)


def _failed_job(condition: Object, pods: list[Object]) -> Cause:
    last = max(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", ""), default=None)
    ended = [end for pod in pods for end in [_last_end(pod)] if end]
    code = f" with exit status {ended[-1]['exitCode']}" if ended else ""
    tries = f", after {len(pods)} tries" if len(pods) > 1 else ""
    reason = condition.get("reason", "")
    message = "took longer than it may" if reason == "DeadlineExceeded" else f"failed{code}{tries}"
    return Cause(
        code="job-failed", message=message, blame=("command",), logs=last is not None,
        pod=last["metadata"]["name"] if last else "", container=_container_name(last),
    )  # fmt: skip


def _steady(kind: str, workload: Object, snapshot: Snapshot) -> Standing:
    wanted = workload["spec"].get("replicas", 1)
    status = workload.get("status", {})
    pods = _present_pods(kind, workload, snapshot)
    ready = sum(is_ready(pod) for pod in pods)
    names = _names(pods)
    updated = status.get("updatedReplicas", 0)
    others = status.get("replicas", 0) - updated
    if wanted == 0:
        return Standing(state=State.READY, words="is scaled to nothing", pods=names)
    if ready >= wanted and updated >= wanted and (others <= 0 or kind == "StatefulSet"):
        return Standing(state=State.READY, words=f"{ready}/{wanted} ready", ready=ready, wanted=wanted, pods=names)
    cause = next((c for c in (_pod(p, snapshot) for p in pods) if c), None)
    cause = cause or (_creation(workload, snapshot) if len(pods) < wanted else None)
    if cause:
        return _failed(cause, ready, wanted, names)
    words = f"{ready}/{wanted} ready"
    if others > 0 and ready >= wanted:
        words = f"{words}, {others} of before still ending"
    elif waiting := _waiting(pods, snapshot):
        words = f"{words}, {waiting}"
    state = State.STARTED if any(_runs(pod) for pod in pods) else State.WAITING
    return Standing(state=state, words=words, ready=ready, wanted=wanted, pods=names)


def _failed(cause: Cause, ready: int, wanted: int, pods: tuple[str, ...]) -> Standing:
    return Standing(state=State.FAILED, words=cause.message, ready=ready, wanted=wanted, cause=cause, pods=pods)


# pods -----------------------------------------------------------------------------------------------------------------


def _present_pods(kind: str, workload: Object, snapshot: Snapshot) -> list[Object]:
    """The pods of the revision that is wanted now; those that are going away don't count."""
    uid = workload["metadata"]["uid"]
    alive = [pod for pod in snapshot.pods if "deletionTimestamp" not in pod["metadata"]]
    if kind == "StatefulSet":
        revision = workload.get("status", {}).get("updateRevision")
        label = "controller-revision-hash"
        return [p for p in alive if _owner(p) == uid and p["metadata"].get("labels", {}).get(label) == revision]
    revision = workload["metadata"].get("annotations", {}).get(_REVISION)
    present = {
        one["metadata"]["uid"]
        for one in snapshot.replica_sets
        if _owner(one) == uid and one["metadata"].get("annotations", {}).get(_REVISION) == revision
    }
    return [pod for pod in alive if _owner(pod) in present]


_REVISION = "deployment.kubernetes.io/revision"


def _owner(item: Object) -> str:
    return next((o["uid"] for o in item["metadata"].get("ownerReferences") or [] if o.get("controller")), "")


def _names(pods: list[Object]) -> tuple[str, ...]:
    return tuple(pod["metadata"]["name"] for pod in pods)


def _container_name(pod: Object | None) -> str:
    return str(pod["spec"]["containers"][0]["name"]) if pod else ""


def containers_of(pod: Object) -> list[Object]:
    found: list[Object] = pod.get("status", {}).get("containerStatuses") or []
    return found


def _before(pod: Object) -> list[Object]:
    """The containers that run before the others."""
    found: list[Object] = pod.get("status", {}).get("initContainerStatuses") or []
    return found


def service_of(pod: Object) -> str:
    """The cluster name of the service that a pod is of."""
    return str((pod["metadata"].get("labels") or {}).get("app.kubernetes.io/name", ""))


def is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions") or [])


def _runs(pod: Object) -> bool:
    return any("running" in c.get("state", {}) for c in containers_of(pod)) or pod["status"].get("phase") == "Succeeded"


def _last_end(pod: Object) -> Object | None:
    for container in containers_of(pod):
        for state in (container.get("state", {}), container.get("lastState", {})):
            if state.get("terminated"):
                ended: Object = state["terminated"]
                return ended
    return None


def _waiting(pods: list[Object], snapshot: Snapshot) -> str:
    """What the first pod that is not ready is waiting for, in a few words."""
    for pod in pods:
        if is_ready(pod):
            continue
        for container in containers_of(pod):
            reason = container.get("state", {}).get("waiting", {}).get("reason", "")
            if reason == "ContainerCreating":
                pulling = [e for e in snapshot.events_of(pod["metadata"]["uid"]) if e.get("reason") == "Pulling"]
                return "pulling its image" if pulling else "its container is being made"
            if reason:
                return _WORDS.get(reason, str(reason))
        unhealthy = _probe_failures(pod, snapshot)
        if unhealthy:
            return f"health check failed {_times(_count(unhealthy))}"
        if _scheduled(pod) is not None:
            return "no node takes it yet"
        if any("running" in c.get("state", {}) for c in containers_of(pod)):
            return "started, not ready yet"
        return "its pod is being made"
    return ""


_WORDS = {
    "ErrImagePull": "its image could not be pulled yet",
    "ImagePullBackOff": "its image could not be pulled yet",
    "CrashLoopBackOff": "it crashed, and is started again",
    "PodInitializing": "its pod is being made",
}

# failures -------------------------------------------------------------------------------------------------------------


def _pod(pod: Object, snapshot: Snapshot, *, is_job: bool = False) -> Cause | None:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    unscheduled = _scheduled(pod)
    if unscheduled is not None:
        unbound = _unbound(pod, snapshot)
        if unbound is not None:
            return unbound
        growing = any(event.get("reason") == "TriggeredScaleUp" for event in snapshot.events_of(uid))
        if growing or snapshot.age(f"unscheduled/{uid}") < UNSCHEDULABLE_FOR:
            return None
        return _unschedulable(unscheduled, name)
    for container in (*_before(pod), *containers_of(pod)):
        cause = _container(pod, container, snapshot, is_job=is_job)
        if cause:
            return cause
    if is_job:
        return None
    return _unhealthy(pod, snapshot)


def _container(pod: Object, container: Object, snapshot: Snapshot, *, is_job: bool) -> Cause | None:
    waiting = container.get("state", {}).get("waiting", {})
    reason, text = waiting.get("reason", ""), str(waiting.get("message") or "")
    where = {"pod": pod["metadata"]["name"], "container": container["name"]}
    if reason in ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"):
        return _unpulled(container.get("image", ""), _pull_message(pod, snapshot) or text, reason, where)
    if reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        if snapshot.age(f"unmade/{pod['metadata']['uid']}") < UNMADE_FOR:
            return None
        return Cause(code="not-started", message=f"can't be started: {_shorten(text)}", blame=("command",), **where)
    last = container.get("lastState", {}).get("terminated") or {}
    if reason == "CrashLoopBackOff" and last and not is_job and container.get("restartCount", 0) >= 1:
        return _crashed(last, container.get("restartCount", 0) + 1, where)
    return None


def _unpulled(image: str, text: str, reason: str, where: Mapping[str, str]) -> Cause:
    low = text.lower()
    if reason == "InvalidImageName":
        why, hint = "that is no image's name", "correct the name"
    elif re.search(r"not found|manifest unknown|does not exist|name unknown|name_unknown", low):
        why, hint = "there is no such image in its registry", "correct the name or the tag, or push the image"
    elif re.search(r"unauthorized|denied|authentication|403|401|no basic auth", low):
        why, hint = "its registry does not give it to this cluster", "give the cluster the registry's credentials"
    elif re.search(r"dial tcp|no such host|connection refused|timeout|unreachable|eof|tls|lookup", low):
        why, hint = "its registry can't be reached from the cluster", "see whether the registry runs, and its name"
    else:
        why, hint = _shorten(text), ""
    return Cause(
        code="image-not-pulled", message=f"image '{image}' can't be pulled: {why}", blame=("image",), hint=hint,
        pod=where["pod"], container=where["container"],
    )  # fmt: skip


def _pull_message(pod: Object, snapshot: Snapshot) -> str:
    """The kubelet's own words, which are in an event: the pod says only that it is backing off."""
    failed = [e for e in snapshot.events_of(pod["metadata"]["uid"]) if e.get("reason") == "Failed"]
    pulled = [str(e.get("message", "")) for e in failed if "pull" in str(e.get("message", "")).lower()]
    return max(pulled, key=len, default="")


def _crashed(last: Object, times: int, where: Mapping[str, str]) -> Cause:
    code = last.get("exitCode")
    hint, blame = "", ("command",)
    if last.get("reason") == "OOMKilled":
        message, blame = "needs more memory than it may have, and was killed", ("mem_limit",)
        hint = "raise its memory limit"
    elif last.get("reason") == "StartError":
        message = f"can't be started: {_shorten(str(last.get('message', '')))}"
        hint = "see whether the image has that program"
    elif code == 0:
        message = "ends by itself, with exit status 0"
        hint = 'if that is meant, say restart: "no", which makes it a job'
    else:
        message = f"crashes with exit status {code}"
        if code == _NOT_FOUND:
            hint = "the program it is to run was not found"
        elif code == _KILLED_FOR_MEMORY:
            hint = "it was killed, perhaps by its liveness check or for want of memory"
    ends = last.get("reason") != "StartError"
    return Cause(
        code="crash-loop", message=f"{message} ({_times(times)})", blame=blame, hint=hint, logs=ends, previous=ends,
        pod=where["pod"], container=where["container"],
    )  # fmt: skip


def _scheduled(pod: Object) -> str | None:
    """The scheduler's words where no node takes a pod; none where one does or it was not tried."""
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or "")
    return None


def _unschedulable(message: str, pod: str) -> Cause:
    blame: tuple[str, ...] = ()
    hint = ""
    if re.search(r"node affinity|node selector", message):
        blame, hint = ("x-node-selector",), "label a node so, or change the selector"
    elif "pod affinity" in message:
        blame, hint = ("volumes",), "services that share a volume run on one node, and that one has no room"
    elif re.search(r"Insufficient (cpu|memory)", message):
        blame, hint = ("resources",), "ask for less, or make room in the cluster"
    elif "persistentvolumeclaim" in message.lower() or "volume" in message.lower():
        blame = ("volumes",)
    return Cause(code="unschedulable", message=f"no node takes it: {message}", blame=blame, hint=hint, pod=pod)


def _unbound(pod: Object, snapshot: Snapshot) -> Cause | None:
    names = [v["persistentVolumeClaim"]["claimName"] for v in pod["spec"].get("volumes") or []
             if "persistentVolumeClaim" in v]  # fmt: skip
    for claim in snapshot.claims:
        metadata = claim["metadata"]
        if metadata["name"] not in names or claim.get("status", {}).get("phase") == "Bound":
            continue
        events = [e for e in snapshot.events_of(metadata["uid"]) if e.get("type") == "Warning"]
        storage_class = claim["spec"].get("storageClassName")
        if not events and storage_class:
            continue
        if snapshot.age(f"unbound/{metadata['uid']}") < UNBOUND_FOR:
            return None
        why = str(events[-1].get("message", "")) if events else "the cluster has no default storage class"
        return Cause(
            code="volume-not-bound", message=f"volume '{metadata['name']}' gets no storage: {_shorten(why)}",
            blame=("volumes",), hint="name a storage class of the cluster under driver_opts.class",
            pod=pod["metadata"]["name"],
        )  # fmt: skip
    return None


def _probe_failures(pod: Object, snapshot: Snapshot) -> list[Object]:
    events = snapshot.events_of(pod["metadata"]["uid"])
    return [e for e in events if e.get("reason") == "Unhealthy" and "Readiness" in str(e.get("message", ""))]


def _count(events: list[Object]) -> int:
    return sum(int(e.get("count") or e.get("series", {}).get("count") or 1) for e in events)


def _unhealthy(pod: Object, snapshot: Snapshot) -> Cause | None:
    """A health check that failed as often in a row as it may: for as long as that takes the pod was never ready."""
    if is_ready(pod):
        return None
    probe = pod["spec"]["containers"][0].get("readinessProbe")
    failures = _probe_failures(pod, snapshot)
    if not probe or not failures or not any("running" in c.get("state", {}) for c in containers_of(pod)):
        return None
    allowed = probe.get("failureThreshold", 3)
    patience = probe.get("initialDelaySeconds", 0) + probe.get("periodSeconds", 10) * allowed
    if _count(failures) < allowed or snapshot.age(f"unready/{pod['metadata']['uid']}") < patience:
        return None
    text = str(failures[-1].get("message", "")).partition("Readiness probe failed:")[2].strip()
    http = probe.get("httpGet")
    hint = f"it is asked for on port {http['port']}: is that the one it listens on?" if http else ""
    return Cause(
        code="unhealthy",
        message=f"its health check failed {_times(_count(failures))}: {_shorten(text) or 'no answer'}",
        blame=("healthcheck",), hint=hint, logs=True, pod=pod["metadata"]["name"], container=_container_name(pod),
    )  # fmt: skip


def _creation(workload: Object, snapshot: Snapshot) -> Cause | None:
    """Pods that the API server does not take: a quota, a policy, a webhook."""
    uid = workload["metadata"]["uid"]
    owners = {uid, *(one["metadata"]["uid"] for one in snapshot.replica_sets if _owner(one) == uid)}
    refused = [
        str(event.get("message", ""))
        for event in snapshot.events
        if event.get("reason") == "FailedCreate" and event.get("involvedObject", {}).get("uid") in owners
    ]
    conditions = workload.get("status", {}).get("conditions") or []
    refused += [
        str(c.get("message", "")) for c in conditions if c["type"] == "ReplicaFailure" and c["status"] == "True"
    ]
    if not refused:
        return None
    text = refused[-1]
    if re.search(r"serviceaccount \"[^\"]+\" not found", text) and snapshot.age(f"unserved/{uid}") < UNSERVED_FOR:
        return None
    quota = re.search(r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", text)
    if quota:
        return Cause(
            code="over-quota", blame=("resources",), hint="ask for less, or raise the quota",
            message=f"goes beyond the quota '{quota[1]}': asks for {quota[2]}, used are {quota[3]} of {quota[4]}",
        )  # fmt: skip
    return Cause(code="pod-refused", message=f"its pods are refused: {_shorten(text)}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _shorten(text: str, limit: int = 300) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
