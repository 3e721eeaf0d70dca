"""Why a workload fails in a way that waiting does not cure, and the message for it.

Owns which conditions of pods are failures, and after how long.
Must not know Compose files: a cause names the part of the service that it originates in, and others find its place.
The tries of Jobs are apart, in :mod:`~composeplat.cluster.jobs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from composeplat.cluster.cause import Cause
from composeplat.cluster.error_text import shorten
from composeplat.cluster.pull_errors import explain_pull_error, is_missing, is_throttled, telling_error
from composeplat.cluster.scheduling import autoscaler_refusal, is_room_coming, scheduling_limit
from composeplat.cluster.snapshot import (
    Object,
    Snapshot,
    container_of,
    container_statuses,
    event_count,
    init_container_statuses,
    is_ready,
    is_ready_or_completed,
    parse_time,
    probe_failures,
    ready_since,
    scheduling_failure,
    service_of,
    services_of,
)
from composeplat.cluster.unbound_claims import unbound_claim_cause
from composeplat.cluster.unreachable_nodes import unreachable_node
from composeplat.cluster.unschedulable import unschedulable_cause
from composeplat.codes.causes import CauseCode
from composeplat.names import FILL_CONTAINER, TOOLS_CONTAINER

#: For how long a container may not be created: its Secret may come a moment after the pod.
UNMADE_FOR = 5.0
#: The kubelet's reasons for a container that it can't start, with a message.
UNSTARTED = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
#: For how long a node may not have an image that was loaded into it: the kubelet asks again after ten seconds.
UNLOADED_FOR = 30.0
_OTHER_FILL_IMAGE = "it fills new volumes: name one that the cluster can pull, with --fill-image"
#: For how long a workload may be gone: another run may delete it to create it again.
_DELETED_FOR_S = 5.0
#: A service that is ready for less may not accept connections yet: a queue answers its health check before.
_ACCEPTS_AFTER_S = 10.0
#: A container that ran for longer did work: it is not in a loop of crashes.
_SOON_S = 60.0
#: For so long the kubelet may report that a container ended before it reports that it waits.
_REPORTED_S = 15.0
#: Of a crash that may be older than the cure: the kubelet pauses for up to five minutes before it starts it again.
_MENDED = "if its cause is mended by now, 'platform restart' starts it at once"
#: So often a crash is forgiven while other services are not ready: the kubelet's pauses make it half a minute.
_FORGIVEN_RESTARTS = 3
_MISSING_OBJECT = re.compile(r'(?:secret|configmap) "[^"]+" not found|non-existent (?:secret|config) key: \S+')
#: Why a container ended that nobody saw ending: its node, or the container runtime, was off.
_LOST = ("Unknown", "ContainerStatusUnknown")
_KILLED = 137
_NOT_FOUND = 127


# pods


def pod_failure_cause(pod: Object, snapshot: Snapshot, *, is_job: bool = False) -> Cause | None:
    unbound = unbound_claim_cause(pod, snapshot)
    if unbound is not None or scheduling_failure(pod) is not None:
        return unbound or _unscheduled(pod, snapshot)
    for container in (*_incomplete_init_containers(pod), *container_statuses(pod)):
        cause = _container(pod, container, snapshot, is_job=is_job)
        if cause:
            return cause
    return _unmounted(pod, snapshot) or (None if is_job else _unhealthy(pod, snapshot))


def _incomplete_init_containers(pod: Object) -> list[Object]:
    """Return the init containers without those that have done their work.

    They do it again, and count as restarted, when the pod gets a new sandbox, as after a restart of its node.
    """
    statuses = init_container_statuses(pod)
    return [status for status in statuses if status.get("state", {}).get("terminated", {}).get("exitCode") != 0]


def _unscheduled(pod: Object, snapshot: Snapshot) -> Cause | None:
    # The time counts from the first call, and so from the end of the other pods.
    if is_room_coming(pod, snapshot):
        return None
    if snapshot.age(f"unscheduled/{pod['metadata']['uid']}") < scheduling_limit(pod, snapshot):
        return None
    return unschedulable_cause(str(scheduling_failure(pod)), pod, autoscaler_refusal(pod, snapshot))


def _uncreated(pod: Object, container: Object, snapshot: Snapshot) -> Cause | None:
    """Return why a container can't be created."""
    waiting = container.get("state", {}).get("waiting", {})
    reason, text = waiting.get("reason", ""), str(waiting.get("message") or "")
    if reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"):
        return _image_failure(pod, container, _pull_message(pod, snapshot) or text, reason, snapshot)
    if reason in UNSTARTED:
        if snapshot.age(f"unmade/{pod['metadata']['uid']}") < UNMADE_FOR:
            return None
        is_of_user = "runAsNonRoot" in text
        return Cause(
            code=CauseCode.NOT_STARTED,
            message=f"can't be started: {shorten(text)}",
            origin=("user",) if is_of_user else ("command",),
            hint="give the number of another user than root with 'user'" if is_of_user else "",
            pod=pod["metadata"]["name"],
            container=container["name"],
        )
    return None


def _container(pod: Object, container: Object, snapshot: Snapshot, *, is_job: bool) -> Cause | None:
    uncreated = _uncreated(pod, container, snapshot)
    if uncreated is not None:
        return uncreated
    where = {"pod": pod["metadata"]["name"], "container": container["name"]}
    reason = container.get("state", {}).get("waiting", {}).get("reason", "")
    last = container.get("lastState", {}).get("terminated") or {}
    restarts = container.get("restartCount", 0)
    if reason == "CrashLoopBackOff" and _fills_volumes(container):
        return replace(_unfilled(last, container["name"]), pod=where["pod"], previous=True)
    ended = _soon_ended(pod, container, snapshot.time)
    if is_job or not restarts or not (ended or (last and reason == "CrashLoopBackOff")):
        return None
    if restarts <= _FORGIVEN_RESTARTS and _lacked_others(pod, ended or last, snapshot):
        return None
    crashed = _crashed(ended or last, restarts + 1, where)
    if ended:
        return replace(crashed, previous=False)
    is_lately = snapshot.time - parse_time(last.get("finishedAt")).timestamp() < _REPORTED_S
    return crashed if is_lately or crashed.hint else replace(crashed, hint=_MENDED)


def _soon_ended(pod: Object, container: Object, time: float) -> Object:
    """Return how a container ended soon after its start, if that was lately; empty if it did not.

    The kubelet reports it so for about ten seconds before it reports that it waits to restart it. For longer, there is
    no kubelet: the node was off, which ended the container, and is not back yet.
    """
    ended: Object = container.get("state", {}).get("terminated") or {}
    started, finished = parse_time(ended.get("startedAt")), parse_time(ended.get("finishedAt"))
    is_lately = time - finished.timestamp() < _REPORTED_S
    is_kept = "deletionTimestamp" not in pod["metadata"]
    soon = finished - started < timedelta(seconds=_SOON_S)
    is_own = ended.get("reason") not in _LOST
    return ended if is_kept and is_lately and ended.get("startedAt") and soon and is_own else {}


def _lacked_others(pod: Object, last: Object, snapshot: Snapshot) -> bool:
    """Whether a container may have crashed because another service was not ready yet, or only just.

    Many programs end when their database does not answer, and rely on being restarted. One that will never start is not
    waited for.
    """
    if last.get("exitCode") in (0, _NOT_FOUND) or last.get("reason") in ("OOMKilled", "StartError"):
        return False
    others = [other for other in snapshot.pods if service_of(other) != service_of(pod)]
    ready_before = parse_time(last.get("startedAt")) - timedelta(seconds=_ACCEPTS_AFTER_S)
    return any(
        ready_since(other) > ready_before if is_ready_or_completed(other) else not _never_starts(other, snapshot)
        for other in others
    )


def _never_starts(pod: Object, snapshot: Snapshot) -> bool:
    if unbound_claim_cause(pod, snapshot) is not None:
        return True
    if scheduling_failure(pod) is not None:
        return _unscheduled(pod, snapshot) is not None
    containers = (*init_container_statuses(pod), *container_statuses(pod))
    return any(_uncreated(pod, container, snapshot) is not None for container in containers)


def fill_failure_cause(pod: Object) -> Cause | None:
    """Return why the volumes of a pod were not filled; None where they were, or where that is still tried."""
    for container in init_container_statuses(pod):
        end = container.get("state", {}).get("terminated") or {}
        if _fills_volumes(container) and end.get("exitCode"):
            return replace(_unfilled(end, container["name"]), pod=pod["metadata"]["name"])
    return None


def _fills_volumes(container: Object) -> bool:
    return bool(container["name"].startswith((TOOLS_CONTAINER, FILL_CONTAINER)))


def _unfilled(end: Object, container: str) -> Cause:
    return Cause(
        code=CauseCode.VOLUME_NOT_FILLED,
        message=f"a volume can't be filled with the content of the image: exit status {end.get('exitCode')}",
        origin=("volumes",),
        hint="make it larger with `size`, or leave it empty with `nocopy`"
        if container.startswith(FILL_CONTAINER)
        else "",
        container=container,
        logs=True,
        exit_status=end.get("exitCode"),
        has_subject=True,
    )


def _image_failure(pod: Object, container: Object, text: str, reason: str, snapshot: Snapshot) -> Cause | None:
    # A digest comes from a registry that has, or had, the image: right after a push, another replica of it may not have
    # the image yet.
    stays_missing = is_missing(text) and "@" not in str(container.get("image", ""))
    may_come = (
        # The kubelet tries again after ten seconds.
        (reason == "ErrImagePull" and not stays_missing)
        or (reason == "ErrImageNeverPull" and snapshot.age(f"unloaded/{pod['metadata']['uid']}") < UNLOADED_FOR)
    )
    if may_come or is_throttled(text):
        return None
    why, hint = explain_pull_error(text, reason)
    is_ours = container["name"] == TOOLS_CONTAINER
    return Cause(
        code=CauseCode.IMAGE_NOT_PULLED,
        message=f"image '{container.get('image', '')}' can't be pulled: {why}",
        origin=("volumes",) if is_ours else ("image",),
        hint=_OTHER_FILL_IMAGE if is_ours else hint,
        has_subject=True,
        pod=pod["metadata"]["name"],
        container=container["name"],
    )


def _pull_message(pod: Object, snapshot: Snapshot) -> str:
    """Return the kubelet's message, which is in an event: the pod only says that it is backing off."""
    failed = [e for e in snapshot.events_of(pod["metadata"]["uid"]) if e.get("reason") == "Failed"]
    texts = [text for text in (str(e.get("message", "")) for e in failed) if not text.startswith("Error: ")]
    return telling_error(text for text in texts if "pull" in text.lower())


def _crashed(last: Object, count: int, where: Mapping[str, str]) -> Cause:
    end = describe_termination(last, "crashes", CauseCode.CRASH_LOOP)
    if last.get("exitCode") == 0 and last.get("reason") != "OOMKilled":
        end = replace(
            end,
            message="ends by itself, with exit status 0",
            hint='if that is meant, say restart: "no", which makes it a job',
        )
    return replace(
        end,
        message=f"{end.message} ({format_times(count)})",
        previous=end.logs,
        pod=where["pod"],
        container=where["container"],
    )


def describe_termination(end: Object, verb: str, code: CauseCode) -> Cause:
    """Describe how a container ended; the verb says what an exit status means for its workload."""
    status, origin, hint = end.get("exitCode"), ("command",), ""
    message = f"{verb} with exit status {status}"
    if end.get("reason") == "OOMKilled":
        message, origin, hint = "was killed: out of memory", ("mem_limit",), "raise its memory limit"
    elif end.get("reason") == "StartError":
        message = f"can't be started: {shorten(str(end.get('message', '')))}"
        hint = "check that the image has that program"
    elif status == _NOT_FOUND:
        hint = "the program to run was not found"
    elif status == _KILLED:
        hint = "killed, by its liveness check or probably out of memory"
    return Cause(
        code=code, message=message, origin=origin, hint=hint, exit_status=status, logs=end.get("reason") != "StartError"
    )


def _unmounted(pod: Object, snapshot: Snapshot) -> Cause | None:
    """Return the cause of a pod whose Secret or ConfigMap is not there, or lacks a key; images are pulled after it."""
    events = snapshot.events_of(pod["metadata"]["uid"])
    texts = [str(event.get("message", "")) for event in events if event.get("reason") == "FailedMount"]
    found = [match for text in texts if (match := _MISSING_OBJECT.search(text))]
    is_mounted = any(event.get("reason") in ("Pulling", "Pulled") for event in events)
    if not found or is_mounted or snapshot.age(f"unmounted/{pod['metadata']['uid']}") < UNMADE_FOR:
        return None
    return Cause(
        code=CauseCode.NOT_STARTED,
        message=f"can't be started: {shorten(found[-1][0])}",
        origin=("secrets" if "secret" in found[-1][0] else "configs",),
        hint="create it again, if it is external; otherwise deploy again",
        pod=pod["metadata"]["name"],
    )


def _unhealthy(pod: Object, snapshot: Snapshot) -> Cause | None:
    """Return the cause of a pod whose health check failed as often as it may, and that was never ready."""
    if is_ready(pod) or unreachable_node(pod):
        return None
    checked = _unready_container(pod)
    probe = checked.get("readinessProbe")
    failures = probe_failures(pod, snapshot, checked["name"])
    if not probe or not failures or not any("running" in c.get("state", {}) for c in container_statuses(pod)):
        return None
    allowed = probe.get("failureThreshold", 3)
    allowed_s = probe.get("initialDelaySeconds", 0) + probe.get("periodSeconds", 10) * allowed
    if event_count(failures) < allowed or snapshot.age(f"unready/{pod['metadata']['uid']}") < allowed_s:
        return None
    text = str(failures[-1].get("message", "")).partition("Readiness probe failed:")[2].strip()
    reason = shorten(text) or "its command fails without output"
    http = probe.get("httpGet")
    hint = f"the check requests port {http['port']}: does the program listen there?" if http else ""
    return Cause(
        code=CauseCode.UNHEALTHY,
        message=f"its health check failed {format_times(event_count(failures))}: {reason}",
        origin=("healthcheck",),
        hint=hint,
        logs=True,
        pod=pod["metadata"]["name"],
        container=checked["name"],
        has_subject=True,
    )


def _unready_container(pod: Object) -> Object:
    """Return the container of a service whose health check fails: the first one, unless several services are there."""
    ready = {status["name"] for status in container_statuses(pod) if status.get("ready")}
    containers: list[Object] = [container_of(pod["spec"], service) for service in services_of(pod)]
    failing = (found for found in containers if found.get("readinessProbe") and found["name"] not in ready)
    return next(failing, containers[0])


# workloads


def deletion_cause(kind: str, name: str, snapshot: Snapshot) -> Cause | None:
    """Return the cause of a workload that was applied and is gone: nothing makes it again."""
    if (kind, name) in snapshot.workloads or snapshot.age(f"deleted/{kind}/{name}") < _DELETED_FOR_S:
        return None
    return Cause(
        code=CauseCode.DELETED,
        message=f"{kind} '{name}' was deleted meanwhile, not by this run",
        hint="see whether another deploy or destroy runs, then run this again",
        has_subject=True,
    )


# texts


def format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
