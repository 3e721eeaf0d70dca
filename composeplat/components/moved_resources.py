"""The resources that a program had before, which become those of a ``ComposeStack``: their aliases.

Owns how a program names them, and the selectors that workloads keep: by the kind and name of an object, with one alias
or several. An alias is a URN, as ``pulumi stack --show-urns`` prints it, the name of a resource without a parent, or a
``pulumi.Alias``. Of a renamed component, owns the aliases of what is below its children.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pulumi

from composeplat.components.definition import with_hint
from composeplat.components.plain_arguments import plain_list, plain_mapping, plain_texts
from composeplat.components.resource_names import last_part
from composeplat.diagnostics import ComposeplatError, join_some
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.kept_selectors import keep_selectors

Moved = str | pulumi.Alias | Sequence[str | pulumi.Alias]
_MAX_LISTED = 8


class MovedResources:
    """The aliases of the objects of a plan."""

    def __init__(self, given: Mapping[str, Moved] | None = None, objects: Collection[DesiredObject] = ()) -> None:
        self._given = {name: _listed(name, found) for name, found in plain_mapping("aliases", given).items()}
        known = {object_name(desired) for desired in objects} if given else set()
        for name in self._given:
            if name not in known:
                listed = join_some(sorted(known), _MAX_LISTED)
                raise pulumi.RunError(
                    f"'aliases' names '{name}', which is no object of the file; objects are: {listed}"
                )

    def of(self, desired: DesiredObject) -> list[str | pulumi.Alias] | None:
        given = self._given.get(object_name(desired))
        return None if given is None else [_parse(alias) for alias in given]


class FormerNames:
    """The names that a component had before, as its aliases and its parent's have them.

    Pulumi passes an alias on to the children whose names start with that of the component, but not to the resources
    below these: without aliases of their own, all objects of a renamed component would be made again.
    """

    def __init__(self, component: pulumi.Resource | None = None, parent: pulumi.Resource | None = None) -> None:
        self._urns = list(_aliases(component))
        self._of_parent = list(_aliases(parent))
        self._name = component.pulumi_resource_name if component is not None else ""
        self._parent_name = parent.pulumi_resource_name if self._of_parent and parent is not None else ""

    def aliases(self, name: str) -> list[pulumi.Input[str | pulumi.Alias]]:
        """Return the aliases of a resource whose name starts with the component's."""
        rest = name.removeprefix(self._name)
        found = [_named(urn, rest) for urn in self._urns]
        if self._parent_name and self._name.startswith(self._parent_name):
            of_component = self._name.removeprefix(self._parent_name)
            found += [_named(urn, of_component + rest) for urn in self._of_parent]
        return [*found]


def _aliases(resource: pulumi.Resource | None) -> Sequence[pulumi.Input[str]]:
    """Return the URNs of a resource's aliases; one that a provider gets from another process has none."""
    found: Sequence[pulumi.Input[str]] = getattr(resource, "_aliases", None) or ()
    return found


def _named(urn: pulumi.Input[str], rest: str) -> pulumi.Output[pulumi.Alias]:
    return pulumi.Output.from_input(urn).apply(lambda known: pulumi.Alias(name=last_part(known) + rest))


def with_selectors(plan: Plan, selectors: Mapping[str, Mapping[str, str]] | None) -> Plan:
    """Return the plan with the selectors that workloads have already; an error is one of the program."""
    given = plain_mapping("selectors", selectors)
    kept = {name: plain_texts(f"selectors[{name}]", labels) for name, labels in given.items()}
    try:
        return keep_selectors(plan, kept)
    except ComposeplatError as error:
        raise pulumi.RunError(with_hint(error)) from error


def object_name(desired: DesiredObject) -> str:
    return f"{desired.kind}/{desired.name}"


def _listed(name: str, given: Any) -> tuple[str | pulumi.Alias, ...]:
    listed = [given] if isinstance(given, str | pulumi.Alias) else given
    return plain_list(f"aliases[{name}]", listed, "a text or a pulumi.Alias", str, pulumi.Alias)


def _parse(alias: str | pulumi.Alias) -> str | pulumi.Alias:
    """Make an alias of a name: a resource that a program declares by itself has no parent."""
    if isinstance(alias, str) and not alias.startswith("urn:pulumi:"):
        return pulumi.Alias(name=alias, parent=pulumi.ROOT_STACK_RESOURCE)
    return alias
