"""Why the API server refuses the pods of a workload: a quota, a policy, a webhook; and why nodes do: a sysctl.

Owns which refusals still hold, and the hints for those of Kubernetes itself. Events stay for an hour, and the condition
of a Deployment may be of an old revision: a refusal counts until the workload is changed, or a later pod of it was
created.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from composeplat.cluster.cause import Cause
from composeplat.cluster.error_text import shorten
from composeplat.cluster.snapshot import Object, Snapshot, condition_of, event_time, has_ending_pods, ready_since
from composeplat.codes.causes import CauseCode

#: For how long a namespace may have no service account: the controller that creates it may be restarting.
UNSERVED_FOR = 30.0
#: For how long a quota may have no room while rolling updates of other services end.
NO_ROOM_FOR = 60.0
#: So long after an update ended the controller may ask again: its pauses are as long as it has been refused.
_ASKED_AGAIN_S = 30.0
#: The reason of a pod that the kubelet has refused for a sysctl; the next pod is refused too.
_FORBIDDEN_SYSCTL = "SysctlForbidden"

#: Patterns of messages of the API server, with the key that is responsible, and with a hint.
_KNOWN_REFUSALS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ('violates PodSecurity "restricted', (), "deploy with --pod-security restricted"),
    (
        r"failed quota: \S+ must specify",
        ("resources",),
        "set these under 'resources', or give the namespace a LimitRange with defaults",
    ),
    ("(minimum|maximum) cpu usage per", ("resources", "cpu"), "keep the CPU within the namespace's LimitRange"),
    (
        "(minimum|maximum) memory usage per",
        ("resources", "memory"),
        "keep the memory within the namespace's LimitRange",
    ),
    ("cpu max limit to request ratio", ("resources", "cpu"), "request more CPU, as the namespace's LimitRange asks"),
    (
        "memory max limit to request ratio",
        ("resources", "memory"),
        "request more memory, as the namespace's LimitRange asks",
    ),
)


def pod_creation_failure_cause(workload: Object, snapshot: Snapshot) -> Cause | None:
    """Return the cause of pods that the API server refuses."""
    refused = list(_refusals(workload, snapshot))
    if not refused:
        return None
    text, uid = refused[-1], workload["metadata"]["uid"]
    if re.search(r"serviceaccount \"[^\"]+\" not found", text) and snapshot.age(f"unserved/{uid}") < UNSERVED_FOR:
        return None
    quota = re.search(r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", text)
    if quota:
        if snapshot.once(_may_get_room) and snapshot.age(f"no-room/{uid}") < NO_ROOM_FOR:
            return None
        return Cause(
            code=CauseCode.OVER_QUOTA,
            origin=("resources", *re.findall("memory|cpu", quota[2])[:1]),
            hint="request less, or raise the quota",
            message=f"exceeds the quota '{quota[1]}': requests {quota[2]}, {quota[3]} of {quota[4]} used",
        )
    origin, hint = next((row[1:] for row in _KNOWN_REFUSALS if re.search(row[0], text)), ((), ""))
    return Cause(
        code=CauseCode.POD_REFUSED,
        origin=origin,
        hint=hint,
        message=f"its pods are refused: {shorten(text)}",
        has_subject=True,
    )


def node_refusal_cause(pods: Iterable[Object]) -> Cause | None:
    """Return why a node refuses pods that end without having started; a controller makes new ones without end."""
    for pod in pods:
        status = pod.get("status", {})
        if status.get("phase") == "Failed" and status.get("reason") == _FORBIDDEN_SYSCTL:
            text = str(status.get("message") or "forbidden sysctl").removeprefix("Pod was rejected: ")
            return Cause(
                code=CauseCode.POD_REFUSED,
                origin=("sysctls",),
                hint="allow it by --allowed-unsafe-sysctls of the nodes' kubelets, or leave it out",
                message=f"its pods are refused by their node: {shorten(text)}",
                has_subject=True,
            )
    return None


def refused_owners(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield kind and name of what creates pods and is refused: ReplicaSets for Deployments, else the workloads."""
    for (kind, name), workload in snapshot.workloads.items():
        if any(_refusals(workload, snapshot)):
            owners = [("ReplicaSet", found["metadata"]["name"]) for found in snapshot.current_replica_sets(workload)]
            yield from owners or [(kind, name)]


def _may_get_room(snapshot: Snapshot) -> bool:
    """Return whether pods leave, or have just left, in whose place a quota has room."""
    return snapshot.once(has_ending_pods) or any(_is_updated(found, snapshot) for found in snapshot.workloads.values())


def _is_updated(workload: Object, snapshot: Snapshot) -> bool:
    """Return whether a Deployment replaces its pods, or has just replaced them; not one that is refused pods itself."""
    current = snapshot.current_replica_sets(workload)
    old = [found for found in snapshot.replica_sets_of(workload["metadata"]["uid"]) if found not in current]
    if not old or any(_refusals(workload, snapshot)):
        return False
    new_pods = [pod for found in current for pod in snapshot.pods_of(found["metadata"]["uid"])]
    ended_before_s = snapshot.time - max((ready_since(pod).timestamp() for pod in new_pods), default=0.0)
    return ended_before_s < _ASKED_AGAIN_S or any(snapshot.pods_of(found["metadata"]["uid"]) for found in old)


def _refusals(workload: Object, snapshot: Snapshot) -> Iterator[str]:
    """Yield the messages of the refusals that still hold, the latest last."""
    current = snapshot.current_replica_sets(workload)
    for owner in (workload, *current):
        yield from _events_since(_last_change(owner, snapshot), snapshot.events_of(owner["metadata"]["uid"]))
    others = [found for found in snapshot.replica_sets_of(workload["metadata"]["uid"]) if found not in current]
    yield from (text for text in _failures_in([workload]) if not _is_of(others, text))
    yield from _failures_in(current)


def _events_since(moment: str, events: Iterable[Object]) -> Iterator[str]:
    for event in events:
        if event.get("reason") == "FailedCreate" and (event_time(event) or moment) >= moment:
            yield str(event.get("message", ""))


def _is_of(replica_sets: Iterable[Object], text: str) -> bool:
    """Return whether the condition of a Deployment is that of one of these, by the name of a pod or the text."""
    return any(f'"{found["metadata"]["name"]}-' in text or text in _failures_in([found]) for found in replica_sets)


def _last_change(owner: Object, snapshot: Snapshot) -> str:
    """Return when an owner of pods was changed last, or created its last pod; not the changes of its status."""
    managed = owner["metadata"].get("managedFields") or []
    changes = [str(entry.get("time", "")) for entry in managed if not entry.get("subresource")]
    pods = snapshot.pods_of(owner["metadata"]["uid"])
    return max([*changes, *(str(pod["metadata"].get("creationTimestamp", "")) for pod in pods)], default="")


def _failures_in(workloads: Iterable[Object]) -> Iterator[str]:
    for item in workloads:
        if condition := condition_of(item, "ReplicaFailure"):
            yield str(condition.get("message", ""))
