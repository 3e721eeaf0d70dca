"""What a deployment is told besides the definition: names, domain, ingress, registry, flags.

Owns the one value that carries these from the front doors (command line, Pulumi configuration, a caller's arguments)
into the plan.
Must not know where they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from composeplat.registry.credentials import Login


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    environment: str
    """The environment's name, a DNS label already."""
    name_from_folder: bool = False
    """Whether nobody gave that name: it is the folder's, and another project's folder may have the same."""
    namespace: str = "default"
    domain: str = ""
    ingress_class: str = ""
    gateway: str = ""
    """``name`` or ``namespace/name`` of a Gateway: endpoints become HTTPRoutes instead of Ingresses."""
    tls_secret: str = ""
    pod_security: str = ""
    """``restricted``: pods are such as a namespace of that Pod Security level takes."""
    tls_issuer: str = ""
    """A cert-manager ClusterIssuer that makes a certificate for each endpoint."""
    registry: str = ""
    pull_secret: bool = False
    """Whether pods are given the user's logins for the registries they pull from."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """By registry."""
    volume_affinity: bool = True
    wake_in_order: bool = False
