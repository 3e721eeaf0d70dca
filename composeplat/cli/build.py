"""``platform build``: build and push images, and leave what runs alone."""

from __future__ import annotations

import json

from composeplat.cli.choice import Choice
from composeplat.cli.console import show_result, tell
from composeplat.cli.operating import Mask, failure_rows, operator_for, plan_for, show_failures, show_refusal
from composeplat.cli.progress import Screen
from composeplat.diagnostics import Exit, printable
from composeplat.engine.events import IMAGE
from composeplat.engine.operations import Refused


def run(choice: Choice, services: tuple[str, ...], *, force: bool, as_json: bool, quiet: bool) -> Exit:
    planned = plan_for(choice, start=True, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    try:
        with Screen(as_json=as_json, quiet=quiet) as screen:
            outcome = operator_for(planned, screen).build(services, force=force)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    mask = Mask(planned.plan.confidential)
    if as_json:
        data = {
            "event": "result", "environment": planned.plan.environment, "namespace": planned.plan.namespace,
            "status": "failed" if outcome.failures else "done", "images": outcome.images,
            "failures": failure_rows(outcome), "seconds": round(outcome.seconds, 1),
        }  # fmt: skip
        show_result(json.dumps(mask.clean_data(data)) + "\n")
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if outcome.failures:
        return Exit.FAILED
    if not as_json:
        show_result("".join(f"{printable(reference)}\n" for reference in outcome.images.values()))
        count = len([change for change in outcome.changes if change.kind == IMAGE])
        words = f"built {count} image{'' if count == 1 else 's'}" if count else "no image changed"
        tell(f"{words}, {outcome.seconds:.1f} s\n")
    return Exit.DONE
