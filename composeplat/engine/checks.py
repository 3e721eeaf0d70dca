"""What is looked at before an operation changes anything, and refused where it stands in the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from composeplat.cluster.api import Api
from composeplat.compose.load.contexts import check_builds
from composeplat.diagnostics import ComposeplatError, MissingPiece, Report
from composeplat.engine.live_state import look
from composeplat.engine.outcomes import Options, Refused
from composeplat.engine.preflight import Present, built_images, check_present, keys_of
from composeplat.engine.provenance import check_project, record_key, recorded
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.stack import Stack
from composeplat.plan.desired import ImageBuild, Plan


def check(stack: Stack, api: Api, plan: Plan, options: Options) -> Present:
    """Look at what is there, and refuse what a deploy must not do or could not."""
    present = _look(stack, api, plan, options)
    if stack.origins is not None:
        report = Report()
        check_present(plan, present, stack.origins, report, replaced_volumes=options.replaced_volumes)
        if report.errors:
            raise Refused(report)
    images = plan.only(options.services).images
    if options.build is False:
        _check_built(stack, plan, images)
    else:
        check_can_build(stack, images)
    return present


def _look(stack: Stack, api: Api, plan: Plan, options: Options) -> Present:
    """Look at what is there; an environment of another project is not looked at any further."""
    wanted, record, claim = keys_of(plan.objects), record_key(plan.environment), stack.claim
    if claim is None:
        return look(api, stack.namespace, wanted)
    present = look(api, stack.namespace, [*wanted, record] if claim.name_from_folder else wanted)
    known = recorded(present.heads.get(record))
    check_project(known, claim, plan.environment, plan.namespace, command="deploy", take_over=options.take_over)
    return present


def check_can_build(stack: Stack, images: Collection[ImageBuild]) -> None:
    """See that builds can begin, and that images have a place to go."""
    for image in images:
        if "/" not in image.reference:
            raise MissingPiece(
                f"no registry is known that the image of service '{image.service}' could be pushed to",
                "give --registry or set PLATFORM_REGISTRY; an 'image' that names no registry is Docker's own",
            )
    if stack.origins is not None:
        report = Report()
        check_builds({image.service: image.build for image in images if not image.derived}, stack.origins, report)
        if report.errors:
            raise Refused(report)


def _check_built(stack: Stack, plan: Plan, images: Iterable[ImageBuild]) -> None:
    """See that there are images to run, where none is to be built."""
    built = built_images(stack.state)
    unbuilt = [image.service for image in images if image_urn(plan, image) not in built]
    if unbuilt:
        raise ComposeplatError(
            f"the image of service '{unbuilt[0]}' has never been built here", "leave --no-build out once"
        )
