"""``platform refresh``: what was changed in the cluster behind our back."""

from __future__ import annotations

from composeplat.cli.choice import Choice
from composeplat.cli.console import show_result, tell
from composeplat.cli.operating import Mask, operator_for, plan_for, to_json
from composeplat.cli.preview import change_rows
from composeplat.cli.progress import Screen
from composeplat.diagnostics import Exit, printable


def run(choice: Choice, *, preview: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, start=False, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    with Screen(quiet=True) as screen:
        outcome = operator_for(planned, screen).refresh(preview_only=preview)
    mask = Mask(planned.plan.confidential)
    rows = change_rows(outcome.changes, planned.plan)
    if as_json:
        show_result(to_json(mask.clean_data({"changed": rows})))
        return Exit.DONE
    for row in rows:
        what = "is gone" if row["operation"] == "delete" else "was changed"
        reasons = row["reasons"]
        why = f": {'; '.join(map(str, reasons))}" if isinstance(reasons, list) and reasons else ""
        show_result(mask.clean(f"{row['kind']} {printable(str(row['name']))} {what}{printable(why)}\n"))
    told = f"{len(rows)} objects are otherwise than deployed" if rows else "nothing was changed behind our back"
    tell(f"{told}, {outcome.seconds:.1f} s\n")
    if rows and not preview:
        tell("the state now says so; 'platform deploy' makes them again what the file says\n")
    return Exit.DONE
