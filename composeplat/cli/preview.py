"""``platform preview``: the changes that a deploy would make, by service, with the reasons."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.built_users import read_built_users
from composeplat.cli.console import wants_color, write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import (
    Planned,
    document,
    plan_for,
    report_deploy,
    show_document,
    show_refusal,
    stack_for,
)
from composeplat.cli.policies import pulumi_variables, show_violations, violation_rows
from composeplat.cli.selection import OF_PULUMI, PLANNING, READING, WORKING, Choice, with_choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.events import Change, Operation, describe_differences, format_value
from composeplat.engine.operations import preview as operation
from composeplat.engine.outcomes import DeployOptions, Outcome, Refused
from composeplat.engine.plan_parts import Part, Parts
from composeplat.engine.preflight import REPLACED
from composeplat.names import MAX_LABEL_LENGTH
from composeplat.plan import Plan

app = App()

_SIGNS = {Operation.CREATE: "+", Operation.UPDATE: "~", Operation.REPLACE: "!", Operation.DELETE: "-"}
_COLORS = {Operation.CREATE: "32", Operation.UPDATE: "33", Operation.REPLACE: "35", Operation.DELETE: "31"}


def run(choice: Choice, options: DeployOptions, *, diff: bool, as_json: bool, expect_no_changes: bool) -> Exit:
    planned = plan_for(choice)
    if planned is None:
        return Exit.INVALID
    try:
        with progress.work(f"comparing the file with {planned.where}"):
            report_deploy(planned, options.services)
            complete = read_built_users(planned, choice, options.services)
            if complete is None:
                return Exit.INVALID
            planned = complete
            outcome = operation.preview(stack_for(planned, pulumi_variables(choice)), planned.plan, options)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    changes = [with_own_name(change) for change in outcome.changes]
    show_document(preview_document(planned, outcome), as_json=as_json)
    if not as_json:
        write_output(changes_text(changes, planned.plan, diff=diff))
    is_refused = show_violations(outcome, planned, as_json=choice.json_diagnostics)
    progress.conclude(changes_summary(changes, outcome))
    if is_refused:
        return Exit.FAILED
    return Exit.CHANGES if changes and expect_no_changes else Exit.DONE


def preview_document(planned: Planned, outcome: Outcome) -> dict[str, object]:
    changes = [with_own_name(change) for change in outcome.changes]
    return document(
        "preview",
        planned.plan.environment,
        planned.plan.namespace,
        changes=change_rows(changes, planned.plan, diff=True),
        kept_volumes=outcome.kept,
        notes=outcome.notes,
        unchanged=outcome.counts.get("same", 0),
        policy_violations=violation_rows(outcome, planned.plan),
    )


def with_own_name(change: Change) -> Change:
    """Return a change with the name of the object; a preview renames objects that it replaces."""
    if change.operation is not Operation.REPLACE or not change.name.endswith(REPLACED):
        return change
    differences = tuple(difference for difference in change.differences if difference.path != "metadata.name")
    name, key = change.name.removesuffix(REPLACED), change.key
    is_cut = len(change.name) == MAX_LABEL_LENGTH and key is not None and key.name.startswith(name)
    own = key.name if key is not None and is_cut else name
    return replace(change, name=own, differences=differences)


def change_rows(changes: Iterable[Change], plan: Plan, *, diff: bool = False) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for part, change in ((part, change) for part, own in Parts(plan).group(changes).items() for change in own):
        row: dict[str, object] = {
            "part": asdict(part),
            "operation": change.operation,
            "kind": change.kind,
            "name": change.name,
            "reasons": reasons_of(change, part, plan),
        }
        if change.kept:
            row["kept"] = True
        if diff:
            row["differences"] = [
                {"path": found.path, "old": found.old, "new": found.new, "replaces": found.replaces}
                for found in change.differences
            ]
        rows.append(row)
    return rows


def reasons_of(change: Change, part: Part, plan: Plan) -> list[str]:
    """Return why an object changes: its differences, or the profile of a service that is off."""
    profiles = plan.inactive.get(part.name, ()) if part.type == "service" else ()
    if not profiles or change.operation is not Operation.DELETE:
        return describe_differences(change)
    return [f"its profile is off: {', '.join(profiles)}"]


def changes_text(changes: list[Change], plan: Plan, *, diff: bool) -> str:
    color = wants_color(sys.stdout)
    lines: list[str] = []
    for part, part_changes in Parts(plan).group(changes).items():
        lines.append(printable(str(part)))
        for change in part_changes:
            lines.append(_line(change, reasons_of(change, part, plan), color=color))
            if diff:
                lines += _differences(change)
    return "".join(f"{line}\n" for line in lines)


def _line(change: Change, reasons: list[str], *, color: bool) -> str:
    sign, word = _SIGNS[change.operation], str(change.operation)
    if change.kept:
        word = "keep in the cluster, out of the state"
    if color:
        sign = f"\x1b[{_COLORS[change.operation]}m{sign}\x1b[0m"
    why = "; ".join(reasons)
    forced = [difference.path for difference in change.differences if difference.replaces]
    if change.operation is Operation.REPLACE and forced:
        why = f"{why} (can't be changed in place: {', '.join(sorted(forced)[:3])})"
    return f"  {sign} {word} {change.kind} {printable(change.name)}" + (f": {printable(why)}" if why else "")


def _differences(change: Change) -> list[str]:
    lines: list[str] = []
    for difference in change.differences:
        lines.append(f"      {printable(difference.path)}")
        if difference.old is not None:
            lines.append(f"        - {printable(format_value(difference.old))}")
        if difference.new is not None:
            lines.append(f"        + {printable(format_value(difference.new))}")
    return lines


def changes_summary(changes: list[Change], outcome: Outcome) -> str:
    lines = [f"volume {name} is no longer used; it and its data stay in the cluster" for name in outcome.kept]
    lines += outcome.notes
    counts = {operation: sum(c.operation is operation and not c.kept for c in changes) for operation in _SIGNS}
    summary = ", ".join(f"{count} to {operation}" for operation, count in counts.items() if count)
    lines.append(f"{summary or 'no changes'}, {outcome.seconds:.1f} s")
    return "\n".join(lines)


@app.command(
    "preview",
    guide=Guide(
        {
            "Each property that would change": "platform preview --diff",
            "For a pipeline: status 5 where anything would change": "platform preview --expect-no-changes",
        },
        "deploying.md",
    ),
)
@with_choice(*PLANNING, "pull_secret", *OF_PULUMI, *READING, *WORKING)
def preview_command(
    choice: Choice,
    services: opt.Services = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show each property that changes.")] = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with status 5 if anything would change.")
    ] = False,
    rerun_jobs: opt.RerunJobs = False,
    replace_volume: opt.ReplaceVolumes = None,
    take_over: opt.TakeOver = False,
    as_json: opt.Json = False,
) -> int:
    """Show what a deploy would change, and why. Changes nothing."""
    options = DeployOptions(
        services=tuple(services or ()),
        rerun_jobs=rerun_jobs,
        replaced_volumes=tuple(replace_volume or ()),
        take_over=take_over,
    )
    return run(choice, options, diff=diff, as_json=as_json, expect_no_changes=expect_no_changes)
