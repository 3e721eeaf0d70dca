"""``platform rollback``: deploy an earlier revision of an environment again, after a preview."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.deploy import count_changes
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import (
    Planned,
    failure_summary,
    outcome_document,
    plan_for,
    show_document,
    show_failures,
    show_refusal,
    stack_for,
)
from composeplat.cli.policies import pulumi_variables, show_violations, violation_rows
from composeplat.cli.preview import change_rows, changes_summary, changes_text, with_own_name
from composeplat.cli.questions import confirm
from composeplat.cli.selection import OF_PULUMI, WORKING, Choice, with_choice
from composeplat.diagnostics import ComposeplatError, Exit
from composeplat.engine.operations import rollback as operation
from composeplat.engine.outcomes import DeployOptions, Outcome, Refused
from composeplat.system.records import record

app = App()


@record(kw_only=True)
class RollbackOptions:
    revision: int | None
    diff: bool
    dry_run: bool
    yes: bool
    as_json: bool


def run(choice: Choice, options: RollbackOptions, deploy_options: DeployOptions) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    try:
        return _roll_back(planned, choice, options, deploy_options)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)


def _roll_back(planned: Planned, choice: Choice, options: RollbackOptions, deploy_options: DeployOptions) -> Exit:
    with progress.work(f"comparing {planned.where} with its history"):
        target = operation.find_target(stack_for(planned), planned.plan, options.revision)
        deploy_options = replace(deploy_options, rolled_back_to=target.revision.number)
        previewed = operation.preview(stack_for(planned, pulumi_variables(choice)), target, deploy_options)
    planned = replace(planned, plan=target.plan)
    number = target.revision.number
    _show_preview(planned, previewed, options)
    if show_violations(previewed, planned, as_json=choice.json_diagnostics):
        refused = replace(previewed, changes=[], kept=[])
        show_document(_document(planned, previewed, refused, number, diff=False), as_json=options.as_json)
        progress.conclude(f"a policy refuses {planned.where}; nothing was changed")
        return Exit.FAILED
    if options.dry_run or not (previewed.changes or target.completes_another):
        data = _document(planned, previewed, previewed, number, diff=True)
        show_document({**data, "status": "previewed" if options.dry_run else "done"}, as_json=options.as_json)
        if not previewed.changes:
            progress.conclude(f"{planned.where} is as in revision {number}: nothing was changed")
        return Exit.DONE
    if not options.yes:
        _confirm(planned, number)
    with progress.work(f"rolling {planned.where} back to revision {number}"):
        outcome = operation.apply(stack_for(planned, pulumi_variables(choice)), target, deploy_options)
    show_document(_document(planned, previewed, outcome, number, diff=False), as_json=options.as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if outcome.failures:
        progress.conclude(f"{failure_summary(outcome)}; the state has the other changes")
        return Exit.FAILED
    changes = count_changes(outcome)
    progress.conclude(f"rolled back {planned.where} to revision {number}: {changes}, {outcome.seconds:.1f} s")
    return Exit.DONE


def _show_preview(planned: Planned, previewed: Outcome, options: RollbackOptions) -> None:
    changes = [with_own_name(change) for change in previewed.changes]
    if not options.as_json:
        write_output(changes_text(changes, planned.plan, diff=options.diff))
    if changes:
        progress.conclude(changes_summary(changes, previewed))


def _document(planned: Planned, previewed: Outcome, outcome: Outcome, number: int, *, diff: bool) -> dict[str, object]:
    changes = [with_own_name(change) for change in outcome.changes]
    return outcome_document(
        "rollback",
        planned,
        outcome,
        rolled_back_to=number,
        changes=change_rows(changes, planned.plan, diff=diff),
        kept_volumes=outcome.kept,
        notes=previewed.notes,
        urls=list(outcome.urls),
        policy_violations=violation_rows(previewed, planned.plan),
    )


def _confirm(planned: Planned, number: int) -> None:
    where = planned.where
    no_terminal = ComposeplatError(
        f"a rollback changes {where}, and there is no terminal to confirm that on", "give --yes, or --dry-run"
    )
    confirm(f"Roll {where} back to revision {number}?", no_terminal, refused="not confirmed: nothing was changed")


@app.command(
    "rollback",
    guide=Guide(
        {
            "To the revision before the last one": "platform rollback",
            "To a revision of the history, without being asked": "platform rollback 3 --yes",
            "Only show the changes": "platform rollback 3 --dry-run --diff",
        },
        "living.md",
    ),
)
@with_choice("timeout", *OF_PULUMI, *WORKING)
def rollback_command(
    choice: Choice,
    revision: Annotated[
        int | None,
        typer.Argument(metavar="[REVISION]", min=1, help="One of the history; default: the last good one before."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask after the preview.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the changes.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show each property that changes.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Deploy an earlier revision again: its images and values. Data is never rolled back."""
    options = RollbackOptions(revision=revision, diff=diff, dry_run=dry_run, yes=yes, as_json=as_json)
    return run(choice, options, DeployOptions(wait=wait, timeout=choice.timeout, build=False))
