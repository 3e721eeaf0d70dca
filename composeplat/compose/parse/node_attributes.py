"""Nodes as Swarm and Docker name them, and as Kubernetes does: labels of nodes and architectures.

Owns these names alone; who reads them owns the messages.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Labels of Kubernetes' nodes, by the attributes of Swarm's.
NODE_LABELS: Mapping[str, str] = {
    "node.hostname": "kubernetes.io/hostname",
    "node.platform.arch": "kubernetes.io/arch",
    "node.platform.os": "kubernetes.io/os",
}

_ARCHITECTURES: Mapping[str, str] = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "aarch64": "arm64",
    "armhf": "arm",
    "armel": "arm",
}


def architecture_name(written: str) -> str:
    """Return the name that nodes have of an architecture."""
    return _ARCHITECTURES.get(written, written)
