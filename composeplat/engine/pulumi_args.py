"""How Pulumi is told what to work on: the names it knows our objects by, and the words an operation is given.

Decides from a plan and a state alone; what runs them is the operator's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState, built_images, known_to_state
from composeplat.plan import Plan
from composeplat.plan.desired import ImageBuild

_JOB = "kubernetes:batch/v1:Job"
_IMAGE = "docker-build:index:Image"


def deploy_args(plan: Plan, state: Mapping[str, Any], live_state: LiveState, options: DeployOptions) -> list[str]:
    """The words of a deploy or preview: whom it is about, and what is made anew."""
    gated = len({edge.service for edge in plan.edges})
    # One that waits holds a place; there must be enough for all others.
    words = ["--stack", plan.namespace, "--parallel", str(32 + gated), "--suppress-outputs"]
    if options.services:
        words += repeat_flag("--target", targets(plan, options.services))
    part = plan.limited_to(options.services)
    if options.rerun_jobs:
        # One that is gone from the cluster is made anew anyhow.
        known = known_to_state(state) & live_state.object_metadata.keys()
        jobs = [one.cluster_name for one in part.services if ("Job", one.cluster_name) in known]
        words += repeat_flag("--replace", (_urn(plan, "Service", f"workload/{name}", _JOB) for name in jobs))
    if options.build is not None:
        images = {image_urn(plan, image) for image in part.images}
        built = built_images(state)
        words += (
            repeat_flag("--replace", sorted(images & built))
            if options.build
            else repeat_flag("--exclude", sorted(images))
        )
    return words


def image_args(plan: Plan, state: Mapping[str, Any], images: Iterable[ImageBuild], *, force: bool) -> list[str]:
    """The words of a run that makes these images and nothing else."""
    urns = {image_urn(plan, image) for image in images}
    words = ["--stack", plan.namespace, "--suppress-outputs", *repeat_flag("--exclude", apart_from(plan, urns, state))]
    if force:
        words += repeat_flag("--replace", sorted(urns & built_images(state)))
    return words


def targets(plan: Plan, names: Collection[str]) -> Iterable[str]:
    """All that services need, and what their parts are children of."""
    stack = plan.environment
    part = plan.limited_to(names)
    yield from (f"**::{stack}-service/{service.cluster_name}" for service in part.services)
    yield from parents(plan, part.images)
    yield from (image_urn(plan, image) for image in part.images)
    yield from (f"**::{stack}-volume/{volume.cluster_name}" for volume in part.volumes)
    yield from (f"**::{stack}-endpoints/{endpoint.name}" for endpoint in part.endpoints)
    yield from (f"**::{stack}-{desired.key}" for desired in part.objects)
    yield f"**::{stack}"
    yield "**::cluster"


def apart_from(plan: Plan, images: Collection[str], state: Mapping[str, Any]) -> Iterable[str]:
    """What stays as it is when only images are built: all that the cluster has, other images, what is gone."""
    yield from ("**$kubernetes:**", "**::pulumi:providers:kubernetes::**")
    stack = plan.environment
    registered = {f"{stack}-service/{one.cluster_name}" for one in plan.services}
    registered |= {f"{stack}-endpoints/{one.name}" for one in plan.endpoints}
    known = {str(one["urn"]) for one in state.get("resources") or ()}
    ours = {urn for urn in known if "::composeplat:index:ComposeStack$" in urn and "$kubernetes:" not in urn}
    others = {urn for urn in ours if urn.rpartition("::")[2] not in registered}
    yield from sorted((others | {image_urn(plan, one) for one in plan.images}) - set(images))


def parents(plan: Plan, images: Iterable[ImageBuild]) -> Iterable[str]:
    """What has to be there for images to be: the components they are children of."""
    stack = plan.environment
    yield f"**::{stack}"
    for image in images:
        # In full, as a Service of the cluster has the same name.
        chain = "composeplat:index:ComposeStack$composeplat:index:Service"
        yield f"urn:pulumi:{plan.namespace}::{stack}::{chain}::{stack}-service/{_service_of(plan, image)}"


def image_urn(plan: Plan, image: ImageBuild) -> str:
    return _urn(plan, "Service", f"image/{_service_of(plan, image)}", _IMAGE)


def repeat_flag(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _service_of(plan: Plan, image: ImageBuild) -> str:
    return next(one.cluster_name for one in plan.services if one.name == image.service)


def _urn(plan: Plan, component: str, key: str, token: str) -> str:
    stack = plan.environment
    chain = f"composeplat:index:ComposeStack$composeplat:index:{component}${token}"
    return f"urn:pulumi:{plan.namespace}::{stack}::{chain}::{stack}-{key}"
