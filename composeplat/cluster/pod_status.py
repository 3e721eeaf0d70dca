"""The pods of a service, as rows: the state of each as kubectl names it.

Owns which of a pod's many fields its state is. Must not judge it: :mod:`composeplat.cluster.failure_causes` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from composeplat.cluster.snapshot import (
    Object,
    condition_of,
    has_ended,
    init_container_statuses,
    is_ready,
    statuses_of,
)
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


def _state(pod: Object, statuses: Sequence[Object]) -> str:
    if pod["metadata"].get("deletionTimestamp") and not has_ended(pod):
        return "Terminating"
    whole = pod.get("status", {})
    reason = _init_state(pod) or next(filter(None, map(_reason, statuses)), "")
    if reason == "Completed" and any((status.get("state") or {}).get("running") for status in statuses):
        return "Running" if is_ready(pod) else "NotReady"
    return reason or str(whole.get("reason") or whole.get("phase") or "Unknown")


def _init_state(pod: Object) -> str:
    """Return the state of the init container that others wait for; empty after the last one."""
    found = pod["spec"].get("initContainers") or ()
    beside = {container["name"] for container in found if container.get("restartPolicy") == "Always"}
    for number, status in enumerate(() if condition_of(pod, "Initialized") else init_container_statuses(pod)):
        reason, end = _reason(status), (status.get("state") or {}).get("terminated") or {}
        if end.get("exitCode") != 0 and not (status["name"] in beside and status.get("started")):
            return f"Init:{reason}" if reason not in ("", "PodInitializing") else f"Init:{number}/{len(found)}"
    return ""


def _reason(status: Object) -> str:
    """Return why a container waits or has ended; empty if it runs."""
    state = status.get("state") or {}
    if waiting := state.get("waiting"):
        return str(waiting.get("reason") or "")
    if (ended := state.get("terminated")) is None:
        return ""
    unnamed = f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode')}"
    return str(ended.get("reason") or unnamed)
