"""The live state of a namespace, and the rules that protect it: other owners' objects, and volumes with data.

Owns the kinds and keys of an environment's objects, and the comparison of a plan with the live state. Pure:
:mod:`~composeplat.engine.live_state` reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from composeplat.cluster.kinds import kind_path
from composeplat.cluster.quotas import parse_quantity
from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object
from composeplat.components.resource_names import is_of_program, last_part
from composeplat.compose.origins import Origins
from composeplat.diagnostics import ComposeplatError, PathKey, Report
from composeplat.engine.ownership import owner_of
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, MAX_LABEL_LENGTH, SERVICE_LABEL
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.workloads import ends_pods_first

Key = tuple[str, str]
"""Kind and name of an object."""

AUTOSCALER = "HorizontalPodAutoscaler"
CLAIM = "PersistentVolumeClaim"
_ELSEWHERE = "rename it here, or deploy into another namespace with --namespace"
#: Every kind an environment can have objects of; the first are workloads, which are taken away before what they use.
KINDS = {
    **WORKLOAD_KINDS,
    AUTOSCALER: "autoscaling/v2",
    "Ingress": "networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Service": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    CLAIM: "v1",
}


@dataclass(slots=True)
class LiveState:
    """The objects of a namespace that have a name of the plan, or the labels of its environment."""

    namespace: bool = True
    object_metadata: dict[Key, Object] = field(default_factory=dict)
    """Metadata by kind and name."""
    claims: dict[str, Object] = field(default_factory=dict)
    """Whole claims by name."""
    expandable: dict[str, bool] = field(default_factory=dict)
    """Whether volumes of a storage class can grow."""
    knows_classes: bool = True
    unlisted: set[str] = field(default_factory=set)
    """Kinds that may not be listed: of those, only what was asked for by name is in here."""
    absent: set[Key] = field(default_factory=set)
    """Objects of such kinds that are known not to be there."""

    def lacks(self, key: Key) -> bool:
        """Return whether an object is known not to be there."""
        return key not in self.object_metadata and (key[0] not in self.unlisted or key in self.absent)

    def may_grow(self, storage_class: str) -> bool:
        return not self.knows_classes or self.expandable.get(storage_class, False)

    def ours(self, environment: str) -> dict[Key, Object]:
        return {key: head for key, head in self.object_metadata.items() if belongs_to(head, environment)}

    def ending(self, keys: Iterable[Key]) -> list[Key]:
        """Those that are being deleted already."""
        return [key for key in keys if "deletionTimestamp" in self.object_metadata.get(key, {}).get("metadata", {})]


def belongs_to(head: Object, environment: str) -> bool:
    labels = head["metadata"].get("labels") or {}
    return labels.get(MANAGED_BY_LABEL) == MANAGED_BY and labels.get(ENVIRONMENT_LABEL) == environment


def api_path(kind: str, namespace: str, name: str) -> str:
    """The path of an object of one of our kinds."""
    return f"{kind_path(KINDS[kind], kind, namespace)}/{name}"


def object_keys(objects: Iterable[DesiredObject]) -> list[Key]:
    return [(desired.kind, desired.name) for desired in objects]


def check_live_state(
    plan: Plan,
    live_state: LiveState,
    origins: Origins,
    report: Report,
    *,
    replaced_volumes: tuple[str, ...] = (),
    adopted: Collection[Key] = (),
) -> None:
    """Report what must not be touched, and changes that would cost data."""
    for path, objects in by_origin(plan):
        for desired in objects:
            head = live_state.object_metadata.get((desired.kind, desired.name))
            if (desired.kind, desired.name) in adopted:
                continue
            if head is not None and not belongs_to(head, plan.environment):
                _report_foreign_object(desired, head, path, plan, origins, report)
            elif desired.kind == CLAIM and head is not None and path[-1] not in replaced_volumes:
                _check_claim(desired, path, live_state, origins, report)


def by_origin(plan: Plan) -> Iterable[tuple[PathKey, tuple[DesiredObject, ...]]]:
    """Yield the parts of the definition with their objects."""
    for volume in plan.volumes:
        yield ("volumes", volume.name), volume.objects
    for network in plan.networks:
        yield ("networks", network.name), network.objects
    for file in plan.files:
        yield (file.section, file.name), file.objects
    for service in plan.services:
        yield ("services", service.name), service.objects
    for endpoint in plan.endpoints:
        yield ("endpoints", endpoint.name), endpoint.objects


def _report_foreign_object(
    desired: DesiredObject, head: Object, path: PathKey, plan: Plan, origins: Origins, report: Report
) -> None:
    labels = head["metadata"].get("labels") or {}
    owner, other = str(labels.get(MANAGED_BY_LABEL) or ""), labels.get(ENVIRONMENT_LABEL)
    whose, fix = f"'{owner}'" if owner else "someone else", _ELSEWHERE
    if owner == MANAGED_BY and other:
        # The name of the environment may have changed: the data of its volumes is in the one of before.
        whose, fix = f"environment '{other}'", f"if the name was changed: --name {other} continues that one; or {fix}"
    elif owner == MANAGED_BY:
        whose = f"no environment: it lacks the label {ENVIRONMENT_LABEL}"
        label = f"kubectl label {desired.kind.lower()} {desired.name} --namespace {plan.namespace}"
        fix = f"if it is of this environment: {label} {ENVIRONMENT_LABEL}={plan.environment}; or {fix}"
    else:
        fix = f"remove the other, {fix}" if owner_of(head) else f"take it over with 'platform import', {fix}"
    name = ".".join(str(part) for part in path)
    report.add(
        "ownership-conflict",
        origins.at(*path),
        path,
        f"{name} needs the name of {desired.kind} '{desired.name}', which is in namespace '{plan.namespace}'"
        f" already and belongs to {whose}",
        fix,
    )


def _check_claim(
    desired: DesiredObject, path: PathKey, live_state: LiveState, origins: Origins, report: Report
) -> None:
    changes = changes_of_claim(desired, live_state)
    if changes:
        name = ".".join(str(part) for part in path)
        report.add(
            "volume-replacement",
            origins.at(*path),
            path,
            f"{name} can't be changed without losing its data: the file changes {' and '.join(changes)}",
            f"{_way_to_keep(changes, desired, live_state)}, or use --replace-volume {path[-1]},"
            " which deletes the volume and its data",
        )


def _way_to_keep(changes: list[str], desired: DesiredObject, live_state: LiveState) -> str:
    """The fix that keeps a volume: one that is larger than the file says may have been grown in the cluster."""
    live = _storage_of(live_state.claims[desired.name]["spec"])
    is_larger = parse_quantity(live) > parse_quantity(_storage_of(desired.manifest["spec"]))
    return f"give it the size that it has: size: {live}" if is_larger and len(changes) == 1 else "undo that"


def changes_of_claim(desired: DesiredObject, live_state: LiveState) -> list[str]:
    """A claim's class and access can't change, nor can it shrink; to replace it is to lose what it holds."""
    if desired.name not in live_state.claims:
        return []
    live = live_state.claims[desired.name]["spec"]
    wanted = desired.manifest["spec"]
    changes: list[str] = []
    wanted_class = wanted.get("storageClassName")
    if wanted_class and wanted_class != live.get("storageClassName"):
        changes.append(f"its storage class from {live.get('storageClassName') or '(none)'} to {wanted_class}")
    if sorted(wanted["accessModes"]) != sorted(live.get("accessModes") or []):
        changes.append(f"its access from {', '.join(live.get('accessModes') or [])} to {wanted['accessModes'][0]}")
    is_bound = live_state.claims[desired.name].get("status", {}).get("phase", "Bound") == "Bound"
    return changes + _resize(wanted, live, live_state, is_bound=is_bound)


def volumes_to_replace(
    plan: Plan, live_state: LiveState, named: Iterable[str], services: Collection[str] = ()
) -> dict[str, bool]:
    """The volumes a user allows to be replaced, and whether they have to be.

    The services that mount one are deleted with it, so a deploy of some services has to be about all of these.
    """
    volumes = {volume.name: volume for volume in plan.volumes}
    for name in named:
        if name not in volumes:
            known = f"volumes are: {', '.join(volumes)}" if volumes else "the definition has no named volumes"
            raise ComposeplatError(f"there is no volume '{name}' to replace", known)
    found = {name: any(changes_of_claim(desired, live_state) for desired in volumes[name].objects) for name in named}
    for name in (name for name, has_to_be in found.items() if has_to_be and services):
        users = [service.name for service in plan.users_of(name)]
        if not plan.select_services(services).issuperset(users):
            raise ComposeplatError(
                f"volume '{name}' can't be replaced by a deploy of some services: these mount it: {', '.join(users)}",
                "name them all, or deploy all services",
            )
    return found


def _resize(wanted: Mapping[str, Any], live: Mapping[str, Any], live_state: LiveState, *, is_bound: bool) -> list[str]:
    old, new = _storage_of(live), _storage_of(wanted)
    before, after = parse_quantity(old), parse_quantity(new)
    if not before or not after:
        return []
    may_grow = live_state.may_grow(str(live.get("storageClassName")))
    if after == before or (after > before and may_grow and is_bound):
        return []
    refusal = "its storage class does not allow" if not may_grow else "a claim without storage does not allow"
    return [f"its size from {old} to {new}" + (f", which {refusal}" if after > before else "")]


def _storage_of(spec: Mapping[str, Any]) -> str:
    return str(spec.get("resources", {}).get("requests", {}).get("storage", ""))


#: The suffix for the name of a replaced object in a preview.
REPLACED = "-replaced"


def rename_replaced(
    plan: Plan,
    live: Iterable[Object],
    volumes: Iterable[str] = (),
    deployments: Iterable[Object] = (),
    refused: Collection[Key] = (),
) -> Plan:
    """For a preview: give Services whose kind of address changes, and other objects that are replaced, another name.

    A deploy deletes them first. A dry run does not, so the API server would refuse it: ``refused`` has the objects of
    which that is known.
    """
    headless = {item["metadata"]["name"]: item["spec"].get("clusterIP") == "None" for item in live}
    rolling = {item["metadata"]["name"] for item in deployments if "rollingUpdate" in item["spec"].get("strategy", {})}

    def renamed(desired: DesiredObject) -> DesiredObject:
        wanted = desired.manifest.get("spec", {}).get("clusterIP") == "None"
        changes_address = desired.kind == "Service" and headless.get(desired.name, wanted) != wanted
        stops_rolling = ends_pods_first(desired) and desired.name in rolling
        is_refused = (desired.kind, desired.name) in refused
        return _renamed(desired) if changes_address or stops_rolling or is_refused else desired

    services = tuple(replace(service, objects=tuple(map(renamed, service.objects))) for service in plan.services)
    claims = tuple(
        replace(volume, objects=tuple(map(_renamed, volume.objects))) if volume.name in volumes else volume
        for volume in plan.volumes
    )
    return replace(plan, services=services, volumes=claims)


def _renamed(desired: DesiredObject) -> DesiredObject:
    # The API server refuses a longer name of a Service, in a dry run too.
    name = f"{desired.name[: MAX_LABEL_LENGTH - len(REPLACED)]}{REPLACED}"
    metadata = {**desired.manifest["metadata"], "name": name}
    return replace(desired, manifest={**desired.manifest, "metadata": metadata})


def cluster_of(state: Mapping[str, Any]) -> str:
    """Which cluster a state is about; nothing where it does not say."""
    for resource in state.get("resources") or []:
        if resource.get("type") == "pulumi:providers:kubernetes":
            return str((resource.get("inputs") or {}).get("clusterIdentifier") or "")
    return ""


def resources_of_others(state: Mapping[str, Any], environment: str) -> list[str]:
    """Describe the resources that another program made in the same stack: Pulumi would take them for deleted."""
    resources = state.get("resources") or ()
    return [
        f"{resource.get('type')} '{last_part(urn)}'"
        for resource in resources
        if not is_of_program(urn := str(resource["urn"]), environment)
    ]


def missing_from_cluster(state: Mapping[str, Any], live_state: LiveState) -> list[str]:
    """URNs of objects that the state has and the cluster has not, or not for long, but of no claims."""
    gone = dict(lost_objects(state, live_state))
    ending = live_state.ending(known_to_state(state))
    return [str(found["urn"]) for key, found in objects_of(state) if key[0] != CLAIM and (key in gone or key in ending)]


def lost_objects(state: Mapping[str, Any], live_state: LiveState) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Yield the objects that the state has and the cluster has not: someone deleted them, or a kill came between."""
    for key, resource in objects_of(state):
        if key[0] in KINDS and live_state.lacks(key):
            yield key, resource


def _anonymous_claims(plan: Plan) -> list[str]:
    """Return the names of the claims of anonymous volumes, without the number of the pod."""
    return [
        f"{template['metadata']['name']}-{desired.name}-"
        for desired in plan.objects
        for template in desired.manifest.get("spec", {}).get("volumeClaimTemplates") or ()
    ]


def unused_claims(plan: Plan, live_state: LiveState) -> set[str]:
    """Return the claims of the environment that no deploy of the plan uses."""
    used, anonymous = set(object_keys(plan.objects)), _anonymous_claims(plan)
    ours = (name for kind, name in live_state.ours(plan.environment) if kind == CLAIM)
    return {name for name in ours if (CLAIM, name) not in used and name.rstrip("0123456789") not in anonymous}


def left_claims(plan: Plan, live_state: LiveState, leaving: Collection[Key]) -> list[str]:
    """Return the claims of anonymous volumes that stay when their workloads leave, or are made again without them."""
    kept = _anonymous_claims(plan)
    # In a preview, what is replaced has another name.
    services = {
        name for kind, found in leaving if kind == "StatefulSet" for name in (found, found.removesuffix(REPLACED))
    }
    return [
        name
        for (kind, name), head in live_state.ours(plan.environment).items()
        if kind == CLAIM
        and head["metadata"]["labels"].get(SERVICE_LABEL, "") in services
        and name.rstrip("0123456789") not in kept
    ]


def objects_of(state: Mapping[str, Any]) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Yield the Kubernetes objects of a state, by kind and name."""
    for resource in state.get("resources") or ():
        if str(resource.get("type", "")).startswith("kubernetes:"):
            manifest = resource.get("inputs") or {}
            yield (str(manifest.get("kind")), str((manifest.get("metadata") or {}).get("name"))), resource


def known_to_state(state: Mapping[str, Any]) -> set[Key]:
    return {key for key, resource in objects_of(state) if not resource.get("delete")}


def unknown_to_state(plan: Plan, state: Mapping[str, Any], live_state: LiveState) -> list[Key]:
    """What of a plan is there already, of its environment, and not in the state: that was lost, or never got so far."""
    known, ours = known_to_state(state), live_state.ours(plan.environment)
    there = [key for key in object_keys(plan.objects) if key in ours and key not in known]
    ending = live_state.ending(there)
    return [key for key in there if key not in ending]


def built_images(state: Mapping[str, Any]) -> set[str]:
    """The URNs of images that a state knows to have been built."""
    resources = state.get("resources") or []
    return {
        str(resource["urn"])
        for resource in resources
        if resource.get("type") == "docker-build:index:Image" and resource.get("id")
    }
