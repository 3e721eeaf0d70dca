"""``platform destroy``: take an environment down, and say what stays."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import is_terminal
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document, plan_for, show_document, show_refusal, stack_for
from composeplat.cli.questions import end_of_input_refuses
from composeplat.cli.selection import WORKING, Choice, with_choice
from composeplat.diagnostics import ComposeplatError, Exit, format_count
from composeplat.engine.operations import destroy as operation
from composeplat.engine.outcomes import Refused

app = App()


def run(choice: Choice, *, volumes: bool, yes: bool, wait: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    plan = planned.plan
    where = planned.where
    stack = stack_for(planned)
    if volumes and not yes:
        _require_terminal(where)
        _confirm(plan.environment, where, operation.find_volumes(stack, plan))
    with progress.work(f"taking {where} down"):
        try:
            outcome = operation.destroy(stack, plan, volumes=volumes, wait=wait)
        except Refused as refused:
            return show_refusal(refused, as_json=choice.json_diagnostics)
    deleted = len([c for c in outcome.changes if not c.kept and c.kind != "Image"]) + len(outcome.removed)
    seconds = round(outcome.seconds, 1)
    volumes_of_it = {"kept_volumes": outcome.kept, "deleted_volumes": outcome.deleted_volumes}
    data = document("destroy", plan.environment, plan.namespace, **volumes_of_it, deleted=deleted, seconds=seconds)
    show_document(data, as_json=as_json)
    if deleted:
        progress.conclude(f"destroyed {where}: {format_count(deleted, 'object')} deleted, {outcome.seconds:.1f} s")
    else:
        progress.conclude(f"there is nothing of {where} to delete")
    for name in outcome.deleted_volumes:
        progress.conclude(f"volume {name} and its data are deleted")
    for name in outcome.kept:
        use = "no service of the file uses it" if name in outcome.unused else "the next deploy uses them"
        progress.conclude(f"volume {name} and its data stay; {use}, --volumes deletes them")
    return Exit.DONE


def _require_terminal(where: str) -> None:
    if not is_terminal(sys.stdin):
        raise ComposeplatError(
            f"--volumes deletes all data of {where}, and there is no terminal to confirm that on", "give --yes too"
        )


def _confirm(name: str, where: str, volumes: list[str]) -> None:
    """To delete data takes the environment's name, typed, or ``--yes``."""
    typer.echo(f"This deletes all data of {where}:", err=True)
    for volume in volumes:
        typer.echo(f"  volume {volume}", err=True)
    with end_of_input_refuses("nothing was changed"):
        typed = typer.prompt("Type the environment's name to continue", err=True)
    if typed.strip() != name:
        raise ComposeplatError("that is not the environment's name: nothing was changed")


@app.command(
    "destroy",
    guide=Guide(
        {
            "Delete it, and keep the volumes": "platform destroy",
            "Delete the data too, without being asked": "platform destroy --volumes --yes",
        },
        "deploying.md",
    ),
)
@with_choice("allow_providers", *WORKING)
def destroy_command(
    choice: Choice,
    volumes: Annotated[bool, typer.Option("--volumes", help="Delete volumes too, with all their data.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting data.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all pods have ended.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Delete an environment. Volumes and their data stay unless --volumes is given."""
    return run(choice, volumes=volumes, yes=yes, wait=wait, as_json=as_json)
