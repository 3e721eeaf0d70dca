"""Since when pods have been seen ready.

Owns this memory of the snapshots of a deployment. Must not know services, nor decide how long is long enough.
A pod can be ready before a round shows that its workload was applied, so every snapshot counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from composeplat.cluster.snapshot import Object, Snapshot, container_statuses, is_ready, ready_since

_Readiness = tuple[str, ...]


class ReadyPods:
    def __init__(self) -> None:
        self._noted: Snapshot | None = None
        self._pods: dict[str, tuple[Object, _Readiness | None]] = {}
        """UID -> a pod of the last snapshot, and its readiness if it is ready. An object that stays is the same."""
        self._since: dict[_Readiness, float] = {}
        """A readiness -> when a snapshot showed it first."""

    def note(self, snapshot: Snapshot) -> None:
        """Note which pods a snapshot shows as ready."""
        if snapshot is self._noted:
            return
        self._noted = snapshot
        now, known = time.monotonic(), self._pods
        self._pods = {}
        for pod in snapshot.pods:
            uid = pod["metadata"]["uid"]
            entry = known.get(uid)
            if entry is None or entry[0] is not pod:
                entry = pod, _readiness(pod) if is_ready(pod) else None
            self._pods[uid] = entry
        ready = [readiness for _, readiness in self._pods.values() if readiness is not None]
        self._since = {readiness: self._since.get(readiness, now) for readiness in ready}

    def all_since(self, names: Collection[str], snapshot: Snapshot, *, otherwise: float) -> float:
        """Return since when all these pods have been ready with the same containers.

        ``otherwise`` is for pods that are not ready and are not waited for, as they keep an old revision.
        """
        pods = [pod for pod in snapshot.pods if pod["metadata"]["name"] in names]
        return max((self._since.get(_readiness(pod), otherwise) for pod in pods), default=otherwise)


def _readiness(pod: Object) -> _Readiness:
    """What differs once a pod has been not ready in between, or one of its containers has started again."""
    statuses = container_statuses(pod)
    containers = [f"{status.get('containerID')} {status.get('restartCount')}" for status in statuses]
    return (pod["metadata"]["uid"], ready_since(pod).isoformat(), *containers)
