"""Since when pods have been seen ready.

Owns this memory of the snapshots of a deployment. Must not know services, nor decide how long is long enough.
A pod can be ready before a round shows that its workload was applied, so every snapshot counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from composeplat.cluster.snapshot import Object, Snapshot, container_statuses, is_ready, ready_since


class ReadyPods:
    def __init__(self) -> None:
        self._noted: Snapshot | None = None
        self._since: dict[tuple[str, ...], float] = {}
        """What :func:`_readiness` returns for a pod -> when a snapshot showed it first."""

    def note(self, snapshot: Snapshot) -> None:
        """Note which pods a snapshot shows as ready."""
        if snapshot is not self._noted:
            self._noted = snapshot
            now = time.monotonic()
            ready = (_readiness(pod) for pod in snapshot.pods if is_ready(pod))
            self._since = {pod: self._since.get(pod, now) for pod in ready}

    def all_since(self, names: Collection[str], snapshot: Snapshot, *, otherwise: float) -> float:
        """Return since when all these pods have been ready with the same containers.

        ``otherwise`` is for pods that are not ready and are not waited for, as they keep an old revision.
        """
        pods = [pod for pod in snapshot.pods if pod["metadata"]["name"] in names]
        return max((self._since.get(_readiness(pod), otherwise) for pod in pods), default=otherwise)


def _readiness(pod: Object) -> tuple[str, ...]:
    """What differs once a pod has been not ready in between, or one of its containers has started again."""
    statuses = container_statuses(pod)
    containers = [f"{status.get('containerID')} {status.get('restartCount')}" for status in statuses]
    return (pod["metadata"]["uid"], ready_since(pod).isoformat(), *containers)
