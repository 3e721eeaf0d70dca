"""Pods on nodes that do not report any more: nothing there starts or ends, and programs may run on.

Owns how such a pod is recognized, without the permission to read nodes, and the hint about it.
Must not know the API: pods come in.
"""

from __future__ import annotations

from collections.abc import Iterable

from composeplat.cluster.snapshot import Object


def unreachable_node(pod: Object) -> str:
    """The node of a pod if it does not report, else empty.

    Kubernetes takes one condition from the pods of such a node, and leaves the one that the kubelet derives it from.
    """
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions") or []}
    is_lost = conditions.get("Ready") == "False" and conditions.get("ContainersReady") == "True"
    return str(pod["spec"].get("nodeName", "")) if is_lost and not pod["spec"].get("readinessGates") else ""


def find_unreachable_node(pods: Iterable[Object]) -> str:
    """Return the first node of these pods that does not report; empty without one."""
    return next(filter(None, map(unreachable_node, pods)), "")


def describe_unreachable(node: str) -> str:
    """Describe the node of a pod; empty without one."""
    return f"its node '{node}' does not report" if node else ""


def unreachable_hint(node: str) -> str:
    """Return the hint about a node that does not report; empty without one."""
    command = f"kubectl describe node {node} says since when"
    return f"{command}; if it is gone for good, kubectl delete node {node} lets its pods go" if node else ""
