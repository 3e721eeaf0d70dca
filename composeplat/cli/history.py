"""``platform history``: the deployments of an environment, with their changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_json
from composeplat.cli.environment_view import fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.diagnostics import Exit, format_count, join_and_count, printable
from composeplat.engine.history import read_history
from composeplat.engine.revisions import PartChange, Revision, find_revision

app = App()

_COLUMNS = ("REVISION", "STARTED", "WHO", "COMMIT", "RESULT", "CHANGES")
_SHORT_HASH_CHARS = 8
_MAX_LISTED = 4
_DONE = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}


def run(choice: Choice, number: int | None, *, as_json: bool) -> Exit:
    view = view_environment(choice, ())
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        revisions = read_history(api, view.namespace, view.environment)
    if number is not None:
        revisions = [find_revision(revisions, number)]
    text = _table(revisions) if number is None or as_json else _details(revisions[0])
    absent = f"{view.environment} has no history in namespace {view.namespace}: platform deploy"
    if as_json:
        write_json(history_document(view.environment, view.namespace, revisions))
    else:
        view.show("history", text, as_json=False, absent=absent)
    return Exit.DONE


def history_document(environment: str, namespace: str, revisions: Iterable[Revision]) -> dict[str, object]:
    return document("history", environment, namespace, revisions=[revision_row(revision) for revision in revisions])


def _table(revisions: list[Revision]) -> str:
    if not revisions:
        return ""
    cells = [
        (
            str(found.number),
            local_time(found.started),
            found.who or "-",
            commit_text(found),
            found.result,
            _summary(found),
        )
        for found in revisions
    ]
    return fit_table([_COLUMNS, *cells], terminal_width(), ("WHO", "COMMIT"))


def local_time(started: str) -> str:
    """Return a moment in the time zone of this machine; as it is written, if it is none."""
    try:
        return datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return started or "-"


def commit_text(revision: Revision) -> str:
    """Return a short hash, with ``*`` for changes that are in no commit, and the branch."""
    if not revision.commit:
        return "-"
    mark = "*" if revision.dirty else ""
    return f"{revision.commit[:_SHORT_HASH_CHARS]}{mark} {revision.branch}".rstrip()


def _summary(revision: Revision) -> str:
    parts = []
    if revision.rolled_back_to is not None:
        parts.append(f"rolled back to {revision.rolled_back_to}")
    for operation, word in _DONE.items():
        names = [_part_name(change) for change in revision.changes if change.operation == operation]
        if names:
            parts.append(f"{word} {join_and_count(names, _MAX_LISTED)}")
    if revision.omitted_changes:
        parts.append(f"{format_count(revision.omitted_changes, 'more change')}")
    return "; ".join(parts) or "-"


def _part_name(change: PartChange) -> str:
    return change.name if change.type == "service" else f"{change.type} {change.name}"


def _details(revision: Revision) -> str:
    commit = commit_text(revision)
    facts = {
        "revision": str(revision.number),
        "command": " ".join((f"platform {revision.command}", *revision.services)),
        "started": f"{local_time(revision.started)}, {revision.seconds:.1f} s",
        "who": revision.who or "-",
        "commit": f"{revision.commit}{commit[_SHORT_HASH_CHARS:]}" if revision.commit else "-",
        "result": str(revision.result),
        **({"rolled back to": str(revision.rolled_back_to)} if revision.rolled_back_to is not None else {}),
        "can roll back to it": "yes" if revision.can_roll_back else "no",
    }
    width = max(map(len, facts)) + 1
    lines = [f"{name + ':':{width}} {value}" for name, value in facts.items()]
    lines += [line for change in revision.changes for line in _change_lines(change)]
    if revision.omitted_changes:
        lines.append(format_count(revision.omitted_changes, "more change"))
    return "".join(f"{printable(line).replace(chr(10), ' ')}\n" for line in lines)


def _change_lines(change: PartChange) -> Iterable[str]:
    yield f"{_DONE[change.operation]} {change.type} {change.name}"
    for image in change.images:
        yield f"  image {image.old or '(none)'} → {image.new or '(none)'}"


def revision_row(revision: Revision) -> dict[str, object]:
    return {
        "revision": revision.number,
        "command": revision.command,
        "services": list(revision.services),
        "result": revision.result,
        "started": revision.started,
        "seconds": revision.seconds,
        "who": revision.who,
        "commit": revision.commit,
        "branch": revision.branch,
        "dirty": revision.dirty,
        "rolled_back_to": revision.rolled_back_to,
        "changes": [
            {
                "part": {"type": change.type, "name": change.name},
                "operation": change.operation,
                "images": [{"old": image.old, "new": image.new} for image in change.images],
            }
            for change in revision.changes
        ],
        "omitted_changes": revision.omitted_changes,
        "can_roll_back": revision.can_roll_back,
    }


@app.command(
    "history",
    guide=Guide(
        {
            "The changes of one deployment, with images": "platform history 3",
            "The commit of the last deployment, for a program": "platform history --json",
        },
        "living.md",
    ),
)
@with_choice()
def history_command(
    choice: Choice,
    revision: Annotated[int | None, typer.Argument(metavar="[REVISION]", min=1, help="Only this one, in full.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the deployments of an environment: who, when, from which commit, and the changes."""
    return run(choice, revision, as_json=as_json)
