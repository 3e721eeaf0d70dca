"""``platform import``: take over objects that ``kubectl apply`` or a converter has made for the Compose file here.

Owns the preview, the question, and the JSON of the decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.built_users import read_built_users
from composeplat.cli.console import wants_color, write_output, write_unmasked
from composeplat.cli.deploy import count_changes
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import (
    Planned,
    document,
    failure_rows,
    failure_summary,
    plan_for,
    report_deploy,
    show_document,
    show_failures,
    show_refusal,
    stack_for,
)
from composeplat.cli.policies import show_violations
from composeplat.cli.questions import confirm
from composeplat.cli.selection import PLANNING, READING, WORKING, Choice, with_choice
from composeplat.diagnostics import ComposeplatError, Exit, format_count, join_and_count, printable
from composeplat.engine.adoption import Action, Adoption
from composeplat.engine.adoption_steps import handed_over_services
from composeplat.engine.events import format_value
from composeplat.engine.operations import import_objects as operation
from composeplat.engine.operations.import_objects import Found
from composeplat.engine.outcomes import DeployOptions, Outcome, Refused

app = App()

_SIGNS = {
    Action.ADOPT: ("=", "32", "adopt"),
    Action.HAND_OVER: ("!", "35", "hand over"),
    Action.FOLLOW: ("~", "33", "keep, and repoint"),
    Action.LEAVE: (" ", "0", "leave"),
    Action.REFUSE: ("x", "31", "can't take over"),
}
_MAX_LISTED = 5


def run(choice: Choice, *, yes: bool, dry_run: bool, wait: bool, as_json: bool) -> Exit:
    written = plan_for(choice)
    planned = read_built_users(written, choice) if written else None
    if planned is None:
        return Exit.INVALID
    stack = stack_for(planned)
    with progress.work(f"looking for objects of {planned.where}"):
        found = operation.find_objects(stack, planned.plan)
    refusals = operation.report_refusals(stack, found)
    if not as_json:
        write_output(_text(found.entries))
    if refusals.errors:
        show_document(_document(planned, found, "refused"), as_json=as_json)
        return show_refusal(Refused(refusals), as_json=choice.json_diagnostics)
    is_empty = not found.taken and not found.is_begun(planned.plan.environment)
    if dry_run or is_empty:
        show_document(_document(planned, found, "preview"), as_json=as_json)
        progress.conclude(_conclusion(planned, found, is_empty=is_empty))
        return Exit.DONE
    progress.note(_summary(found.entries))
    if not yes:
        _confirm(planned)
    return _import(choice, planned, found, wait=wait, as_json=as_json)


def _import(choice: Choice, planned: Planned, found: Found, *, wait: bool, as_json: bool) -> Exit:
    options = DeployOptions(wait=wait, timeout=choice.timeout, adopted=operation.replaced_workloads(found))
    try:
        with progress.work(f"taking over objects for {planned.where}"):
            report_deploy(planned, ())
            outcome = operation.import_objects(stack_for(planned), planned.plan, found, options)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    is_refused = show_violations(outcome, planned, as_json=choice.json_diagnostics)
    status = "failed" if outcome.failures or is_refused else "done"
    show_document(_document(planned, found, status, outcome), as_json=as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if is_refused:
        progress.conclude(f"a policy refuses {planned.where}; the objects have its labels, and stay as they are")
        return Exit.FAILED
    if outcome.failures:
        progress.conclude(f"{failure_summary(outcome)}; 'platform import' continues from there")
        return Exit.FAILED
    for name in outcome.removed:
        progress.conclude(f"deleted {printable(name)}, which its successor has replaced")
    changes = count_changes(outcome)
    progress.conclude(f"took over {_summary(found.entries)}: {changes}, {outcome.seconds:.1f} s")
    if not as_json:
        write_unmasked("".join(f"{printable(url)}\n" for url in outcome.urls))
    return Exit.DONE


def _confirm(planned: Planned) -> None:
    no_terminal = ComposeplatError(
        "nothing was changed: there is no terminal to confirm that on", "give --yes, or --dry-run to look only"
    )
    question = f"Take over these objects, and deploy {printable(planned.where)}?"
    confirm(question, no_terminal, refused="nothing was changed")


# output ---------------------------------------------------------------------------------------------------------------


def _document(planned: Planned, found: Found, status: str, outcome: Outcome | None = None) -> dict[str, object]:
    return document(
        "import",
        planned.plan.environment,
        planned.plan.namespace,
        status=status,
        objects=[_row(entry) for entry in found.entries],
        failures=failure_rows(outcome, planned) if outcome else [],
        removed=outcome.removed if outcome else [],
        seconds=round(outcome.seconds, 1) if outcome else 0.0,
    )


def _row(entry: Adoption) -> dict[str, object]:
    return {
        "action": str(entry.action),
        "kind": entry.kind,
        "name": entry.name,
        "part": ".".join(str(step) for step in entry.path),
        "successor": "/".join(entry.successor) if entry.successor else "",
        "interruption": entry.is_interrupted,
        "changes": [{"path": change.path, "old": change.old, "new": change.new} for change in entry.changes],
        "kept": list(entry.kept),
        "reason": entry.reason,
        "hint": entry.hint,
    }


def _text(entries: Iterable[Adoption]) -> str:
    by_part: dict[str, list[Adoption]] = {}
    for entry in entries:
        by_part.setdefault(" ".join(str(step) for step in _named(entry)), []).append(entry)
    color = wants_color(sys.stdout)
    lines: list[str] = []
    for part, found in by_part.items():
        lines.append(printable(part))
        for entry in found:
            lines += _lines(entry, color=color)
    return "".join(f"{line}\n" for line in lines)


def _named(entry: Adoption) -> tuple[str | int, ...]:
    """Return the part of the file, as the preview of a deploy names it."""
    if not entry.path:
        return ("others",)
    return (str(entry.path[0]).removesuffix("s"), *entry.path[1:])


def _lines(entry: Adoption, *, color: bool) -> list[str]:
    sign, shade, word = _SIGNS[entry.action]
    sign = f"\x1b[{shade}m{sign}\x1b[0m" if color else sign
    kind, name = entry.successor or ("", "")
    target = f" to {kind} {_shown(name)}" if entry.successor and entry.key != entry.successor else ""
    reason = f": {_shown(entry.reason)}" if entry.reason else ""
    away = " (short interruption)" if entry.is_interrupted else ""
    lines = [f"  {sign} {word} {entry.kind} {_shown(entry.name)}{target}{reason}{away}"]
    labels = [change for change in entry.changes if change.path.startswith("metadata.labels") and change.old is None]
    if labels:
        lines.append(f"      metadata.labels: {format_count(len(labels), 'new label')}")
    for change in entry.changes:
        if change not in labels:
            values = "" if change.is_hidden else f": {format_value(change.old)} -> {format_value(change.new)}"
            lines.append(f"      {_shown(change.path)}{_shown(values)}")
    if entry.kept:
        lines.append(f"      stays as it is: {_shown(join_and_count(list(entry.kept), _MAX_LISTED))}")
    return lines


def _shown(text: str) -> str:
    """Write a text of the cluster on one line: an annotation can have any characters."""
    return printable(text).replace("\n", "\\n")


def _summary(entries: Iterable[Adoption]) -> str:
    found = list(entries)
    counts = {action: sum(entry.action is action for entry in found) for action in Action}
    texts = [
        f"{format_count(counts[Action.ADOPT], 'object')} in place",
        f"{format_count(counts[Action.HAND_OVER], 'workload')} with successors",
    ]
    away = handed_over_services(found)
    if away:
        texts.append(f"with a short interruption of {printable(join_and_count(away, _MAX_LISTED))}")
    return ", ".join(texts)


def _conclusion(planned: Planned, found: Found, *, is_empty: bool) -> str:
    if is_empty:
        return f"there is nothing to take over for {printable(planned.where)}; 'platform deploy' deploys the file"
    return f"{_summary(found.entries)}; nothing was changed: --dry-run"


@app.command(
    "import",
    guide=Guide(
        {
            "Show the preview, and change nothing": "platform import --dry-run",
            "Take over objects in their namespace": "platform import --namespace shop",
            "In a script": "platform import --yes --json",
        },
        "from-kompose.md",
    ),
)
@with_choice(*PLANNING, "builder", "pull_secret", "timeout", *READING, *WORKING)
def import_command(
    choice: Choice,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask after the preview.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the preview, and change nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Take over objects that kubectl or kompose made for the Compose file, after a preview, and deploy it."""
    return run(choice, yes=yes, dry_run=dry_run, wait=wait, as_json=as_json)
