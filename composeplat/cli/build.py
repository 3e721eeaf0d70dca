"""``platform build``: build and push images, without a deploy."""

from __future__ import annotations

from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import (
    outcome_document,
    plan_for,
    report_publications,
    show_document,
    show_failures,
    show_refusal,
    stack_for,
)
from composeplat.cli.selection import READING, WORKING, Choice, with_choice
from composeplat.diagnostics import Exit, format_count, printable
from composeplat.engine.events import IMAGE
from composeplat.engine.operations import build as operation
from composeplat.engine.outcomes import Refused
from composeplat.publication import image_publications

app = App()


def run(choice: Choice, services: tuple[str, ...], *, force: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, start=True, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    try:
        with progress.work(f"building for {planned.where}"):
            images = planned.plan.images_for(services) if services else planned.plan.images
            report_publications(planned, image_publications(planned.loaded, images, context=planned.context))
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
    summary = f"built {format_count(count, 'image')}" if count else "no image changed"
    progress.conclude(f"{summary}, {outcome.seconds:.1f} s" if images else "no service has a 'build' section")
    return Exit.DONE


@app.command(
    "build",
    guide=Guide(
        {
            "Build what changed, and push it": "platform build --registry registry.example.com/team",
            "One image, changed or not": "platform build api --force",
        },
        "building.md",
    ),
)
@with_choice("registry", "builder", *READING, *WORKING)
def build_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build unchanged images too.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Build and push the images that changed, and print the names of all. Changes nothing that runs."""
    return run(choice, tuple(services or ()), force=force, as_json=as_json)
