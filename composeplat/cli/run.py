"""``platform run``: run a command in a one-off pod of a service."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App, parsed, utf8_text, utf8_texts, without_dashes
from composeplat.cli.console import is_terminal, write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.operations import Planned, plan_for, stack_for
from composeplat.cli.run_job import run_job
from composeplat.cli.selection import Choice, with_choice
from composeplat.cli.service_image import Process, read_entrypoint, read_process, read_user
from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object, container_of
from composeplat.compose.model import User
from composeplat.compose.values import parse_user, split_command, split_pair
from composeplat.dev import container_commands
from composeplat.dev.container_commands import Command
from composeplat.dev.run_job import RunJob
from composeplat.dev.run_pod import RunOptions, choose_args, needs_image
from composeplat.dev.run_pods import RunPods
from composeplat.diagnostics import ComposeplatError, Exit, printable
from composeplat.engine.dev_workloads import as_deployed
from composeplat.engine.preflight import Key
from composeplat.engine.scaling import read_workloads, remembered_replicas
from composeplat.names import is_env_name
from composeplat.plan.desired import ServicePlan
from composeplat.plan.templates import pod_template
from composeplat.system.deadline import Deadline

app = App()


def run(choice: Choice, service: str, options: RunOptions, *, no_deps: bool, no_terminal: bool) -> int:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return int(Exit.INVALID)
    plan = planned.plan
    plan.select_services((service,))
    stack_for(planned).check_project("run")
    with Api(planned.target.access) as api:
        workloads = read_workloads(api, plan)
        found = as_deployed(next(entry for entry in plan.services if entry.name == service), workloads)
        pods = RunPods(
            api=api,
            namespace=plan.namespace,
            environment=plan.environment,
            service=found,
            aliases=plan.aliases_of(service),
        )
        workload = pods.workload()
        if not no_deps:
            _check_dependencies(planned, found, workloads)
        pods.delete_ended()
        if workload["kind"] == "CronJob" and options.is_as_scheduled:
            _check_trigger(planned, service)
            run_of_schedule = RunJob(api=api, plan=plan, service=found)
            return run_job(run_of_schedule, workload, detached=options.detached, timeout=choice.timeout)
        container = container_of(pod_template(workload)["spec"], found.cluster_name)
        options = replace(options, user=read_user(options.user, container["image"], planned))
        args = _args(container, options, planned, found)
        if options.detached:
            return _detach(pods, workload, options, args)
        with ended_by_signals(), pods.running(workload, options, args, Deadline(choice.timeout)) as pod:
            command = _command(pod, found, args, planned, no_terminal=no_terminal)
            if command.terminal or options.kept:
                return container_commands.run_until_interrupted(command, planned.target, os.environ)
            return container_commands.run_interruptible(
                command, planned.target, os.environ, lambda: pods.interrupt(pod)
            )


def _detach(pods: RunPods, workload: Object, options: RunOptions, args: list[str]) -> int:
    name = pods.create(workload, options, args)["metadata"]["name"]
    write_output(f"{name}\n")
    progress.conclude(f"its log: platform logs --follow {pods.service.name}")
    return int(Exit.DONE)


def _command(pod: str, service: ServicePlan, args: list[str], planned: Planned, *, no_terminal: bool) -> Command:
    terminal = not no_terminal and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    return Command(
        namespace=planned.plan.namespace,
        pod=pod,
        container=service.cluster_name,
        args=tuple(args),
        terminal=terminal,
    )


def _check_trigger(planned: Planned, service: str) -> None:
    schedule = planned.loaded.project.services[service].scheduling.schedule
    if schedule is not None and not schedule.is_manual:
        raise ComposeplatError(f"job '{service}' starts on its schedule alone", "its triggers have manual: false")


def _check_dependencies(planned: Planned, service: ServicePlan, workloads: Mapping[Key, Object]) -> None:
    """Refuse to run beside dependencies that sleep or were never deployed: the command would wait for nobody."""
    plan = planned.plan
    needed = {edge.dependency for edge in plan.edges if edge.service == service.name and edge.required}
    for other in (entry for entry in plan.services if entry.name in needed):
        live = workloads.get(as_deployed(other, workloads).workload)
        if live is None:
            raise ComposeplatError(f"'{other.name}' is not deployed, and '{service.name}' depends on it", "--no-deps")
        if remembered_replicas(live) is not None:
            message = f"'{other.name}' sleeps, and '{service.name}' depends on it"
            raise ComposeplatError(message, "platform wake, or run it with --no-deps")


def _args(container: Object, options: RunOptions, planned: Planned, service: ServicePlan) -> list[str]:
    args = choose_args(container, options, _image_process(container, options, planned, service))
    if not args:
        raise ComposeplatError(f"service '{service.name}' has no command", f"platform run {service.name} COMMAND")
    return args


def _image_process(container: Object, options: RunOptions, planned: Planned, service: ServicePlan) -> Process:
    """Read the entrypoint of the image, and its own command unless there is another; nothing if neither is needed."""
    if not needs_image(container, options):
        return ((), ())
    if options.command:
        return (read_entrypoint(container["image"], planned), ())
    process = read_process(container["image"], planned)
    if process is None:
        message = f"the command of image '{container['image']}' can't be read from its registry"
        raise ComposeplatError(message, f"name a command: platform run {service.name} COMMAND")
    return process


def _environment(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, value = split_pair(pair)
        if not is_env_name(name):
            raise typer.BadParameter(f"must be NAME=value, not '{printable(name)}'", param_hint="--env")
        value = os.environ.get(name) if value is None else value
        if value is not None:
            found[name] = utf8_text(value, "--env", variable=name)
    return found


def _entrypoint(text: str) -> tuple[str, ...]:
    return parsed(split_command, utf8_text(text, "--entrypoint"), "--entrypoint")


def _user(text: str) -> User:
    return User.of(parsed(parse_user, text, "--user")) if text else User()


@app.command(
    "run",
    guide=Guide(
        {
            "A migration, with the settings of the service": "platform run web ./manage.py migrate",
            "A shell with another variable, as root": "platform run -e DEBUG=1 -u 0 web sh",
            "A dump into a file here": "platform run -T db pg_dump -h db shop > shop.sql",
        },
        "living.md",
    ),
    context_settings={"allow_interspersed_args": False},
)
@with_choice("timeout")
def run_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service, which must be deployed.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="Command to run; else the service's own.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="Set a variable; NAME alone takes it from here."),
    ] = None,
    entrypoint: Annotated[
        str | None, typer.Option("--entrypoint", metavar="COMMAND", help="Use another entrypoint.")
    ] = None,
    working_dir: Annotated[str, typer.Option("--workdir", "-w", metavar="DIR", help="Run in another folder.")] = "",
    user: Annotated[
        str, typer.Option("--user", "-u", metavar="USER[:GROUP]", help="Run as another user, by number or name.")
    ] = "",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the pod's name, and don't wait.")] = False,
    no_terminal: Annotated[
        bool, typer.Option("--no-tty", "-T", help="Don't attach the terminal: plain streams.")
    ] = False,
    _interactive: opt.Interactive = False,
    no_deps: Annotated[bool, typer.Option("--no-deps", help="Run even if services that it depends on sleep.")] = False,
    rm: Annotated[
        bool, typer.Option("--rm/--keep", help="Delete the pod when the command ends, or keep it for a day.")
    ] = True,
) -> int:
    """Run a command in a pod of its own, with the settings of a service, and exit with its status."""
    options = RunOptions(
        command=utf8_texts(without_dashes(command or []), "COMMAND"),
        entrypoint=None if entrypoint is None else _entrypoint(entrypoint),
        environment=_environment(env or []),
        working_dir=utf8_text(working_dir, "--workdir"),
        user=_user(user),
        detached=detach,
        kept=detach or not rm,
    )
    return run(choice, service, options, no_deps=no_deps, no_terminal=no_terminal)
