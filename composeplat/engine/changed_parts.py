"""The parts of a plan that may change alone: then Pulumi is given these, and what they need, instead of everything.

A part is a group of the plan's objects, such as those of a service.
Owns what of a plan may differ from the last run: pod templates, replica counts, and the content of Secrets and
ConfigMaps. Kubernetes updates these in place, so no other resource is replaced with them. Everything else, such as a
port, a volume, a dependency or a Job, makes the run a whole one.
Pure: a plan comes in, and data or a smaller plan goes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from composeplat.components.resource_names import ResourceName
from composeplat.plan.desired import DesiredObject, Manifest, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey
from composeplat.system.records import record

#: By kind, the fields that Kubernetes updates in place.
_UPDATED_IN_PLACE = {
    "Deployment": (("spec", "template"), ("spec", "replicas")),
    "StatefulSet": (("spec", "template"), ("spec", "replicas")),
    "DaemonSet": (("spec", "template"),),
    "Secret": (("data",),),
    "ConfigMap": (("data",), ("binaryData",)),
}
#: What only decides how a service is waited for.
_OF_THE_WAIT: Mapping[str, Any] = {"image": "", "ports": (), "has_health_check": False, "start_period": 0}
_WITHOUT_SERVICES = ("files", "volumes", "networks", "endpoints")
#: Of more services a run is a whole one: it takes as long.
_MOST_SERVICES = 0.5


def fixed_facts(plan: Plan) -> Any:
    """What has to be as in the last run."""
    rest = {found.name: getattr(plan, found.name) for found in fields(plan)}
    rest["services"] = [_fixed_service(service) for service in plan.services]
    rest["files"] = [replace(file, objects=_fixed(file.objects)) for file in plan.files]
    return rest


def _fixed_service(service: ServicePlan) -> ServicePlan:
    return replace(service, **_OF_THE_WAIT, objects=_fixed(service.objects))


def _fixed(objects: Collection[DesiredObject]) -> tuple[DesiredObject, ...]:
    return tuple(
        replace(desired, manifest=_without(desired.manifest, updated_in_place(desired.manifest))) for desired in objects
    )


def updated_in_place(manifest: Manifest) -> tuple[tuple[str, ...], ...]:
    """The paths of the fields that may differ."""
    return () if manifest.get("immutable") else _UPDATED_IN_PLACE.get(str(manifest["kind"]), ())


def _without(manifest: Manifest, paths: Collection[tuple[str, ...]]) -> Manifest:
    found = dict(manifest)
    for *parents, name in paths:
        place = found
        for parent in parents:
            place[parent] = dict(place.get(parent) or {})
            place = place[parent]
        place.pop(name, None)
    return found


def changing_facts(plan: Plan) -> dict[str, Any]:
    """What may differ, by the group that has it."""
    found: dict[str, Any] = {name: [_changing(desired) for desired in group] for name, group in plan.groups.items()}
    for service in plan.services:
        found[service.group].append({name: getattr(service, name) for name in _OF_THE_WAIT})
    return found


def _changing(desired: DesiredObject) -> list[Any]:
    return [_value(desired.manifest, path) for path in updated_in_place(desired.manifest)]


def _value(manifest: Any, path: Collection[str]) -> Any:
    for step in path:
        manifest = manifest.get(step) if manifest else None
    return manifest


# what is given to Pulumi ----------------------------------------------------------------------------------------------


@record
class ChangedParts:
    """The parts of a plan that a run is about."""

    needed: Plan
    """What is registered."""
    changing: frozenset[ResourceName]
    """The resources that may change."""

    def unchanged_services(self, plan: Plan) -> list[str]:
        """The services of a plan that are not registered."""
        registered = {service.name for service in self.needed.services}
        return [service.name for service in plan.services if service.name not in registered]

    def doubt(self, plan: Plan) -> str:
        """Why Pulumi has to be given the whole plan; empty if these parts are enough."""
        if plan.images:
            return "all objects come after the images that are built"
        if len(self.needed.services) > _MOST_SERVICES * len(plan.services):
            return "the parts that changed need most services"
        return ""


def find_parts(plan: Plan, changed: Collection[str]) -> ChangedParts:
    """Find what Pulumi is given where these groups of a plan have changed."""
    groups = plan.groups
    changing = frozenset(ResourceName(plan.environment, desired.key) for name in changed for desired in groups[name])
    return ChangedParts(_needed_part(plan, changed), changing)


def _needed_part(plan: Plan, changed: Collection[str]) -> Plan:
    """The plan with the groups that changed, and all that they need: their objects in the state name these."""
    groups = plan.groups
    owners = {desired.key: name for name, group in groups.items() for desired in group}
    secrets = {service.group: {found.secret for found in service.fingerprints} for service in plan.services}
    wanted: set[str] = set()
    pending = list(changed)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            needs = {need for desired in groups[name] for need in desired.needs} | secrets.get(name, set())
            pending += {owners[need] for need in needs if need in owners}
    others: dict[str, Any] = {name: _wanted(getattr(plan, name), owners, wanted) for name in _WITHOUT_SERVICES}
    return replace(plan, services=tuple(service for service in plan.services if service.group in wanted), **others)


def _wanted(parts: Collection[Any], owners: Mapping[ResourceKey, str], wanted: Collection[str]) -> tuple[Any, ...]:
    return tuple(part for part in parts if any(owners[desired.key] in wanted for desired in part.objects))


def complete_counts(counts: Mapping[str, int], resources: int) -> dict[str, int]:
    """The counts of a whole run, from those of a run of parts: all other resources are the same."""
    changes = {name: count for name, count in counts.items() if name != "same"}
    return {**changes, "same": resources - sum(changes.values())}
