"""For how long a pod may be without a node before that is a failure: an autoscaler may be adding a node.

Must not know the API: a pod and a snapshot come in, seconds go out.
Apart from :mod:`~composeplat.cluster.failure_causes`, as each autoscaler has its own events and its own pace.
"""

from __future__ import annotations

import math
import re

from composeplat.cluster.snapshot import Object, Snapshot, event_time, has_ending_pods, scheduling_failure
from composeplat.cluster.unbound_claims import provisioning_step

#: In this time claims are bound and other pods are rescheduled.
LIMIT_S = 8.0
#: A node that was asleep or busy is tainted until some seconds after its kubelet reports, which it does every ten.
TAINTED_LIMIT_S = 30.0
#: Newer schedulers don't say which taint it is.
_TAINTED = r"untolerated taint(?:\(s\)| \{node\.kubernetes\.io/(?:not-ready|unreachable):)"
#: An autoscaler checks pods every ten seconds or more, and may add a node after its next back-off.
AUTOSCALER_LIMIT_S = 60.0
#: cluster-autoscaler, Karpenter.
_ADDING = ("TriggeredScaleUp", "Nominated")
_REFUSING = ("NotTriggerScaleUp",)
#: What a pod on a node keeps from others.
_TAKEN = re.compile(
    r"Insufficient |Too many pods|free ports|anti-affinity|topology spread|max volume count|ReadWriteOncePod",
    re.IGNORECASE,
)


def scheduling_limit(pod: Object, snapshot: Snapshot) -> float:
    """Return the seconds after which a pod without a node has failed; infinite while a node or volume is made."""
    if is_node_coming(pod, snapshot) or provisioning_step(pod, snapshot):
        return math.inf
    if autoscaler_refusal(pod, snapshot) or snapshot.has_autoscaler is not False:
        return AUTOSCALER_LIMIT_S
    return TAINTED_LIMIT_S if re.search(_TAINTED, scheduling_failure(pod) or "") else LIMIT_S


def is_room_coming(pod: Object, snapshot: Snapshot) -> bool:
    """Return whether a pod is without a node for want of something that another pod has, which is ending."""
    return bool(_TAKEN.search(scheduling_failure(pod) or "")) and snapshot.once(has_ending_pods)


def is_node_coming(pod: Object, snapshot: Snapshot) -> bool:
    """Return whether a pod will get a node: from an autoscaler, or from the scheduler, which preempts other pods."""
    last = _last_decision(pod, snapshot)
    return bool(pod.get("status", {}).get("nominatedNodeName")) or (last is not None and last.get("reason") in _ADDING)


def autoscaler_refusal(pod: Object, snapshot: Snapshot) -> str:
    """Return an autoscaler's message why it adds no node for a pod; empty without a refusal."""
    last = _last_decision(pod, snapshot)
    return str(last.get("message", "")) if last is not None and last.get("reason") not in _ADDING else ""


def _last_decision(pod: Object, snapshot: Snapshot) -> Object | None:
    events = [event for event in snapshot.events_of(pod["metadata"]["uid"]) if _is_decision(event)]
    return max(events, key=event_time, default=None)


def _is_decision(event: Object) -> bool:
    reason = event.get("reason")
    return reason in (*_ADDING, *_REFUSING) or (reason == "FailedScheduling" and _is_of_autoscaler(event))


def _is_of_autoscaler(event: Object) -> bool:
    """Karpenter's events have the same reason as the scheduler's."""
    component = str(event.get("reportingComponent") or event.get("source", {}).get("component") or "")
    return component != "" and "scheduler" not in component
