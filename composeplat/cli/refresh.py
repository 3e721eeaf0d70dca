"""``platform refresh``: what others changed in the cluster."""

from __future__ import annotations

from composeplat import progress
from composeplat.cli.console import write_output
from composeplat.cli.operations import document, plan_for, show_document, stack_for
from composeplat.cli.preview import change_rows
from composeplat.cli.selection import Choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import refresh as operation


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
    told = f"{len(rows)} objects differ from what was deployed" if rows else "nothing was changed outside platform"
    progress.conclude(f"{told}, {outcome.seconds:.1f} s")
    if rows and not preview:
        progress.conclude("the state is updated; 'platform deploy' restores the objects")
    return Exit.DONE
