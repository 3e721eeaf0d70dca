"""``platform build``: build and push images, and leave what runs alone."""

from __future__ import annotations

from composeplat import progress
from composeplat.cli.console import write_output
from composeplat.cli.operations import (
    outcome_document,
    plan_for,
    show_document,
    show_failures,
    show_refusal,
    stack_for,
    tell_published,
)
from composeplat.cli.selection import Choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.events import IMAGE
from composeplat.engine.operations import build as operation
from composeplat.engine.outcomes import Refused
from composeplat.publication import to_registries


def run(choice: Choice, services: tuple[str, ...], *, force: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, start=True, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    try:
        with progress.work(f"building for {planned.where}"):
            images = planned.plan.images_for(services) if services else planned.plan.images
            tell_published(planned, to_registries(planned.loaded, images))
            outcome = operation.build(stack_for(planned), planned.plan, services, force=force)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    data = outcome_document("build", planned, outcome, images=outcome.images)
    show_document(data, as_json=as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if outcome.failures:
        return Exit.FAILED
    if not as_json:
        write_output("".join(f"{printable(reference)}\n" for reference in outcome.images.values()))
    count = len([change for change in outcome.changes if change.kind == IMAGE])
    words = f"built {count} image{'' if count == 1 else 's'}" if count else "no image changed"
    progress.conclude(f"{words}, {outcome.seconds:.1f} s")
    return Exit.DONE
