"""``platform sleep`` and ``platform wake``: an environment scaled to nothing, and back to what it was."""

from __future__ import annotations

import json

from composeplat.cli.choice import Choice
from composeplat.cli.console import show_result, tell
from composeplat.cli.operating import Mask, failure_rows, operator_for, plan_for, show_failures
from composeplat.cli.progress import Screen
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import Outcome
from composeplat.plan import Plan


def sleep(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, start=False, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    with Screen(as_json=as_json) as screen:
        outcome = operator_for(planned, screen).sleep(wait=wait, timeout=timeout)
    if as_json:
        show_result(json.dumps(_result(outcome, planned.plan)) + "\n")
        return Exit.DONE
    _tell_developed(outcome)
    tell(_sum(outcome, planned.plan, "sleeps", "there was nothing to put to sleep in"))
    return Exit.DONE


def wake(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, start=False, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    in_order = planned.loaded.settings.wake_in_order
    with Screen(as_json=as_json) as screen:
        outcome = operator_for(planned, screen).wake(in_order=in_order, wait=wait, timeout=timeout)
    if as_json:
        show_result(json.dumps(Mask(planned.plan.confidential).clean_data(_result(outcome, planned.plan))) + "\n")
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if not as_json:
        _tell_developed(outcome)
    if outcome.failures:
        count = len({failure.service for failure in outcome.failures})
        tell(f"{count} service{'s' if count > 1 else ''} failed after {outcome.seconds:.0f} s\n")
        return Exit.FAILED
    if not as_json:
        tell(_sum(outcome, planned.plan, "is awake", "nothing was asleep in"))
    return Exit.DONE


def _result(outcome: Outcome, plan: Plan) -> dict[str, object]:
    return {
        "event": "result",
        "environment": plan.environment,
        "namespace": plan.namespace,
        "status": "failed" if outcome.failures else "done",
        "services": list(outcome.services),
        "under_development": list(outcome.developed),
        "failures": failure_rows(outcome),
        "seconds": round(outcome.seconds, 1),
    }


def _tell_developed(outcome: Outcome) -> None:
    for name in outcome.developed:
        tell(f"{printable(name)} is under development, and was left alone\n")


def _sum(outcome: Outcome, plan: Plan, verb: str, nothing: str) -> str:
    where = f"{plan.environment} in namespace {plan.namespace}"
    if not outcome.services:
        return f"{nothing} {where}\n"
    return f"{where} {verb}: {printable(', '.join(outcome.services))}, {outcome.seconds:.1f} s\n"
