"""Build and push images, without a change to any workload."""

from __future__ import annotations

import time
from collections.abc import Collection

from composeplat.diagnostics import ComposeplatError
from composeplat.engine import pulumi_runs
from composeplat.engine.checks import check_can_build
from composeplat.engine.failure_logs import failures_of, note_refusals
from composeplat.engine.monitor import Monitor
from composeplat.engine.outcomes import Outcome
from composeplat.engine.pulumi_args import image_args, image_urn, part_of_images
from composeplat.engine.stack import Stack
from composeplat.engine.unchanged_builds import BuildCheck
from composeplat.plan.desired import ImageBuild, Plan


def _chosen_images(plan: Plan, services: Collection[str]) -> tuple[ImageBuild, ...]:
    plan.select_services(services)
    images = plan.images_for(services) if services else plan.images
    if services and not images:
        raise ComposeplatError(f"service '{next(iter(services))}' has nothing to build", "add 'build' to a service")
    return images


def build(stack: Stack, plan: Plan, services: Collection[str], *, force: bool) -> Outcome:
    """Build the images of some services, or of all, if they changed or ``force`` is given."""
    started = time.monotonic()
    images = _chosen_images(plan, services)
    if not images:
        return Outcome()
    check_can_build(stack, images)
    # Nothing of the cluster is registered then: that would be half of the time of a build without a change.
    alone = plan.images_only
    chosen = frozenset(image.service for image in images)
    with stack.interrupts:
        check = BuildCheck.begin(stack, alone, images)
        references = None if force else check.find_unchanged()
        if references is not None:
            seconds = time.monotonic() - started
            return Outcome(counts={"same": len(images)}, images=references, seconds=seconds)
        monitor = Monitor(plan=alone, on_progress=stack.on_progress, chosen=chosen, only_images=True)
        handlers = pulumi_runs.RunHandlers(lambda urn, events: monitor.handle(urn, events, lambda: 0))
        pulumi_runs.prepare(stack, alone)
        with stack.lock("build"):
            stack.check_project("build")
            stack.workspace.make_stack()
            stack.check_cluster()
            stack.mend_state()
            part = part_of_images(alone, images)
            args = ["up", *pulumi_runs.UNATTENDED_ARGS, *image_args(part, stack.state, force=force)]
            events, result = pulumi_runs.run_program(stack, alone, args, chosen, handlers=handlers, registered=part)
            if not result.status and not monitor.causes:
                check.keep(has_changes=bool(events.effective_changes))
            stack.stop_if_interrupted()
            note_refusals(stack, monitor, events, result)
            if result.status and not monitor.causes:
                raise pulumi_runs.run_error(result, events)
    known = {image.service: events.references.get(image_urn(alone, image), image.reference) for image in images}
    return Outcome(
        changes=events.effective_changes,
        counts=events.count_operations(),
        failures=failures_of(monitor),
        images=known,
        seconds=time.monotonic() - started,
    )
