"""Why no node can run a pod, in the scheduler's words, and where to look: in the Compose file or at the nodes.

Apart from :mod:`~composeplat.cluster.scheduling`, which says for how long a pod may be without a node.
Must not know the API: a pod and the scheduler's message come in, a cause goes out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from composeplat.cluster.cause import Cause
from composeplat.cluster.error_text import FREE_DISK, shorten
from composeplat.cluster.snapshot import Object
from composeplat.codes.causes import CauseCode
from composeplat.system.records import record

_REQUEST_LESS = "request less, or add capacity to the cluster"
_LIMIT_REQUESTED = (
    "a limit is requested as a whole, unless deploy.resources.reservations asks for less: set that, or add capacity"
)
_CORDONED = "a node is cordoned, as for maintenance: kubectl get nodes shows which, kubectl uncordon NODE ends it"
_TAINTED = (
    "kubectl describe nodes shows the taints, which nodes that are not ready have too: remove one, or add tolerations"
    " with x-kubernetes in full mode"
)


def _requests(pod: Object, found: re.Match[str]) -> str:
    return _LIMIT_REQUESTED if _requests_limit(pod, found[1]) else _REQUEST_LESS


def _lacks_device(_pod: Object, found: re.Match[str]) -> str:
    return f"no node has enough '{found[1]}' left: reserve less, add a node, or check its device plugin"


@record
class _Reason:
    pattern: str
    hint: str | Callable[[Object, re.Match[str]], str] = ""
    origin: tuple[str, ...] = ()
    """The key of the service that asks for it; for a resource, its name follows."""


#: The first that is found in a message counts, as nodes refuse for different reasons: those of the Compose file come
#: first, as its author can change it.
_REASONS = (
    _Reason("node affinity|node selector", "label a node accordingly, or change the selector", ("x-node-selector",)),
    _Reason("pod affinity", "services that share a volume run on one node, and that node is full", ("volumes",)),
    _Reason("Insufficient (cpu|memory)", _requests, ("resources",)),
    _Reason(r"Insufficient ((?:[\w.-]+/)[\w.-]*\w)", _lacks_device),
    _Reason("topology spread constraints", "it asks for more nodes, or for other ones", ("deploy", "placement")),
    _Reason("free ports", "another pod has that port of the node: network_mode: host lets one pod per node use it"),
    _Reason("Too many pods", "the nodes run as many pods as they may: scale services down, or add a node"),
    _Reason("disk-pressure", f"the disk of the nodes is full: {FREE_DISK}"),
    _Reason(
        'persistentvolumeclaim "[^"]+" not found',
        "platform deploy --refresh creates the volume again, without the data it had",
        ("volumes",),
    ),
    _Reason("(?i:persistentvolumeclaim|volume)", "", ("volumes",)),
    _Reason(r"were unschedulable|node\.kubernetes\.io/unschedulable", _CORDONED),
    _Reason("untolerated taint", _TAINTED),
)


def unschedulable_cause(message: str, pod: Object, refusal: str) -> Cause:
    """Return the cause of a pod that no node can run; a refusal is that of an autoscaler to add a node for it."""
    origin, hint = _describe(message, pod)
    more = f"; the autoscaler adds no node: {shorten(refusal)}" if refusal else ""
    return Cause(
        code=CauseCode.UNSCHEDULABLE,
        message=f"no node can run it: {message}{more}",
        origin=origin,
        hint=hint,
        pod=pod["metadata"]["name"],
        has_subject=True,
    )


def _describe(message: str, pod: Object) -> tuple[tuple[str, ...], str]:
    for reason in _REASONS:
        if found := re.search(reason.pattern, message):
            hint = reason.hint if isinstance(reason.hint, str) else reason.hint(pod, found)
            return (*reason.origin, found[1]) if reason.origin == ("resources",) else reason.origin, hint
    return (), ""


def _requests_limit(pod: Object, resource: str) -> bool:
    """Whether a container requests as much as it may use: so does each with a limit and without a request."""
    found = [container.get("resources") or {} for container in pod["spec"].get("containers") or []]
    limits = [(each.get("limits", {}).get(resource), each.get("requests", {}).get(resource)) for each in found]
    return any(limit is not None and limit == request for limit, request in limits)
