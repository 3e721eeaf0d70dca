"""The checks before an operation changes anything.

Owns their order. What a check compares is data: :mod:`~composeplat.engine.preflight` and
:mod:`~composeplat.engine.provenance` decide on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from composeplat.cluster.api import Api
from composeplat.cluster.archive_loading import need_load_program
from composeplat.compose.load.build_inputs import check_builds
from composeplat.diagnostics import ComposeplatError, MissingPiece, Report
from composeplat.engine.live_state import read_live_state
from composeplat.engine.outcomes import DeployOptions, Refused
from composeplat.engine.patches import check_patches
from composeplat.engine.preflight import LiveState, built_images, check_live_state, object_keys
from composeplat.engine.provenance import check_project, record_key, recorded_project
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.required_objects import check_required, check_routes
from composeplat.engine.stack import Stack
from composeplat.plan.desired import BuiltImage, ImageBuild, Plan
from composeplat.plan.images import check_registries


def check(stack: Stack, api: Api, plan: Plan, options: DeployOptions) -> LiveState:
    """Read the live state, and refuse a deploy that would harm it or can't succeed."""
    live_state = _read_live_state(stack, api, plan, options)
    check_routes(api, plan.limited_to(options.services))
    if stack.origins is not None:
        report = Report()
        check_live_state(
            plan,
            live_state,
            stack.origins,
            report,
            replaced_volumes=options.replaced_volumes,
            adopted=options.adopted,
        )
        part = plan.limited_to(options.services)
        check_required(api, part, stack.origins, report)
        check_patches(api, part, stack.origins, report, has_namespace=live_state.namespace)
        if report.errors:
            raise Refused(report)
    images = plan.limited_to(options.services).images
    if options.build is False:
        _check_built(stack, plan, images)
    else:
        check_can_build(stack, images)
    return live_state


def _read_live_state(stack: Stack, api: Api, plan: Plan, options: DeployOptions) -> LiveState:
    """Read the live state, and refuse an environment of another project."""
    wanted, record, claim = object_keys(plan.objects), record_key(plan.environment), stack.claim
    if claim is None:
        return read_live_state(api, stack.namespace, wanted)
    live_state = read_live_state(api, stack.namespace, [*wanted, record] if claim.name_from_folder else wanted)
    known = recorded_project(live_state.object_metadata.get(record))
    check_project(known, claim, plan.environment, plan.namespace, command="deploy", take_over=options.take_over)
    return live_state


def check_can_build(stack: Stack, images: Collection[ImageBuild]) -> None:
    """Check that builds can start, and that each image has a registry."""
    check_can_load(stack, [image for image in images if image.is_loaded])
    check_registries(images, "give --registry or set PLATFORM_REGISTRY")
    if stack.origins is not None:
        report = Report()
        check_builds({image.service: image.build for image in images if not image.derived}, stack.origins, report)
        if report.errors:
            raise Refused(report)


def check_can_load(stack: Stack, images: Collection[ImageBuild]) -> None:
    """Check that images can be loaded into the nodes of a local cluster."""
    other = stack.target.other
    if other is None or not images:
        return
    need_load_program(other, stack.variables.get("PATH"))
    for image in images:
        if any(isinstance(base, BuiltImage) for base in image.bases.values()):
            why = "uses the image of another service, which the builder can get from a registry alone"
        elif len(image.build.platforms) > 1:
            why = "is for several platforms, and an image that is loaded is for one"
        else:
            continue
        raise MissingPiece(
            f"the build of service '{image.service}' {why}: {other.title} has none", "give one: --registry"
        )


def _check_built(stack: Stack, plan: Plan, images: Iterable[ImageBuild]) -> None:
    """Check that all images exist, as none will be built."""
    built = built_images(stack.state)
    unbuilt = [image.service for image in images if image_urn(plan, image) not in built]
    if unbuilt:
        raise ComposeplatError(
            f"the image of service '{unbuilt[0]}' has never been built here", "leave --no-build out once"
        )
