"""Claims that have no storage yet: whether a pod waits for one, and why it gets none.

A claim of a class that binds at its first consumer has its volume made only once the scheduler has chosen a node; until
then the pod has no node, and no condition that says why.
Must not know Compose files, nor wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from composeplat.cluster.cause import Cause
from composeplat.cluster.error_text import shorten
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.codes.causes import CauseCode

#: For how long a claim may not be provisioned.
UNBOUND_FOR = 8.0
#: Normal events of a volume that a driver provisions.
_PROVISIONING = ("ExternalProvisioning", "Provisioning")
_MAX_REASON_CHARS = 160


def unbound_claim_cause(pod: Object, snapshot: Snapshot) -> Cause | None:
    """Return the cause of a pod without a node whose claim is refused storage."""
    for claim in _unbound_claims(pod, snapshot):
        metadata = claim["metadata"]
        events = _events(claim, snapshot, "Warning")
        if not events and claim["spec"].get("storageClassName"):
            continue
        if snapshot.age(f"unbound/{metadata['uid']}") < UNBOUND_FOR:
            return None
        why = str(events[-1].get("message", "")) if events else "the cluster has no default storage class"
        return Cause(
            code=CauseCode.VOLUME_NOT_BOUND,
            message=f"volume '{metadata['name']}' is not provisioned: {shorten(why)}",
            origin=("volumes",),
            hint="set driver_opts.class to a storage class of the cluster",
            pod=pod["metadata"]["name"],
            has_subject=True,
        )
    return None


def provisioning_step(pod: Object, snapshot: Snapshot) -> str:
    """Return which volume of a pod without a node is provisioned now, with its last event; empty if none is."""
    for claim in _unbound_claims(pod, snapshot):
        events = [event for event in _events(claim, snapshot, "Normal") if event.get("reason") in _PROVISIONING]
        if events:
            reason = shorten(str(events[-1].get("message", "")).partition(". ")[0], _MAX_REASON_CHARS)
            return f"waiting for volume '{claim['metadata']['name']}': {reason}"
    return ""


def _unbound_claims(pod: Object, snapshot: Snapshot) -> Iterator[Object]:
    if pod["spec"].get("nodeName"):
        return
    mounted = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or []]
    for name in sorted({found["claimName"] for found in mounted if found}):
        claim = snapshot.claim(name)
        if claim is not None and claim.get("status", {}).get("phase") != "Bound":
            yield claim


def _events(claim: Object, snapshot: Snapshot, kind: str) -> list[Object]:
    return [event for event in snapshot.events_of(claim["metadata"]["uid"]) if event.get("type") == kind]
