"""The identity of a cluster: it differs from every other cluster's, and from that of its successor at one address."""

from __future__ import annotations

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError

_UNREACHABLE = (0, 401)


def cluster_identity(access: Access) -> str:
    """Return the UID of the cluster's namespace kube-system; the server's address if that may not be read."""
    with Api(access) as api:
        try:
            return str(api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
        except ApiError as error:
            if error.status in _UNREACHABLE:
                raise
    return address_identity(access)


def address_identity(access: Access) -> str:
    """Return the identity for a user who may not read that namespace."""
    return access.address.replace("/", "-").replace(":", "-")
