"""How long a pod may be without a node before that is a failure: an autoscaler may be adding one.

Pure. Apart from :mod:`~composeplat.cluster.failure_causes`, as each autoscaler has its own events and its own pace.
"""

from __future__ import annotations

import math

from composeplat.cluster.snapshot import Object, Snapshot, event_time

#: Claims are bound and images moved meanwhile.
LIMIT_S = 8.0
#: An autoscaler looks at pods every ten seconds or more; what it refuses now, it may do after its next back-off.
AUTOSCALER_LIMIT_S = 60.0
#: cluster-autoscaler, Karpenter.
_ADDING = ("TriggeredScaleUp", "Nominated")
_REFUSING = ("NotTriggerScaleUp",)


def scheduling_limit(pod: Object, snapshot: Snapshot) -> float:
    """The seconds after which a pod without a node has failed; without end while a node is on its way."""
    if is_node_coming(pod, snapshot):
        return math.inf
    if autoscaler_refusal(pod, snapshot) or snapshot.has_autoscaler is not False:
        return AUTOSCALER_LIMIT_S
    return LIMIT_S


def is_node_coming(pod: Object, snapshot: Snapshot) -> bool:
    """Say whether room is being made for a pod: by an autoscaler, or by the scheduler, which ends lesser pods."""
    last = _last_decision(pod, snapshot)
    return bool(pod.get("status", {}).get("nominatedNodeName")) or (last is not None and last.get("reason") in _ADDING)


def autoscaler_refusal(pod: Object, snapshot: Snapshot) -> str:
    """Why an autoscaler adds no node for a pod, in its own words; empty where it has not refused."""
    last = _last_decision(pod, snapshot)
    return str(last.get("message", "")) if last is not None and last.get("reason") not in _ADDING else ""


def _last_decision(pod: Object, snapshot: Snapshot) -> Object | None:
    events = [event for event in snapshot.events_of(pod["metadata"]["uid"]) if _is_decision(event)]
    return max(events, key=event_time, default=None)


def _is_decision(event: Object) -> bool:
    reason = event.get("reason")
    return reason in (*_ADDING, *_REFUSING) or (reason == "FailedScheduling" and _is_of_autoscaler(event))


def _is_of_autoscaler(event: Object) -> bool:
    """Karpenter's own verdict has the reason that the scheduler's has."""
    component = str(event.get("reportingComponent") or event.get("source", {}).get("component") or "")
    return component != "" and "scheduler" not in component
