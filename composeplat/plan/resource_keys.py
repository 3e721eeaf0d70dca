"""The keys of the resources of a plan: the kind of a resource, and its name in the cluster.

Owns the kinds of resources and the text form of a key. The state of deployed stacks has these texts, so they never
change. It is apart from the plan's objects because components and images have keys too.
Must not know the stack: :mod:`composeplat.components.resource_names` adds its name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from composeplat.compose.file_model import FileKind
from composeplat.system.records import record


class ResourceKind(StrEnum):
    """The kinds of resources: components, images and objects."""

    SERVICE = "service"
    """The component of a service, and its Kubernetes Service: Pulumi distinguishes them by type."""
    VOLUME = "volume"
    ENDPOINTS = "endpoints"
    """The component of an endpoint."""
    IMAGE = "image"
    ENVIRONMENT = "environment"
    """The Secret with a service's variables."""
    FILES = "files"
    """The Secret with a service's files."""
    PULL_SECRET = "pull"  # noqa: S105 -- a kind of object, no secret
    WORKLOAD = "workload"
    CLAIM = "claim"
    ENDPOINT = "endpoint"
    """The Ingress or HTTPRoute of an endpoint."""
    NETWORK = "network"
    """The component of a network, and its NetworkPolicy."""
    POLICY = "policy"
    """The NetworkPolicy of a service."""
    ALIAS = "alias"
    """The Service of a further name."""
    AUTOSCALER = "autoscaler"
    """The HorizontalPodAutoscaler of a service."""
    EXPOSED = "exposed"
    """The Service that makes ports of a service reachable from outside."""
    CONFIG = FileKind.CONFIG.value
    """The ConfigMap of a config."""
    SECRET = FileKind.SECRET.value
    """The Secret of a secret."""
    PROVIDED = "provided"
    """The Secret with the variables that a provider sets."""

    @property
    def is_of_service(self) -> bool:
        """Check that resources of this kind have the cluster name of a service."""
        return self not in _NOT_OF_SERVICES


_NOT_OF_SERVICES = (
    ResourceKind.VOLUME,
    ResourceKind.CLAIM,
    ResourceKind.ENDPOINTS,
    ResourceKind.ENDPOINT,
    ResourceKind.NETWORK,
    ResourceKind.ALIAS,
    ResourceKind.CONFIG,
    ResourceKind.SECRET,
    ResourceKind.PROVIDED,
)


@record
class ResourceKey:
    """A resource within its stack: ``workload/web``."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a key; None for another text."""
        kind, slash, name = text.partition("/")
        return cls(ResourceKind(kind), name) if slash and name and kind in list(ResourceKind) else None
