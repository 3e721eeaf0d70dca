"""What tells a cluster from every other, and from itself made anew."""

from __future__ import annotations

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError

_NOT_REACHED = (0, 401)


def cluster_identity(access: Access) -> str:
    """Give the number that the cluster's oldest namespace was born with, else the server's address."""
    with Api(access) as api:
        try:
            return str(api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
        except ApiError as error:
            if error.status in _NOT_REACHED:
                raise
    return address_identity(access)


def address_identity(access: Access) -> str:
    """What a cluster goes by for those who may not read that namespace."""
    return access.address.replace("/", "-").replace(":", "-")
