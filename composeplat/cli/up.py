"""``platform up``: develop a service inside the cluster, with the files and the terminal of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App, parsed, utf8_text, utf8_texts
from composeplat.cli.compose_commands import UNDEVELOPED
from composeplat.cli.console import is_terminal, raw_terminal, show_report, write_message
from composeplat.cli.deploy import deploy
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.operations import Planned, plan_for, report_publications, stack_for
from composeplat.cli.questions import ask_number
from composeplat.cli.selection import READING, WORKING, Choice, with_choice
from composeplat.cli.service_image import own_command
from composeplat.cli.session_events import SessionReporter
from composeplat.compose.load.outside_paths import check_synced_inside
from composeplat.compose.model import HOST, Service
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.values import parse_volume_size, show_size
from composeplat.dev.helper import check_helper_image
from composeplat.dev.link import Session
from composeplat.dev.session import Development, UpOptions
from composeplat.dev.sync_paths import find_link, sync_paths
from composeplat.diagnostics import ComposeplatError, Exit, Report, printable, quoted
from composeplat.engine.operations.refresh import refresh_replicas
from composeplat.engine.outcomes import DeployOptions
from composeplat.plan.desired import ServicePlan
from composeplat.publication import sync_publication
from composeplat.system.records import record

app = App()


@record(kw_only=True)
class UpArguments:
    service: str = ""
    command: tuple[str, ...] = ()
    deploy: bool = False
    forwards: tuple[tuple[int, int], ...] = ()
    reverse: tuple[tuple[int, int], ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    helper: str = ""
    size: str = "5Gi"
    take_over: bool = False
    down_on_exit: bool = False


def run(choice: Choice, options: UpArguments) -> int:
    planned = plan_for(choice, start=True)
    if planned is None:
        return int(Exit.INVALID)
    service = _choose(planned, options.service, "up")
    stack_for(planned).check_project("up")
    if _is_outside(planned, service, choice):
        return int(Exit.INVALID)
    development = development_for(planned, service)
    if not development.paths:
        return _without_paths(planned, service, choice)
    if not options.helper:
        check_helper_image(planned.target, planned.loaded.settings.registry, planned.environment.get("PATH"))
    if _is_linked(planned, development, service, choice):
        return int(Exit.INVALID)
    _report_synced(planned, development, service)
    if options.deploy or not development.is_deployed():
        deployed = deploy(planned, choice, DeployOptions(timeout=choice.timeout), as_json=False)
        if deployed is not Exit.DONE:
            return int(deployed)
    return _develop(planned, development, service, choice, options)


def _develop(planned: Planned, development: Development, service: Service, choice: Choice, options: UpArguments) -> int:
    """Run a session from its beginning to its end, and give the deployed service back if that is wanted."""
    session = Session(
        command=options.command or own_command(service, development.image, planned),
        environment=options.variables,
        terminal=is_terminal(sys.stdin) and is_terminal(sys.stdout),
        forwards=tuple(dict.fromkeys((*_mapped(service), *options.forwards))),
        reverse=tuple(dict.fromkeys(options.reverse)),
    )
    up_options = UpOptions(
        session=session,
        helper=options.helper,
        registry=planned.loaded.settings.registry,
        size=options.size,
        timeout=choice.timeout,
        take_over=options.take_over,
    )
    try:
        with ended_by_signals(), raw_terminal() if session.terminal else nullcontext():
            status = development.up(up_options, SessionReporter(development.paths).emit)
    finally:
        # Also after a failure or a Ctrl-C while the container starts: the deployed pods are gone by then.
        if options.down_on_exit and not development.is_held_by_another():
            end_development(development, planned, volumes=False, note=progress.note)
        elif not options.down_on_exit and development.is_left():
            progress.note(f"{service.name} is still under development; 'platform down {service.name}' ends that")
    return status


def _report_synced(planned: Planned, development: Development, service: Service) -> None:
    folders = [path.local for path in development.paths]
    sent = sync_publication(planned.loaded, service, planned.plan.namespace, folders, context=planned.context)
    report_publications(planned, [sent])


def _project_folders(planned: Planned) -> tuple[str, str]:
    return planned.loaded.root.path, str(planned.loaded.folder)


def development_for(planned: Planned, service: Service) -> Development:
    return Development(
        plan=planned.plan,
        service=_plan_of(planned, service.name),
        paths=sync_paths(service, _project_folders(planned)),
        target=planned.target,
        environment=planned.environment,
        note=progress.note,
    )


def end_development(development: Development, planned: Planned, *, volumes: bool, note: Callable[[str], None]) -> bool:
    there = development.down(volumes=volumes)
    if there:
        refresh_replicas(stack_for(planned), development.service.workload_name)
        name = development.service.name
        note(
            f"{name} sleeps, as before: platform wake"
            if development.is_asleep()
            else f"{name} runs as it was deployed again"
        )
    return there


def _plan_of(planned: Planned, name: str) -> ServicePlan:
    return next(service for service in planned.plan.services if service.name == name)


def _choose(planned: Planned, name: str, command: str) -> Service:
    """Choose the named service, else the only one with host volumes, else ask the user."""
    services = planned.loaded.project.services
    if name:
        planned.plan.select_services((name,))
        return services[name]
    fit = [service for service in services.values() if sync_paths(service, _project_folders(planned))]
    if len(fit) == 1:
        return fit[0]
    names = ", ".join(service.name for service in fit)
    if not fit:
        raise ComposeplatError("no service has a host volume, whose files could be developed", UNDEVELOPED[command])
    if not is_terminal(sys.stdin):
        raise ComposeplatError(
            f"several services can be developed: {names}", f"name one of them: platform {command} SERVICE"
        )
    for number, service in enumerate(fit, start=1):
        write_message(f"  {number}  {service.name}\n")
    return fit[ask_number("Which one", len(fit)) - 1]


def _without_paths(planned: Planned, service: Service, choice: Choice) -> int:
    report = Report()
    path = ("services", service.name)
    message = f"services.{service.name} has no host volume, so there is nothing to develop it with"
    report.add("no-sync-path", planned.loaded.origins.key_at(*path), path, message, UNDEVELOPED["up"])
    show_report(report, as_json=choice.json_diagnostics)
    return int(Exit.FAILED)


def _is_outside(planned: Planned, service: Service, choice: Choice) -> bool:
    """Show the synced host paths that are outside the project. A deploy does not check those of a built service."""
    report, loaded = Report(), planned.loaded
    check_synced_inside(loaded.project, service, loaded.origins, report, loaded.root)
    return show_report(report, as_json=choice.json_diagnostics)


def _is_linked(planned: Planned, development: Development, service: Service, choice: Choice) -> bool:
    """Show the host paths that contain a link of the project: a container may have created the link."""
    report, loaded = Report(), planned.loaded
    checker = Checker(loaded.project, loaded.origins, report)
    linked = {path.local: link for path in development.paths if (link := find_link(path))}
    for index, mount in enumerate(service.mounts):
        if mount.kind == HOST and mount.source in linked:
            place = mount_path(service.name, index)
            shown = loaded.origins.shown(*place, "source")
            link = quoted(os.path.relpath(linked[mount.source], loaded.folder))
            message = f"mounts a host path that is a link, or lies behind one, which 'up' does not follow: {shown}"
            checker.add("forbidden-path", place, message, f"mount what the link {link} leads to by its own path")
    return show_report(report, as_json=choice.json_diagnostics)


def _mapped(service: Service) -> list[tuple[int, int]]:
    return [
        (port.published, port.target) for port in service.ports if port.published is not None and port.protocol == "tcp"
    ]


_HIGHEST_PORT = 65535


def read_ports(text: str, option: str) -> tuple[int, int]:
    """``8080:80``, or ``8080`` for both."""
    first, colon, second = text.partition(":")
    numbers = [int(part) if part.isascii() and part.isdigit() else 0 for part in (first, second if colon else first)]
    if not all(0 < number <= _HIGHEST_PORT for number in numbers):
        message = f"must be ports such as 8080 or 8080:80, not '{printable(text)}'"
        raise typer.BadParameter(message, param_hint=option)
    return numbers[0], numbers[1]


def _read_size(text: str) -> str:
    """Read a size as those of volumes in the file are read: for Kubernetes, ``512m`` is half a byte."""
    return show_size(parsed(parse_volume_size, text, "--volume-size"))


def _variables(assignments: Iterable[str]) -> dict[str, str]:
    made = {"TERM": os.environ["TERM"]} if os.environ.get("TERM") else {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not name:
            raise typer.BadParameter(f"must be NAME=VALUE, not '{printable(text)}'", param_hint="--env")
        if equals or name in os.environ:
            made[name] = utf8_text(value if equals else os.environ[name], "--env", variable=name)
    return made


def down(choice: Choice, name: str, *, volumes: bool) -> Exit:
    planned = plan_for(choice, looking=True)
    if planned is None:
        return Exit.INVALID
    service = _choose(planned, name, "down")
    stack_for(planned).check_project("down")
    development = development_for(planned, service)
    if not end_development(development, planned, volumes=volumes, note=progress.note):
        progress.conclude(f"{service.name} is not under development; platform destroy deletes the environment")
    return Exit.DONE


def _split_at_dashes(service: str, command: list[str]) -> tuple[str, tuple[str, ...]]:
    """Find the command after ``--`` also if no service is before it: the parser drops the dashes."""
    args = [service, *command]
    if "--" in sys.argv and sys.argv[sys.argv.index("--") + 1 :] == args:
        return "", tuple(args)
    return service, tuple(command)


@app.command(
    "up",
    guide=Guide(
        {
            "Sync files, forward ports, run a shell or the service's command": "platform up web",
            "Another command, then the deployed service again": "platform up web --down-on-exit -- npm run dev",
            "Forward a debugger's port too": "platform up api --forward 5678",
        },
        "developing.md",
    ),
)
@with_choice("domain", "registry", "allow_providers", "builder", "timeout", *READING, *WORKING)
def up_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service to develop.")] = "",
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]...", help="Command to run; default: the service's own, else a shell."),
    ] = None,
    deploy_first: Annotated[
        bool, typer.Option("--deploy", help="Deploy first, even if the environment is deployed.")
    ] = False,
    forward: Annotated[
        list[str] | None,
        typer.Option("--forward", metavar="[HERE:]PORT", help="Forward a local port to the container; may repeat."),
    ] = None,
    reverse: Annotated[
        list[str] | None,
        typer.Option(
            "--reverse", metavar="[THERE:]PORT", help="Forward a port of the container to this machine; may repeat."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="Set a variable of the session; may repeat."),
    ] = None,
    helper_image: Annotated[
        str,
        typer.Option("--helper-image", metavar="IMAGE", help="Image with the agent; default: one that is built."),
    ] = "",
    volume_size: Annotated[str, typer.Option("--volume-size", metavar="SIZE", help="Size of the sync volume.")] = "5Gi",
    take_over: Annotated[bool, typer.Option("--take-over", help="End another 'platform up' of this service.")] = False,
    down_on_exit: Annotated[
        bool, typer.Option("--down-on-exit", help="Run the deployed service again when the session ends.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Deploy, then follow the rules of develop.watch, as platform watch.")
    ] = False,
) -> int:
    """Develop a service inside the cluster: sync its files, forward its ports, attach to its terminal."""
    if watch:
        if any((forward, reverse, env, helper_image, take_over, down_on_exit)) or "--" in sys.argv:
            raise typer.BadParameter("takes services, and no options of a session", param_hint="--watch")
        from composeplat.cli.watch import run as run_watch

        services = tuple(filter(None, (service, *(command or ()))))
        return run_watch(replace(choice, named_services=services), services, deploy_first=True)
    service, args = _split_at_dashes(service, command or [])
    choice = replace(choice, named_services=(service,) if service else ())
    args = utf8_texts(args, "COMMAND")
    options = UpArguments(
        service=service,
        command=args,
        deploy=deploy_first,
        forwards=tuple(read_ports(text, "--forward") for text in forward or ()),
        reverse=tuple(read_ports(text, "--reverse") for text in reverse or ()),
        variables=_variables(env or ()),
        helper=helper_image,
        size=_read_size(volume_size),
        take_over=take_over,
        down_on_exit=down_on_exit,
    )
    return run(choice, options)


@app.command(
    "down",
    guide=Guide(
        {
            "Run the deployed service again, and keep the sync volume": "platform down web",
            "Delete that too": "platform down web --volumes",
        },
        "developing.md",
    ),
)
@with_choice(*WORKING)
def down_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service under development.")] = "",
    volumes: Annotated[bool, typer.Option("--volumes", help="Delete the sync volume too.")] = False,
) -> int:
    """End the development of a service, and run the deployed one again."""
    return down(choice, service, volumes=volumes)
