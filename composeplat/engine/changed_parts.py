"""The parts of a plan that may change alone: then Pulumi is given these, and what they need, instead of everything.

Owns what of a plan may differ from the last run: pod templates, replica counts, and the content of Secrets and
ConfigMaps. Kubernetes updates these in place, so no other resource is replaced with them. Everything else, such as a
port, a volume, a dependency or a Job, makes the run a whole one.
Pure: a plan comes in, and data or a smaller plan goes out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from composeplat.components.resource_names import ResourceName, belongs_to_stack
from composeplat.plan.desired import DesiredObject, FilePlan, Manifest, Plan, ServicePlan
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
    """What may differ, by the part that has it."""
    found: dict[str, Any] = {}
    for service in plan.services:
        how = {name: getattr(service, name) for name in _OF_THE_WAIT}
        found[_of_service(service)] = [how, *map(_changing, service.objects)]
    found.update((_of_file(file), [_changing(desired) for desired in file.objects]) for file in plan.files)
    return found


def _changing(desired: DesiredObject) -> list[Any]:
    return [_value(desired.manifest, path) for path in updated_in_place(desired.manifest)]


def _value(manifest: Any, path: Collection[str]) -> Any:
    for step in path:
        manifest = manifest.get(step) if manifest else None
    return manifest


def _of_service(service: ServicePlan) -> str:
    return f"service {service.cluster_name}"


def _of_file(file: FilePlan) -> str:
    return f"{file.section} {file.name}"


# what is given to Pulumi ----------------------------------------------------------------------------------------------


@record
class ChangedParts:
    """The parts of a plan that a run is about."""

    names: frozenset[str]
    needed: Plan
    """What is registered."""
    changing: frozenset[ResourceName]
    """The resources that may change."""

    def others(self, state: Mapping[str, Any]) -> list[str]:
        """The URNs of all other resources of the plan in the state.

        Pulumi has to leave these alone: it takes for deleted what depends on a target and is not registered.
        """
        urns = (str(resource["urn"]) for resource in state.get("resources") or ())
        return sorted(urn for urn in urns if belongs_to_stack(urn) and ResourceName.from_urn(urn) not in self.changing)

    def unchanged_services(self, plan: Plan) -> list[str]:
        """The services of a plan that are not registered."""
        registered = {service.name for service in self.needed.services}
        return [service.name for service in plan.services if service.name not in registered]


def doubt_about_parts(plan: Plan, changed: Collection[str]) -> str:
    """Why Pulumi has to be given the whole plan; empty if these parts are enough."""
    if plan.images:
        return "all objects come after the images that are built"
    if len(_needed_part(plan, changed).services) > _MOST_SERVICES * len(plan.services):
        return "the parts that changed need most services"
    return ""


def find_parts(plan: Plan, changed: Collection[str]) -> ChangedParts:
    return ChangedParts(frozenset(changed), _needed_part(plan, changed), frozenset(_changing_names(plan, changed)))


def _needed_part(plan: Plan, changed: Collection[str]) -> Plan:
    """The plan with the parts that changed, and all that they need: their objects in the state name these."""
    owners = {desired.key: place for place, objects in _objects_by_place(plan) for desired in objects}
    objects = dict(_objects_by_place(plan))
    fingerprints = {_of_service(service): service.fingerprints for service in plan.services}
    wanted: set[str] = set()
    pending = list(changed)
    while pending:
        place = pending.pop()
        if place not in wanted:
            wanted.add(place)
            needs = {need for desired in objects[place] for need in desired.needs}
            needs |= {found.secret for found in fingerprints.get(place, ())}
            pending += {owners[need] for need in needs if need in owners}
    return replace(
        plan,
        services=tuple(service for service in plan.services if _of_service(service) in wanted),
        files=tuple(file for file in plan.files if _of_file(file) in wanted),
        volumes=tuple(volume for volume in plan.volumes if f"volume {volume.cluster_name}" in wanted),
        networks=tuple(network for network in plan.networks if f"network {network.cluster_name}" in wanted),
        endpoints=tuple(endpoint for endpoint in plan.endpoints if f"endpoint {endpoint.name}" in wanted),
    )


def _objects_by_place(plan: Plan) -> Iterator[tuple[str, tuple[DesiredObject, ...]]]:
    yield from ((_of_service(service), service.objects) for service in plan.services)
    yield from ((_of_file(file), file.objects) for file in plan.files)
    yield from ((f"volume {volume.cluster_name}", volume.objects) for volume in plan.volumes)
    yield from ((f"network {network.cluster_name}", network.objects) for network in plan.networks)
    yield from ((f"endpoint {endpoint.name}", endpoint.objects) for endpoint in plan.endpoints)


def _changing_names(plan: Plan, changed: Collection[str]) -> Iterator[ResourceName]:
    for place, objects in _objects_by_place(plan):
        if place in changed:
            yield from (ResourceName(plan.environment, desired.key) for desired in objects)


def complete_counts(counts: Mapping[str, int], resources: int) -> dict[str, int]:
    """The counts of a whole run, from those of a run of parts: all other resources are the same."""
    changes = {name: count for name, count in counts.items() if name != "same"}
    return {**changes, "same": resources - sum(changes.values())}
