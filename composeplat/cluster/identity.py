"""The identity of a cluster: it differs from every other cluster's, and from that of its successor at one address."""

from __future__ import annotations

import http.client

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError

#: A failing server says nothing of the rights of the user. Another identity would be that of another cluster,
#: of which Pulumi replaces every object.
_NOT_READABLE = (http.client.FORBIDDEN, http.client.NOT_FOUND)


def cluster_identity(access: Access) -> str:
    """Return the UID of the cluster's namespace kube-system; the server's address if that may not be read."""
    with Api(access) as api:
        try:
            return str(api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
        except ApiError as error:
            if error.status not in _NOT_READABLE:
                raise
    return address_identity(access)


def address_identity(access: Access) -> str:
    """Return the identity for a user who may not read that namespace."""
    # States have it without the brackets of IPv6.
    return access.address.translate(str.maketrans("/:", "--", "[]"))
