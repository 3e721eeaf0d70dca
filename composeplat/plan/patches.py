"""Patches of planned objects, as ``x-kubernetes`` gives them, over all that the definition says otherwise.

Owns which object a patch is for, and what no patch may change: the identity of an object and of its pods, by which it
is found again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from composeplat.compose.check_extensions import SCALED_KINDS
from composeplat.compose.extension_model import DELETE, DIRECTIVE, Patch
from composeplat.compose.origins import Checker
from composeplat.diagnostics import PathKey
from composeplat.names import LABEL_PREFIX, clean, make_label
from composeplat.plan.desired import DesiredObject, EndpointPlan, Manifest, ServicePlan, VolumePlan
from composeplat.plan.resource_keys import ResourceKey
from composeplat.plan.strategic_merge import BadPatch, merge

_OWN_PREFIXES = ("app.kubernetes.io/", f"{LABEL_PREFIX}/", "pulumi.com/")
_LABELS = ("labels", "annotations")
#: The kinds of an endpoint's object; a service's patch of one is for the endpoints of its public ports.
_ROUTES = frozenset(("Ingress", "HTTPRoute"))
#: The parts of an object that its patch may not change.
_IDENTITY: tuple[PathKey, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("spec", "selector"),
    ("spec", "podSelector"),
    ("spec", "serviceName"),
    ("spec", "scaleTargetRef"),
    ("status",),
)


def patch_services(
    checker: Checker, services: tuple[ServicePlan, ...], endpoints: Iterable[EndpointPlan]
) -> tuple[ServicePlan, ...]:
    public = {endpoint.service for endpoint in endpoints}
    return tuple(_patch_service(checker, service, is_public=service.name in public) for service in services)


def _patch_service(checker: Checker, service: ServicePlan, *, is_public: bool) -> ServicePlan:
    patches = checker.project.services[service.name].extensions.patches
    own = [patch for patch in patches if not (is_public and patch.kind in _ROUTES)]
    return replace(service, objects=_patch_objects(checker, own, service.objects, service.cluster_name))


def patch_volumes(checker: Checker, volumes: tuple[VolumePlan, ...]) -> tuple[VolumePlan, ...]:
    return tuple(_patch_volume(checker, volume) for volume in volumes)


def _patch_volume(checker: Checker, volume: VolumePlan) -> VolumePlan:
    patches = checker.project.volumes[volume.name].patches
    return replace(volume, objects=_patch_objects(checker, patches, volume.objects, volume.cluster_name))


def patch_endpoints(
    checker: Checker, endpoints: tuple[EndpointPlan, ...], environment: str
) -> tuple[EndpointPlan, ...]:
    """Patch endpoints: those of the key of this name by their own patches, those of public ports by their services'."""
    declared = checker.project.endpoints
    patches = {make_label(found.name) if found.name else environment: found.patches for found in declared}
    of_ports = _patch_ports(checker, [endpoint for endpoint in endpoints if endpoint.service])
    return tuple(
        replace(plan, objects=tuple(of_ports[desired.key] for desired in plan.objects))
        if plan.service
        else replace(plan, objects=_patch_objects(checker, patches.get(plan.name, ()), plan.objects, plan.name))
        for plan in endpoints
    )


def _patch_ports(checker: Checker, endpoints: Iterable[EndpointPlan]) -> Mapping[ResourceKey, DesiredObject]:
    """Return the objects of the endpoints of public ports, patched; a service with several has them all."""
    objects: dict[str, tuple[DesiredObject, ...]] = {}
    for endpoint in endpoints:
        objects[endpoint.service] = (*objects.get(endpoint.service, ()), *endpoint.objects)
    found: dict[ResourceKey, DesiredObject] = {}
    for name, own in objects.items():
        patches = [patch for patch in checker.project.services[name].extensions.patches if patch.kind in _ROUTES]
        found.update((desired.key, desired) for desired in _patch_objects(checker, patches, own, clean(name)))
    return found


def _patch_objects(
    checker: Checker, patches: Sequence[Patch], objects: tuple[DesiredObject, ...], owner: str
) -> tuple[DesiredObject, ...]:
    changed = {desired.key: desired for desired in objects}
    for patch in patches:
        desired = _find_object(checker, patch, tuple(changed.values()), owner)
        if desired is not None:
            changed[desired.key] = _patched(checker, patch, desired)
    return tuple(changed.values())


def _find_object(
    checker: Checker, patch: Patch, objects: Collection[DesiredObject], owner: str
) -> DesiredObject | None:
    """Return the object that a patch names by kind and name; without a name, the one with its owner's name."""
    name = patch.name or owner
    same_kind = [desired for desired in objects if desired.kind == patch.kind]
    found = next((desired for desired in same_kind if desired.name == name), None)
    if found is None and not patch.name and len(same_kind) == 1:
        found = same_kind[0]
    if found is None:
        listed = ", ".join(sorted(f"{desired.kind}/{desired.name}" for desired in objects))
        message = "patches an object that is not there"
        checker.add("invalid-patch", patch.origin, message, f"objects are: {listed}", at_key=True)
    elif found.patched_at:
        message = "patches the same object as another patch"
        checker.add("invalid-patch", patch.origin, message, "write one patch", at_key=True)
        return None
    return found


def _patched(checker: Checker, patch: Patch, desired: DesiredObject) -> DesiredObject:
    if patch.value.get(DIRECTIVE) == DELETE:
        message = "deletes the whole object, which stays as it is planned"
        checker.add("invalid-patch", patch.origin, message, "leave it out", at_key=True)
        return desired
    try:
        manifest: Manifest = merge(desired.manifest, patch.value)
    except BadPatch as error:
        checker.add("invalid-patch", (*patch.origin, *error.path), str(error), error.fix)
        return desired
    refused = next(_changed_identity(desired.manifest, manifest), None)
    if refused is not None:
        message = "changes what identifies the object or its pods, which stays as it is planned"
        path = _place_in_patch(patch, refused)
        checker.add("invalid-patch", path, message, "leave it out", at_key=checker.origins.has(*path))
        return desired
    return replace(desired, manifest=manifest, patched_at=patch.origin, unpatched=desired.manifest)


def _changed_identity(before: Manifest, after: Manifest) -> Iterator[PathKey]:
    """Yield the parts of the identity that a patch has changed."""
    for path in _IDENTITY:
        if _at(before, path) != _at(after, path):
            yield path
    if "replicas" not in before.get("spec", {}) and before["kind"] in SCALED_KINDS:
        # An autoscaler decides it.
        yield from [("spec", "replicas")] if "replicas" in after["spec"] else []
    for place in ((), ("spec", "template"), ("spec", "jobTemplate", "spec", "template")):
        for kind in _LABELS:
            path = (*place, "metadata", kind)
            old, new = _at(before, path) or {}, _at(after, path) or {}
            names = [name for name in dict.fromkeys((*old, *new)) if name.startswith(_OWN_PREFIXES)]
            yield from ((*path, name) for name in names if old.get(name) != new.get(name))


def _at(value: Any, path: PathKey) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _place_in_patch(patch: Patch, path: PathKey) -> PathKey:
    """Return the part of a patch that is about a path: it may replace a whole of which the path is a part."""
    value: Any = patch.value
    for length, step in enumerate(path):
        if not isinstance(value, dict) or step not in value:
            return (*patch.origin, *path[:length])
        value = value[step]
    return (*patch.origin, *path)
