"""``platform refresh``: the changes that others made in the cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document, plan_for, show_document, stack_for
from composeplat.cli.preview import change_rows
from composeplat.cli.selection import WORKING, Choice, with_choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import refresh as operation

app = App()


def run(choice: Choice, *, preview: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    with progress.work(f"looking at {planned.where}"):
        outcome = operation.refresh(stack_for(planned), preview_only=preview)
    rows = change_rows(outcome.changes, planned.plan)
    data = document(
        "refresh", planned.plan.environment, planned.plan.namespace, changes=rows, seconds=round(outcome.seconds, 1)
    )
    show_document(data, as_json=as_json)
    for row in () if as_json else rows:
        what = "is gone" if row["operation"] == "delete" else "was changed"
        reasons = row["reasons"]
        why = f": {'; '.join(map(str, reasons))}" if isinstance(reasons, list) and reasons else ""
        write_output(f"{row['kind']} {printable(str(row['name']))} {what}{printable(why)}\n")
    differing = f"{len(rows)} objects differ" if len(rows) > 1 else "1 object differs"
    summary = f"{differing} from what was deployed" if rows else "nothing was changed outside platform"
    progress.conclude(f"{summary}, {outcome.seconds:.1f} s")
    if rows and not preview:
        progress.conclude("the state is updated; 'platform deploy' restores the objects")
    return Exit.DONE


@app.command(
    "refresh",
    guide=Guide({"Show what others changed, and keep the state": "platform refresh --preview"}, "deploying.md"),
)
@with_choice(*WORKING)
def refresh_command(
    choice: Choice,
    only_show: Annotated[bool, typer.Option("--preview", help="Only show the changes; keep the state.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Update the state with the changes that others made in the cluster."""
    return run(choice, preview=only_show, as_json=as_json)
