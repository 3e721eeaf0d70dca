"""The pods of a service, as rows: the state of each as kubectl names it.

Owns which of a pod's many fields its state is. Must not judge it: :mod:`composeplat.cluster.failure_causes` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from composeplat.cluster.snapshot import Object, init_container_statuses, is_ready, statuses_of
from composeplat.system.records import record


@record(kw_only=True)
class PodRow:
    name: str
    state: str
    """``Running``, or the reason why a container does not."""
    ready: bool
    restarts: int
    created: str
    """When it was created, as the cluster writes it."""
    node: str
    """Empty while no node runs it."""


def pod_rows(pods: Iterable[Object], service: str) -> tuple[PodRow, ...]:
    return tuple(_row(pod, service) for pod in pods)


def _row(pod: Object, service: str) -> PodRow:
    statuses = statuses_of(pod, service)
    return PodRow(
        name=str(pod["metadata"]["name"]),
        state=_state(pod, statuses),
        ready=is_ready(pod),
        restarts=sum(status.get("restartCount", 0) for status in statuses),
        created=str(pod["metadata"].get("creationTimestamp") or ""),
        node=str(pod["spec"].get("nodeName") or ""),
    )


def _state(pod: Object, statuses: Iterable[Object]) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for status in init_container_statuses(pod):
        reason = _reason(status)
        if reason not in ("", "Completed"):
            return f"Init:{reason}"
    reasons = filter(None, map(_reason, statuses))
    return next(reasons, str(pod.get("status", {}).get("phase") or "Unknown"))


def _reason(status: Object) -> str:
    """Return why a container waits or has ended; empty if it runs."""
    state = status.get("state") or {}
    return next((str(state[name].get("reason") or "") for name in ("waiting", "terminated") if state.get(name)), "")
