"""The order of the resources in a state: each after its parent, its provider and its dependencies.

Pulumi refuses to read a state in another order, although it may write one itself.
Pure: it must not read or write states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def is_in_order(state: Mapping[str, Any]) -> bool:
    """Return whether each resource comes after all that it refers to."""
    before: set[str] = set()
    for resource in state.get("resources") or ():
        if any(urn not in before for urn in _references(resource)):
            return False
        before.add(str(resource["urn"]))
    return True


def _references(resource: Mapping[str, Any]) -> Iterator[str]:
    yield from resource.get("dependencies") or ()
    for urns in (resource.get("propertyDependencies") or {}).values():
        yield from urns or ()
    if resource.get("provider"):
        # The provider's URN, and its ID.
        yield str(resource["provider"]).rpartition("::")[0]
    yield from (urn for name in ("parent", "deletedWith") if (urn := resource.get(name)))
