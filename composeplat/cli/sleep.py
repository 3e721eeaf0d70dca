"""``platform sleep`` and ``platform wake``: scale an environment to zero, and back to its replicas."""

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
from composeplat.engine.operations import sleep as operation
from composeplat.engine.outcomes import Outcome

app = App()


def sleep(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    with progress.work(f"putting {planned.where} to sleep"):
        outcome = operation.sleep(stack_for(planned), planned.plan, wait=wait, timeout=timeout)
    show_services("sleep", planned, outcome, choice, as_json=as_json)
    progress.conclude(_summary(outcome, planned.where, "sleeps", "there was nothing to put to sleep in"))
    return Exit.DONE


def wake(choice: Choice, *, wait: bool, timeout: float, as_json: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    in_order = planned.loaded.settings.wake_in_order
    with progress.work(f"waking {planned.where}"):
        outcome = operation.wake(stack_for(planned), planned.plan, in_order=in_order, wait=wait, timeout=timeout)
    show_services("wake", planned, outcome, choice, as_json=as_json)
    if outcome.failures:
        progress.conclude(failure_summary(outcome))
        return Exit.FAILED
    progress.conclude(_summary(outcome, planned.where, "is awake", "nothing was asleep in"))
    return Exit.DONE


def _summary(outcome: Outcome, where: str, verb: str, nothing: str) -> str:
    if not outcome.services:
        return f"{nothing} {where}"
    return f"{where} {verb}: {printable(', '.join(outcome.services))}, {outcome.seconds:.1f} s"


@app.command(
    "sleep", guide=Guide({"Overnight, in a namespace of the team": "platform sleep --namespace team-a"}, "commands.md")
)
@with_choice("timeout", *WORKING)
def sleep_command(
    choice: Choice,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all pods have ended.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Scale an environment to zero, and remember its replicas."""
    return sleep(choice, wait=wait, timeout=choice.timeout, as_json=as_json)


@app.command("wake", guide=Guide({"In the morning": "platform wake --namespace team-a --timeout 600"}, "commands.md"))
@with_choice("timeout", *WORKING)
def wake_command(
    choice: Choice,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Wake a sleeping environment."""
    return wake(choice, wait=wait, timeout=choice.timeout, as_json=as_json)
