"""The identity of a cluster: it differs from every other cluster's, and from that of its successor at one address."""

from __future__ import annotations

import http.client
import re

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.snapshot import Object

#: A failing server says nothing of the rights of the user. Another identity would be that of another cluster,
#: of which Pulumi replaces every object.
_NOT_READABLE = (http.client.FORBIDDEN, http.client.NOT_FOUND)
#: It is the name of a folder of states, which no server may choose elsewhere.
_UID = re.compile(r"\w[\w.-]{0,100}", re.ASCII)


def cluster_identity(access: Access) -> str:
    """Return the UID of the cluster's namespace kube-system; the server's address if that may not be read."""
    with Api(access) as api:
        try:
            return _uid_of(api.get("/api/v1/namespaces/kube-system"), access)
        except ApiError as error:
            if error.status not in _NOT_READABLE:
                raise
    return address_identity(access)


def _uid_of(namespace: Object, access: Access) -> str:
    metadata = namespace.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if isinstance(uid, str) and _UID.fullmatch(uid):
        return uid
    reason = "its namespace kube-system has no valid UID"
    raise ApiError(0, f"the server at {access.address} is not an API server: {reason}")


def address_identity(access: Access) -> str:
    """Return the identity for a user who may not read that namespace."""
    # States have it without the brackets of IPv6.
    return access.address.translate(str.maketrans("/:", "--", "[]"))
