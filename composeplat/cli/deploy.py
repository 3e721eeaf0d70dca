"""``platform deploy``: make the cluster what the Compose file says."""

from __future__ import annotations

import json

from composeplat.cli.choice import Choice
from composeplat.cli.console import show_result, tell
from composeplat.cli.operating import (
    Mask,
    Planned,
    failure_rows,
    operator_for,
    plan_for,
    show_failures,
    show_refusal,
)
from composeplat.cli.preview import change_rows
from composeplat.cli.progress import Screen
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import Options, Outcome, Refused
from composeplat.plan import Plan


def run(choice: Choice, options: Options, *, as_json: bool, quiet: bool) -> Exit:
    planned = plan_for(choice, start=True)
    if planned is None:
        return Exit.INVALID
    return deploy(planned, choice, options, as_json=as_json, quiet=quiet)


def deploy(planned: Planned, choice: Choice, options: Options, *, as_json: bool, quiet: bool) -> Exit:
    """Deploy what has been read and planned already."""
    try:
        with Screen(as_json=as_json, quiet=quiet) as screen:
            outcome = operator_for(planned, screen).deploy(options)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    mask = Mask(planned.plan.confidential)
    if as_json:
        show_result(json.dumps(mask.clean_data(_result(outcome, planned.plan))) + "\n")
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if outcome.failures:
        tell(_failed_words(outcome))
        return Exit.FAILED
    if not as_json:
        tell(mask.clean(_summary(outcome, planned.plan)))
        show_result("".join(f"{printable(url)}\n" for url in outcome.urls))
    return Exit.DONE


def _result(outcome: Outcome, plan: Plan) -> dict[str, object]:
    return {
        "event": "result",
        "environment": plan.environment,
        "namespace": plan.namespace,
        "status": "failed" if outcome.failures else "done",
        "changes": change_rows(outcome.changes, plan),
        "failures": failure_rows(outcome),
        "kept_volumes": outcome.kept,
        "urls": list(outcome.urls),
        "seconds": round(outcome.seconds, 1),
    }


def _summary(outcome: Outcome, plan: Plan) -> str:
    where = f"{plan.environment} in namespace {plan.namespace}"
    lines = [f"volume {name} is not in the file any more; it and its data stay" for name in outcome.kept]
    lines += [f"removed {name}, left by an interrupted run" for name in outcome.removed]
    words = count_words(outcome)
    lines.append(f"deployed {where}: {words}, {outcome.seconds:.1f} s")
    return "\n".join(lines) + "\n"


def count_words(outcome: Outcome) -> str:
    named = (("create", "created"), ("update", "updated"), ("replace", "replaced"), ("delete", "deleted"))
    counts = [f"{outcome.counts[key]} {word}" for key, word in named if outcome.counts.get(key)]
    return ", ".join(counts) or "nothing changed"


def _failed_words(outcome: Outcome) -> str:
    count = len({failure.service for failure in outcome.failures})
    return (
        f"{count} service{'s' if count > 1 else ''} failed after {outcome.seconds:.0f} s; what else was done is noted\n"
    )
