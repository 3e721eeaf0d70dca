"""``platform restart``: new pods for services, with the same settings."""

from __future__ import annotations

from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import failure_summary, plan_for, show_services, stack_for
from composeplat.cli.selection import WORKING, Choice, with_choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.operations import restart as operation

app = App()


def run(choice: Choice, services: tuple[str, ...], *, wait: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    planned.plan.select_services(services)
    with progress.work(f"restarting {planned.where}"):
        outcome = operation.restart(stack_for(planned), planned.plan, services, wait=wait, timeout=choice.timeout)
    show_services("restart", planned, outcome, choice, as_json=as_json)
    if outcome.failures:
        progress.conclude(failure_summary(outcome))
        return Exit.FAILED
    listed = printable(", ".join(outcome.services))
    done = f"restarted {listed}, {outcome.seconds:.1f} s" if listed else f"nothing to restart in {planned.where}"
    progress.conclude(done)
    return Exit.DONE


@app.command(
    "restart",
    guide=Guide(
        {
            "After a change of a secret outside the Compose file": "platform restart web worker",
            "Everything, dependencies first": "platform restart --timeout 600",
        },
        "commands.md",
    ),
)
@with_choice("timeout", *WORKING)
def restart_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Restart services: replace their pods, dependencies first."""
    return run(choice, tuple(services or ()), wait=wait, as_json=as_json)
