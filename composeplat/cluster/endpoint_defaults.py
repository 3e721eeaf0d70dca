"""The domain and the ingress class of a local cluster of another program, as far as they can be known.

Owns the rule: a class is known if the cluster says which, and a domain if its program documents one and, where the user
maps the ports, something listens there.
Must not ask a user.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.capabilities import Classes, read_ingress_classes
from composeplat.cluster.other_clusters import EndpointDefaults, OtherCluster, Product

_HTTPS = ("127.0.0.1", 443)
_TIMEOUT_S = 1.0


def read_endpoint_defaults(api: Api, cluster: OtherCluster) -> EndpointDefaults:
    """Read the classes of a cluster, and derive the defaults; not every user may read classes."""
    try:
        classes = read_ingress_classes(api)
    except ApiError as error:
        # After another failure, a deploy without a domain would remove its endpoints.
        if error.status != http.client.FORBIDDEN:
            raise
        return EndpointDefaults()
    return derive_defaults(cluster.product, classes, has_listener)


def derive_defaults(product: Product, classes: Classes, is_mapped: Callable[[], bool]) -> EndpointDefaults:
    """Derive the defaults; without a class there is no controller, and so no domain."""
    chosen = _choose_class(product, classes)
    is_reached = bool(chosen) and (not product.has_mapped_ports or is_mapped())
    return EndpointDefaults(product.domain if is_reached else "", chosen, classes.names)


def _choose_class(product: Product, classes: Classes) -> str:
    """Return the default class, else the only one, else that of the program's own controller."""
    if classes.default or len(classes.names) == 1:
        return classes.default or classes.names[0]
    return product.ingress_class if product.ingress_class in classes.names else ""


def has_listener() -> bool:
    """Check whether something listens where the addresses of a cluster on this machine lead."""
    try:
        with socket.create_connection(_HTTPS, timeout=_TIMEOUT_S):
            return True
    except OSError:
        return False
