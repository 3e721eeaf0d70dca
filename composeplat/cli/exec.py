"""``platform exec``: run a command in the container of a service."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App, utf8_texts, without_dashes
from composeplat.cli.console import is_terminal
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.operations import Planned, plan_for, stack_for
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.cluster.unreachable_nodes import find_unreachable_node
from composeplat.cluster.watching import pods_path
from composeplat.dev.container_commands import Command, choose_pod, run_until_interrupted
from composeplat.diagnostics import ComposeplatError, Exit

app = App()


def run(choice: Choice, service: str, args: tuple[str, ...], *, no_terminal: bool) -> int:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return int(Exit.INVALID)
    container = find_container(planned, service, f"exec --name {planned.plan.environment} {service} …")
    terminal = not no_terminal and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    command = replace(container, args=args, terminal=terminal)
    with ended_by_signals():
        return run_until_interrupted(command, planned.target, os.environ)


def find_container(planned: Planned, service: str, usage: str) -> Command:
    """Find the container of a service in the cluster; the command has no arguments yet.

    ``usage`` is what to type to reach an environment of another project.
    """
    plan = planned.plan
    plan.select_services((service,))
    notice = stack_for(planned).notice_of_other_project()
    if notice:
        raise ComposeplatError(notice, f"to do it anyway: platform {usage}")
    found = next(found for found in plan.services if found.name == service)
    with Api(planned.target.access) as api:
        pods = api.items(pods_path(plan.namespace, plan.environment))
    pod = choose_pod(pods, found.cluster_name)
    if not pod:
        raise ComposeplatError(f"no pod of service '{service}' runs", "platform status says why")
    if node := find_unreachable_node(item for item in pods if item["metadata"]["name"] == pod):
        progress.note(f"{pod} is on node '{node}', which does not report: this may wait for long")
    return Command(namespace=plan.namespace, pod=pod, container=found.cluster_name, args=(), terminal=False)


def _given_command(command: list[str]) -> tuple[str, ...]:
    args = utf8_texts(without_dashes(command), "COMMAND")
    if not args:
        raise typer.BadParameter("names no command", param_hint="--")
    return args


@app.command(
    "exec",
    guide=Guide(
        {
            "A shell in a container": "platform exec web sh",
            "A client of a database, options before the service": "platform exec -n team-a db psql -U postgres",
        },
        "living.md",
    ),
    context_settings={"allow_interspersed_args": False},
)
@with_choice()
def exec_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service.")],
    command: Annotated[list[str], typer.Argument(metavar="[--] COMMAND...", help="Command to run in its container.")],
    no_terminal: Annotated[
        bool, typer.Option("--no-tty", "-T", help="Don't attach the terminal: plain streams.")
    ] = False,
    _interactive: opt.Interactive = False,
) -> int:
    """Run a command in the container of a service, and exit with its status."""
    return run(choice, service, _given_command(command), no_terminal=no_terminal)
