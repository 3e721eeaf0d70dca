"""The arguments of Pulumi's command line: the resources to replace or exclude; and those with another URN in the state.

Decides from a plan and a state alone, so that it is tested without Pulumi; :mod:`~composeplat.engine.pulumi_runs` runs
the command line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from composeplat.components.resource_names import ResourceName, Urns, belongs_to_stack
from composeplat.engine.changed_parts import ChangedParts
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState, built_images, known_to_state
from composeplat.plan import Plan
from composeplat.plan.desired import ImageBuild
from composeplat.plan.resource_keys import ResourceKind

_JOB = "kubernetes:batch/v1:Job"
_IMAGE = "docker-build:index:Image"
#: As many objects are created at a time.
_PARALLEL = 32


def deploy_args(
    plan: Plan,
    state: Mapping[str, Any],
    live_state: LiveState,
    options: DeployOptions,
    parts: ChangedParts | None = None,
) -> list[str]:
    """The arguments of a deploy or preview: the resources that it is about, and those to replace."""
    gated = len({edge.service for edge in plan.edges})
    # A waiting service occupies a slot, so all others need slots beside those.
    args = ["--stack", plan.namespace, "--parallel", str(_PARALLEL + gated), "--suppress-outputs"]
    if options.services:
        args += repeat_flag("--exclude", resources_outside(plan, options.services, state))
    elif parts is not None:
        args += repeat_flag("--exclude", resources_besides(parts, state))
    part = plan.limited_to(options.services)
    if options.rerun_jobs:
        args += repeat_flag("--replace", _job_urns(plan, part, state, live_state))
    if options.build is not None:
        args += _build_args({image_urn(plan, image) for image in part.images}, state, is_forced=options.build)
    return args


def _job_urns(plan: Plan, part: Plan, state: Mapping[str, Any], live_state: LiveState) -> Iterable[str]:
    """The URNs of the Jobs to run again; a Job that is missing from the cluster is created anyway."""
    known = known_to_state(state) & live_state.object_metadata.keys()
    for service in part.services:
        if ("Job", service.cluster_name) in known:
            yield _urns(plan).child(ResourceKind.SERVICE, ResourceKind.WORKLOAD, service.cluster_name, _JOB)


def _build_args(images: Collection[str], state: Mapping[str, Any], *, is_forced: bool) -> list[str]:
    if is_forced:
        return repeat_flag("--replace", sorted(set(images) & built_images(state)))
    return repeat_flag("--exclude", sorted(images))


def image_args(part: Plan, state: Mapping[str, Any], *, force: bool) -> list[str]:
    """The arguments of a run that builds the images of this part of a plan and does nothing else."""
    urns = {image_urn(part, image) for image in part.images}
    excluded = resources_besides_images(part, state)
    args = ["--stack", part.namespace, "--suppress-outputs", *repeat_flag("--exclude", excluded)]
    return [*args, *_build_args(urns, state, is_forced=True)] if force else args


def resources_outside(plan: Plan, names: Collection[str], state: Mapping[str, Any]) -> Iterable[str]:
    """The URNs of the resources that a deploy of some services leaves alone.

    With targets instead, Pulumi refuses to run if the definition has lost a resource below one, such as a service.
    """
    part = plan.limited_to(names)
    chosen = _names(part, plan)
    services = {service.cluster_name for service in part.services}
    for urn, name in _names_by_urn(state).items():
        # What a service has lost is deleted with it.
        is_chosen = name in chosen or (name is not None and name.key.kind.is_of_service and name.key.name in services)
        if not is_chosen:
            yield urn


def registered_part(plan: Plan, names: Collection[str], parts: ChangedParts | None = None) -> Plan:
    """The part of the plan that a run registers: a deploy of some services only these and what belongs to them.

    Pulumi keeps excluded resources that are not registered, in their order. Those that are registered get their places
    side by side, also before a dependency of theirs that the definition has lost: Pulumi then refuses the state.
    """
    if parts is not None:
        return parts.needed
    if not names:
        return plan
    part = plan.limited_to(names)
    builders = {image.service for image in part.images} - {service.name for service in part.services}
    without_objects = tuple(replace(service, objects=()) for service in plan.services if service.name in builders)
    return replace(part, services=(*part.services, *without_objects))


def resources_besides(parts: ChangedParts, state: Mapping[str, Any]) -> Iterable[str]:
    """The URNs of the resources that a run of changed parts leaves alone.

    With targets instead, Pulumi takes for deleted what depends on a target and is not registered.
    """
    return sorted(urn for urn, name in _names_by_urn(state).items() if name not in parts.changing)


def _names(part: Plan, plan: Plan) -> set[ResourceName | None]:
    """The names of all resources of a part of a plan; an image may be that of a service outside, with its component."""
    name = partial(ResourceName.make, plan.environment)
    images = [_cluster_name(plan, image) for image in part.images]
    return {
        *(name(ResourceKind.SERVICE, service.cluster_name) for service in part.services),
        *(name(kind, image) for image in images for kind in (ResourceKind.SERVICE, ResourceKind.IMAGE)),
        *(name(ResourceKind.VOLUME, volume.cluster_name) for volume in part.volumes),
        *(name(ResourceKind.ENDPOINTS, endpoint.name) for endpoint in part.endpoints),
        *(name(ResourceKind.NETWORK, network.cluster_name) for network in part.networks),
        *(ResourceName(plan.environment, desired.key) for desired in part.objects),
    }


def part_of_images(plan: Plan, images: Collection[ImageBuild]) -> Plan:
    """The part of a plan that a build of some images registers: these and their services, as a deploy of some does."""
    builders = {image.service for image in images}
    services = tuple(service for service in plan.services if service.name in builders)
    return replace(plan, services=services, images=tuple(images), endpoints=())


def resources_besides_images(part: Plan, state: Mapping[str, Any]) -> Iterable[str]:
    """The URNs and patterns of all resources but the images of a part: a build leaves those as they are."""
    yield from ("**$kubernetes:**", "**::pulumi:providers:kubernetes::**")
    registered = _names(part, part)
    yield from sorted(
        urn for urn, name in _names_by_urn(state).items() if "$kubernetes:" not in urn and name not in registered
    )


def _names_by_urn(state: Mapping[str, Any]) -> dict[str, ResourceName | None]:
    """The resources of the state that belong to a stack."""
    urns = (str(resource["urn"]) for resource in state.get("resources") or ())
    return {urn: ResourceName.from_urn(urn) for urn in urns if belongs_to_stack(urn)}


def former_urns(plan: Plan, state: Mapping[str, Any]) -> dict[str, str]:
    """The URNs under which the state has objects that other parts of the definition make now, by kind and name.

    Without them, Pulumi would apply such an object by its new URN, and then delete it by the old one.
    """
    planned = {ResourceName(plan.environment, desired.key) for desired in plan.objects}
    known: set[ResourceName | None] = set()
    left: dict[tuple[str, str], str] = {}
    for resource in state.get("resources") or ():
        urn, manifest = str(resource["urn"]), resource.get("inputs") or {}
        if belongs_to_stack(urn) and "$kubernetes:" in urn and not resource.get("delete"):
            name = ResourceName.from_urn(urn)
            known.add(name)
            if name not in planned:
                left[str(manifest.get("kind")), str(manifest.get("metadata", {}).get("name"))] = urn
    return {
        f"{desired.kind}/{desired.name}": left[desired.kind, desired.name]
        for desired in plan.objects
        if (desired.kind, desired.name) in left and ResourceName(plan.environment, desired.key) not in known
    }


def image_urn(plan: Plan, image: ImageBuild) -> str:
    return _urns(plan).child(ResourceKind.SERVICE, ResourceKind.IMAGE, _cluster_name(plan, image), _IMAGE)


def repeat_flag(flag: str, values: Iterable[str]) -> list[str]:
    return [arg for value in values for arg in (flag, value)]


def _urns(plan: Plan) -> Urns:
    return Urns(plan.namespace, plan.environment)


def _cluster_name(plan: Plan, image: ImageBuild) -> str:
    return next(service.cluster_name for service in plan.services if service.name == image.service)
