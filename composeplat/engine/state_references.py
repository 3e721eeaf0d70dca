"""The references between the resources of a state: to parents, providers, and by dependencies.

Owns the fields that refer to others, the order that they ask for, and their removal with a resource. Pulumi refuses to
read a state in another order, although it may write one itself.
Pure: it must not read or write states.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

_LISTS = ("dependencies", "replaceWith")
_BY_PROPERTY = "propertyDependencies"
_DELETED_WITH = "deletedWith"


def is_in_order(state: Mapping[str, Any]) -> bool:
    """Return whether each resource comes after all that it refers to, as Pulumi checks it."""
    before: set[str] = set()
    for resource in state.get("resources") or ():
        if any(urn not in before for urn in _references(resource)):
            return False
        before.add(str(resource["urn"]))
    return True


def _references(resource: Mapping[str, Any]) -> Iterator[str]:
    yield from (urn for name in _LISTS for urn in resource.get(name) or () if urn)
    for urns in (resource.get(_BY_PROPERTY) or {}).values():
        yield from filter(None, urns or ())
    # One that is to be replaced may have lost its provider.
    if resource.get("provider") and not resource.get("pendingReplacement"):
        # The provider's URN, and its ID.
        yield str(resource["provider"]).rpartition("::")[0]
    yield from (urn for name in ("parent", _DELETED_WITH) if (urn := resource.get(name)))


def without_resources(state: Mapping[str, Any], urns: Collection[str]) -> dict[str, Any] | None:
    """Return the state without some resources and without references to them; None if it has none of them."""
    resources = state.get("resources") or []
    kept = [_without_references(resource, urns) for resource in resources if resource.get("urn") not in urns]
    return None if len(kept) == len(resources) else {**state, "resources": kept}


def _without_references(resource: Mapping[str, Any], urns: Collection[str]) -> dict[str, Any]:
    left: dict[str, Any] = {key: _others(resource[key], urns) for key in _LISTS if resource.get(key)}
    properties: Mapping[str, Any] = resource.get(_BY_PROPERTY) or {}
    if properties:
        left[_BY_PROPERTY] = {name: _others(found or (), urns) for name, found in properties.items()}
    deleted_with = {_DELETED_WITH: ""} if resource.get(_DELETED_WITH) in urns else {}
    return {**resource, **left, **deleted_with}


def _others(found: Iterable[str], urns: Collection[str]) -> list[str]:
    return [urn for urn in found if urn not in urns]
