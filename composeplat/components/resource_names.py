"""The names under which Pulumi knows the resources of a stack: ``shop-workload/web``.

Owns how a name is made of a stack and a key, and how names and URNs are parsed.
The state of deployed stacks holds these names, so they never change.
It is apart from the components, which load Pulumi: the engine reads names without it.
"""

from __future__ import annotations

from typing import Self

from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.system.records import record


@record
class ResourceName:
    stack: str
    key: ResourceKey

    @classmethod
    def make(cls, stack: str, kind: ResourceKind, name: str) -> Self:
        return cls(stack, ResourceKey(kind, name))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the name of a resource; None if it has no key, like a stack or a provider."""
        head, slash, name = text.partition("/")
        stack, dash, kind = head.rpartition("-")
        key = ResourceKey.parse(f"{kind}/{name}") if slash and dash else None
        return cls(stack, key) if key is not None else None

    @classmethod
    def from_urn(cls, urn: str) -> Self | None:
        return cls.parse(last_part(urn))

    def __str__(self) -> str:
        return f"{self.stack}-{self.key}"


def last_part(urn: str) -> str:
    """Return the name in a URN, whether it has a key or not."""
    return urn.rpartition("::")[2]


@record
class Urns:
    """Makes the URNs of a stack's resources."""

    namespace: str
    stack: str

    def component(self, kind: ResourceKind, name: str) -> str:
        return self._urn(_COMPONENT_TYPES[kind], kind, name)

    def child(self, parent: ResourceKind, kind: ResourceKind, name: str, token: str) -> str:
        """Return the URN of a resource below a component of the same name; ``token`` is its type."""
        return self._urn(f"{_COMPONENT_TYPES[parent]}${token}", kind, name)

    def _urn(self, types: str, kind: ResourceKind, name: str) -> str:
        chain = f"{STACK_TYPE}${types}"
        return f"urn:pulumi:{self.namespace}::{self.stack}::{chain}::{ResourceName.make(self.stack, kind, name)}"


def belongs_to_stack(urn: str) -> bool:
    """Check whether a resource is below a ``ComposeStack``."""
    return f"::{STACK_TYPE}$" in urn


def is_of_program(urn: str, stack: str) -> bool:
    """Check for a resource of the program of ``platform``: a provider, Pulumi's own stack, or of ``ComposeStack``."""
    types, name = urn.split("::")[2:4]
    if types.rpartition("$")[2].startswith("pulumi:"):
        return True
    first, dollar, _ = types.partition("$")
    parsed = ResourceName.parse(name)
    owner = name if not dollar else parsed.stack if parsed is not None else stack
    return (first, owner) == (STACK_TYPE, stack)


STACK_TYPE = "composeplat:index:ComposeStack"
SERVICE_TYPE = "composeplat:index:Service"
VOLUME_TYPE = "composeplat:index:Volume"
ENDPOINTS_TYPE = "composeplat:index:EndpointSet"
NETWORK_TYPE = "composeplat:index:Network"
_COMPONENT_TYPES = {
    ResourceKind.SERVICE: SERVICE_TYPE,
    ResourceKind.VOLUME: VOLUME_TYPE,
    ResourceKind.ENDPOINTS: ENDPOINTS_TYPE,
    ResourceKind.NETWORK: NETWORK_TYPE,
}
