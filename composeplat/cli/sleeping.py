"""``platform sleep`` and ``platform wake``: an environment scaled to nothing, and back to what it was."""

from __future__ import annotations

from composeplat import talk
from composeplat.cli.choice import Choice
from composeplat.cli.operating import document, failure_rows, operator_for, plan_for, show_document, show_failures
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import Outcome
from composeplat.plan import Plan


def sleep(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    with talk.work(f"putting {planned.where} to sleep"):
        outcome = operator_for(planned).sleep(wait=wait, timeout=timeout)
    show_document(_result("sleep", outcome, planned.plan), planned, as_json=as_json)
    _tell_developed(outcome)
    talk.conclude(_sum(outcome, planned.where, "sleeps", "there was nothing to put to sleep in"))
    return Exit.DONE


def wake(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    in_order = planned.loaded.settings.wake_in_order
    with talk.work(f"waking {planned.where}"):
        outcome = operator_for(planned).wake(in_order=in_order, wait=wait, timeout=timeout)
    show_document(_result("wake", outcome, planned.plan), planned, as_json=as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    _tell_developed(outcome)
    if outcome.failures:
        count = len({failure.service for failure in outcome.failures})
        talk.conclude(f"{count} service{'s' if count > 1 else ''} failed after {outcome.seconds:.0f} s")
        return Exit.FAILED
    talk.conclude(_sum(outcome, planned.where, "is awake", "nothing was asleep in"))
    return Exit.DONE


def _result(command: str, outcome: Outcome, plan: Plan) -> dict[str, object]:
    return document(
        command, plan.environment, plan.namespace,
        status="failed" if outcome.failures else "done", services=list(outcome.services),
        under_development=list(outcome.developed), failures=failure_rows(outcome), seconds=round(outcome.seconds, 1),
    )  # fmt: skip


def _tell_developed(outcome: Outcome) -> None:
    for name in outcome.developed:
        talk.conclude(f"{printable(name)} is under development, and was left alone")


def _sum(outcome: Outcome, where: str, verb: str, nothing: str) -> str:
    if not outcome.services:
        return f"{nothing} {where}"
    return f"{where} {verb}: {printable(', '.join(outcome.services))}, {outcome.seconds:.1f} s"
