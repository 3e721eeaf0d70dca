"""The objects that the components of a program have: no two of them may have one object.

Owns this memory of a run. The field manager of all components is the same, so the API server would see no conflict:
each update would overwrite the values of another component, and the end of one would delete the objects of both.
Must not know the cluster: an object of another program, or of ``platform deploy``, is not known here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from composeplat.components.default_cluster import KUBERNETES_TYPE, is_mocked
from composeplat.components.late_texts import LateTexts
from composeplat.components.runs import current_run, provider_identity
from composeplat.diagnostics import join_and_count
from composeplat.plan import Plan
from composeplat.plan.desired import DesiredObject
from composeplat.plan.extras import ExtraObject

_Key = tuple[Hashable, str, str, str]
"""The provider, the namespace, the group with the kind, and the name of an object."""
#: By run.
_OWNERS: WeakKeyDictionary[Any, dict[_Key, pulumi.Resource]] = WeakKeyDictionary()
_MAX_LISTED = 3
_HINT = "give each a namespace of its own, or its services, volumes and endpoints other names"


def claim_objects(
    component: pulumi.Resource, plan: Plan, late: LateTexts, extras: Mapping[str, Iterable[ExtraObject]]
) -> pulumi.Output[str]:
    """Note the objects of a component, with its extras, and refuse those that another one of the same cluster has.

    Return the namespace. Where that is an output, the check is part of it: an error in an output that nothing waits for
    would be lost in a provider. A unit test with mocks can make one component in each test, in one run.
    """
    namespace: pulumi.Output[str] = pulumi.Output.from_input(late.text(plan.namespace))
    if is_mocked():
        return namespace
    owners = _OWNERS.setdefault(current_run(), {})
    objects: tuple[DesiredObject | ExtraObject, ...] = (*plan.objects, *chain.from_iterable(extras.values()))
    if late.is_late(plan.namespace):
        return namespace.apply(lambda known: _claim(owners, component, objects, known))
    _claim(owners, component, objects, plan.namespace)
    return namespace


def _claim(
    owners: dict[_Key, pulumi.Resource],
    component: pulumi.Resource,
    objects: Iterable[DesiredObject | ExtraObject],
    namespace: str,
) -> str:
    provider = provider_identity(component.get_provider(KUBERNETES_TYPE))
    keys = {f"{found.kind}/{found.name}": (provider, namespace, _kind_of(found), found.name) for found in objects}
    other = next((owners[key] for key in keys.values() if key in owners), None)
    if other is not None:
        both = join_and_count([name for name, key in keys.items() if owners.get(key) is other], _MAX_LISTED)
        who = f"'{component.pulumi_resource_name}' and '{other.pulumi_resource_name}'"
        raise pulumi.RunError(f"{who} both have {both} in namespace '{namespace}'\n  hint: {_HINT}")
    owners.update(dict.fromkeys(keys.values(), component))
    return namespace


def _kind_of(found: DesiredObject | ExtraObject) -> str:
    group, slash, _ = str(found.manifest["apiVersion"]).rpartition("/")
    return f"{group}{slash}{found.kind}"
