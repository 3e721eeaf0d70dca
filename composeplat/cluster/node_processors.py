"""The processors of a cluster's nodes, as Kubernetes and Go name them.

Owns reading them from the labels of nodes. Must not know who builds for them.
"""

from __future__ import annotations

import http.client

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path

_PROCESSOR, _SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"


def node_processors(api: Api) -> tuple[str, ...]:
    """Return the processors of the nodes with Linux; none without the right to list nodes."""
    try:
        nodes = api.object_metadata(kind_path("v1", "Node"))
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return ()
    labels = [node["metadata"].get("labels") or {} for node in nodes]
    found = {str(node.get(_PROCESSOR, "")) for node in labels if node.get(_SYSTEM, "linux") == "linux"}
    return tuple(sorted(found - {""}))
