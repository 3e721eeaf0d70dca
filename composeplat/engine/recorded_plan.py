"""A plan as a revision keeps it: the inputs of its objects in Pulumi's state, and how its services are waited for.

Owns the form of this data. Pure: :mod:`~composeplat.engine.history` keeps it, and
:mod:`~composeplat.engine.operations.rollback` makes a plan of it.
Must not hold a secret in plain text: the inputs are those of the state, in which secrets are encrypted.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, others_in_pods
from composeplat.components.resource_names import ResourceName, belongs_to_stack
from composeplat.compose.model import DependencyCondition
from composeplat.engine.dev_workloads import read_replicas, replicas_patch
from composeplat.plan.desired import (
    DesiredObject,
    Edge,
    EndpointPlan,
    FilePlan,
    NetworkPlan,
    Plan,
    RequiredObject,
    ServicePlan,
    VolumePlan,
)
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.revealed import Revealed
from composeplat.plan.strategic_merge import merge
from composeplat.plan.templates import pod_template

FORMAT = 1
#: The key that marks an encrypted value in Pulumi's state.
ENCRYPTION_MARK = "4dabf18193072939515e22adb298388d"
_SECTIONS = ("services", "volumes", "networks", "files", "endpoints")
Facts = dict[str, Any]
Inputs = dict[str, Any]
"""The inputs of objects, by the text of their key."""

# keeping --------------------------------------------------------------------------------------------------------------


def record_plan(plan: Plan, state: Mapping[str, Any], services: Collection[str], before: Facts | None) -> Facts:
    """Return the data for a rollback; ``before`` is that of the last revision, for services that were left alone."""
    inputs = inputs_of(state)
    facts = _facts(plan)
    if services:
        facts = _merged(_facts(plan.limited_to(services)), before["plan"] if before else {}, facts)
    return {"format": FORMAT, "plan": facts, "inputs": inputs}


def inputs_of(state: Mapping[str, Any]) -> Inputs:
    """Return the inputs of the stack's objects in a state."""
    return {str(key): resource["inputs"] for key, resource in resources_of(state)}


def resources_of(state: Mapping[str, Any]) -> Iterator[tuple[ResourceKey, Mapping[str, Any]]]:
    """Yield the resources of the stack's objects in a state, without those that are being deleted."""
    for resource in state.get("resources") or ():
        urn = str(resource["urn"])
        name = ResourceName.from_urn(urn) if belongs_to_stack(urn) else None
        if name is not None and str(resource.get("type", "")).startswith("kubernetes:") and not resource.get("delete"):
            yield name.key, resource


def _facts(plan: Plan) -> Facts:
    return {
        "services": {service.cluster_name: _service_facts(service) for service in plan.services},
        "volumes": {volume.cluster_name: _part_facts(volume) for volume in plan.volumes},
        "networks": {network.cluster_name: _part_facts(network) for network in plan.networks},
        "files": {f"{file.section}/{file.name}": {"section": file.section, **_part_facts(file)} for file in plan.files},
        "endpoints": {
            endpoint.name: {"urls": list(endpoint.urls), "routes": list(endpoint.routes), **_part_facts(endpoint)}
            for endpoint in plan.endpoints
        },
        "edges": {f"{edge.service} {edge.dependency}": _edge_facts(edge) for edge in plan.edges},
        "required": {f"{found.kind}/{found.name}": _required_facts(found) for found in plan.required},
    }


def _service_facts(service: ServicePlan) -> Facts:
    pods = [read_replicas(desired.manifest) for desired in service.objects if desired.kind in WORKLOAD_KINDS]
    return {
        "workload_kind": service.workload_kind,
        "ports": list(service.ports),
        "has_health_check": service.has_health_check,
        "start_period": service.start_period,
        "pod_of": service.pod_of,
        "pods": pods[0] if pods else None,
        **_part_facts(service),
    }


def _part_facts(part: ServicePlan | VolumePlan | NetworkPlan | FilePlan | EndpointPlan) -> Facts:
    objects = {str(desired.key): [str(need) for need in desired.needs] for desired in part.objects}
    return {"name": part.name, "objects": objects}


def _edge_facts(edge: Edge) -> Facts:
    return {
        "service": edge.service,
        "dependency": edge.dependency,
        "condition": str(edge.condition),
        "required": edge.required,
        "restart": edge.restart,
    }


def _required_facts(required: RequiredObject) -> Facts:
    return {
        "kind": required.kind,
        "name": required.name,
        "path": list(required.path),
        "services": sorted(required.services),
        "key": required.key,
    }


def _merged(chosen: Facts, before: Facts, planned: Facts) -> Facts:
    """Return the facts of a deploy of some services: of all others as they were, else as they are planned.

    So is what each service needs: those of two deploys together could wait for each other.
    """
    sections = {name: {**planned[name], **before.get(name, {}), **chosen[name]} for name in _SECTIONS}
    edges: Facts = {}
    required: Facts = {}
    known: set[str] = set()
    for facts in filter(None, (chosen, before, planned)):
        names = {service["name"] for service in facts["services"].values()} - known
        known |= names
        edges |= {key: edge for key, edge in facts["edges"].items() if edge["service"] in names}
        for key, found in facts["required"].items():
            if users := names.intersection(found["services"]):
                same = required.get(key, {})
                required[key] = {**found, **same, "services": sorted({*users, *same.get("services", ())})}
    return {**sections, "edges": edges, "required": required}


# restoring ------------------------------------------------------------------------------------------------------------


def left_claims(inputs: Inputs, state: Mapping[str, Any]) -> list[str]:
    """Return the names of the claims among inputs that have left the state; the cluster may have them."""
    known = inputs_of(state)
    return [found["metadata"]["name"] for key, found in _claims(inputs).items() if key not in known]


def with_present_claims(inputs: Inputs, state: Mapping[str, Any], left: Mapping[str, Object | None]) -> Inputs:
    """Return inputs with the claims as they are now: data is not rolled back, and a volume never shrinks.

    Those that have ``left`` the state are as the cluster has them, by their names.
    """
    known = inputs_of(state)
    claims = {
        key: known[key] if key in known else _as_live(found, left.get(found["metadata"]["name"]))
        for key, found in _claims(inputs).items()
    }
    return {**inputs, **claims}


def _claims(inputs: Inputs) -> Inputs:
    return {key: found for key, found in inputs.items() if key.startswith(f"{ResourceKind.CLAIM}/")}


def _as_live(claim: Facts, live: Object | None) -> Facts:
    """Return a claim with what a volume can't change, or not without loss, as a live one has it."""
    if live is None:
        return claim
    spec, found = claim["spec"], live["spec"]
    fixed = {name: found[name] for name in ("accessModes", "storageClassName") if name in spec and name in found}
    return {**claim, "spec": {**spec, **fixed, "resources": found["resources"]}}


def restore_plan(facts: Facts, inputs: Inputs, present: Plan) -> Plan:
    """Make the plan of a revision, with revealed inputs; its settings are those of the present plan."""
    services = {name: _service(name, found, inputs) for name, found in facts["services"].items()}
    inside = _in_pods(services.values())
    restored = {name: service for name, service in services.items() if service.objects or name in inside}
    restored |= {name: service for name, service in _unknown_services(facts, inputs).items() if name not in restored}
    names = {service.name for service in restored.values()}
    return replace(
        present,
        services=tuple(restored.values()),
        volumes=_parts(facts["volumes"], VolumePlan, inputs),
        networks=_parts(facts["networks"], NetworkPlan, inputs),
        files=tuple(_file(found, inputs) for found in facts["files"].values() if _is_there(found, inputs)),
        endpoints=tuple(_endpoint(found, inputs) for found in facts["endpoints"].values() if _is_there(found, inputs)),
        edges=tuple(
            _edge(found) for found in facts["edges"].values() if {found["service"], found["dependency"]} <= names
        ),
        required=tuple(_required(found) for found in facts["required"].values()),
        inactive={},
        providers=(),
        images=(),
    )


def _service(name: str, facts: Facts, inputs: Inputs) -> ServicePlan:
    objects = _objects(facts["objects"], inputs)
    if facts["pods"] is not None:
        objects = tuple(_with_pods(desired, facts["pods"]) for desired in objects)
    return ServicePlan(
        name=facts["name"],
        cluster_name=name,
        workload_kind=facts["workload_kind"],
        image=_image(objects),
        objects=objects,
        ports=tuple(facts["ports"]),
        has_health_check=facts["has_health_check"],
        start_period=facts["start_period"],
        pod_of=facts["pod_of"],
    )


def _in_pods(services: Iterable[ServicePlan]) -> set[str]:
    """Return the services that run in pods of others, by their cluster names."""
    objects = (desired for service in services for desired in service.objects if desired.kind in WORKLOAD_KINDS)
    return {name for desired in objects for name in others_in_pods(desired.manifest)}


def _unknown_services(facts: Facts, inputs: Inputs) -> dict[str, ServicePlan]:
    """Return the services of objects that no plan had: a deploy of other services found them in the state."""
    parts = (found for section in _SECTIONS for found in facts[section].values())
    known = {key for found in parts for key in found["objects"]}
    keys = [key for text in inputs if text not in known and (key := ResourceKey.parse(text)) is not None]
    found: dict[str, ServicePlan] = {}
    for name in dict.fromkeys(key.name for key in keys if key.kind.is_of_service):
        objects = _objects({str(key): [] for key in keys if key.kind.is_of_service and key.name == name}, inputs)
        kind = next((desired.kind for desired in objects if desired.key.kind is ResourceKind.WORKLOAD), "")
        found[name] = ServicePlan(
            name=name, cluster_name=name, workload_kind=kind, image=_image(objects), objects=objects
        )
    return {name: service for name, service in found.items() if service.workload_kind}


def _objects(keys: Mapping[str, Iterable[str]], inputs: Inputs) -> tuple[DesiredObject, ...]:
    return tuple(
        DesiredObject(key=key, manifest=inputs[text], needs=tuple(filter(None, map(ResourceKey.parse, needs))))
        for text, needs in keys.items()
        if text in inputs and (key := ResourceKey.parse(text)) is not None
    )


def _with_pods(desired: DesiredObject, count: int) -> DesiredObject:
    """Return a workload with its number of pods: a service under development had none in the state."""
    if desired.kind not in WORKLOAD_KINDS or not count or read_replicas(desired.manifest):
        return desired
    return replace(desired, manifest=merge(desired.manifest, replicas_patch(desired.kind, count)))


def _image(objects: Iterable[DesiredObject]) -> str:
    return next(iter(images_of(objects)), "")


def _is_there(facts: Facts, inputs: Inputs) -> bool:
    return any(key in inputs for key in facts["objects"])


def _parts(facts: Facts, kind: type[Any], inputs: Inputs) -> tuple[Any, ...]:
    return tuple(
        kind(name=found["name"], cluster_name=name, objects=_objects(found["objects"], inputs))
        for name, found in facts.items()
        if _is_there(found, inputs)
    )


def _file(facts: Facts, inputs: Inputs) -> FilePlan:
    return FilePlan(section=facts["section"], name=facts["name"], objects=_objects(facts["objects"], inputs))


def _endpoint(facts: Facts, inputs: Inputs) -> EndpointPlan:
    routes = tuple((str(service), int(port)) for service, port in facts["routes"])
    objects = _objects(facts["objects"], inputs)
    return EndpointPlan(name=facts["name"], urls=tuple(facts["urls"]), objects=objects, routes=routes)


def _edge(facts: Facts) -> Edge:
    return Edge(**{**facts, "condition": DependencyCondition(facts["condition"])})


def _required(facts: Facts) -> RequiredObject:
    return RequiredObject(**{**facts, "path": tuple(facts["path"]), "services": frozenset(facts["services"])})


# inputs of a state ----------------------------------------------------------------------------------------------------


def reveal(value: Any) -> Any:
    """Return inputs of a state as a plan has them; each secret stays marked as one."""
    match value:
        case {"plaintext": str(text), **more} if ENCRYPTION_MARK in more:
            return Revealed(json.loads(text))
        case dict():
            return {key: reveal(inner) for key, inner in value.items()}
        case list():
            return [reveal(inner) for inner in value]
        case _:
            return value


def secret_values(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the revealed texts among inputs with the names that they have in Secrets, where they are in Base64."""
    match value:
        case Revealed(value=dict(found)):
            for key, text in found.items():
                yield from ((key, part) for part in (str(text), *_decode(str(text))))
        case Revealed(value=found):
            yield "", str(found)
        case dict():
            for item in value.values():
                yield from secret_values(item)
        case list():
            for item in value:
                yield from secret_values(item)


def _decode(text: str) -> Iterator[str]:
    with contextlib.suppress(binascii.Error, ValueError):
        yield base64.b64decode(text, validate=True).decode()


def images_of(objects: Iterable[DesiredObject]) -> list[str]:
    """Return the images of a workload of any kind."""
    templates = (pod_template(found.manifest) for found in objects if found.key.kind is ResourceKind.WORKLOAD)
    return [str(container["image"]) for template in templates for container in template["spec"]["containers"]]
