"""``platform logs``: the lines of all pods, each with its service and pod.

Owns the format of a line: its prefix, its color, and the control characters that are removed from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import clean_line, wants_color, write_output
from composeplat.cli.environment_view import EnvironmentView, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.omitted_volumes import left_out_lines
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.log_cursor import parse_time
from composeplat.cluster.logs import Follower, LogLine, LogQuery, read_logs
from composeplat.cluster.snapshot import (
    Object,
    Snapshot,
    init_container_statuses,
    run_service_of,
    service_of,
    services_of,
    statuses_of,
)
from composeplat.cluster.status import status_rows
from composeplat.cluster.watching import pods_path
from composeplat.compose.values import BadValue, parse_seconds
from composeplat.diagnostics import Exit, printable
from composeplat.plan.shared_pods import own_init_containers
from composeplat.system.open_files import raise_open_file_limit
from composeplat.system.records import record

app = App()

Note = Callable[[str], None]

_COLORS = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
_ALL = "all"
_POD_SUFFIX_CHARS = 6
"""The length of the end of a pod's name, with its dash."""
_SECONDS_CHARS = len("2025-06-01T12:00:00")
_MAX_TAIL_DIGITS = 18
"""The API refuses larger numbers."""


@record(kw_only=True)
class LogOptions:
    follow: bool = False
    timestamps: bool = False
    prefix: bool = True


def parse_since(text: str) -> LogQuery:
    """Parse a duration, or a time in the form of RFC 3339."""
    time = parse_time(text)
    if time is not None:
        # Not by a format: some systems write the year of an early time with fewer digits.
        return LogQuery(since=f"{datetime.fromtimestamp(time[0], UTC).isoformat()[:_SECONDS_CHARS]}.{time[1]}Z")
    try:
        return LogQuery(since_seconds=max(1, parse_seconds(text)) if text else None)
    except BadValue as error:
        raise BadValue("must be a duration such as 10m, or a time such as 2025-06-01T12:00:00Z") from error


def run(choice: Choice, services: Sequence[str], asked: LogQuery, options: LogOptions) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    printer = Printer(
        names=view.names,
        every=tuple(service.name for service in view.planned.plan.services),
        timestamps=options.timestamps,
        prefix=options.prefix,
        color=wants_color(sys.stdout),
    )
    if options.follow:
        _follow(view, asked, printer)
    else:
        _read(view, asked, printer)
    return Exit.DONE


def _read(view: EnvironmentView, asked: LogQuery, printer: Printer) -> None:
    with Api(view.planned.target.access) as api:
        snapshot = view.take_snapshot(api)
        pods = select_pods(snapshot.pods, view.names)
        has_lines = _print(read_logs(api, view.namespace, pods, asked, progress.note), printer)
    for line in _endings(view, snapshot, has_lines=has_lines):
        progress.conclude(line)


def _follow(view: EnvironmentView, asked: LogQuery, printer: Printer) -> None:
    """Print lines until Ctrl-C, or until nobody reads them."""
    access = view.planned.target.access
    _report_no_pods(view)
    follower = follow_logs(access, view.namespace, view.environment, view.names, asked, progress.note)
    try:
        _print(follower.lines(), printer)
    finally:
        follower.stop()


def _report_no_pods(view: EnvironmentView) -> None:
    """Say why there may be no line for long."""
    with Api(view.planned.target.access) as api:
        if select_pods(api.items(pods_path(view.namespace, view.environment)), view.names):
            return
        for line in _endings(view, view.take_snapshot(api), has_lines=False):
            progress.note(line)
    progress.note("waiting for pods, until Ctrl-C")


def _endings(view: EnvironmentView, snapshot: Snapshot, *, has_lines: bool) -> Iterator[str]:
    """List the messages after the lines: why a job failed, and why there may be no lines."""
    rows = status_rows(view.queries(snapshot.workloads), snapshot, datetime.fromtimestamp(snapshot.time, UTC))
    with_pods = {service for pod in snapshot.pods for service in services_of(pod)}
    if all(row.state == "absent" for row in rows):
        yield _absence(view, snapshot)
        if view.namespace.isdecimal():
            yield f"for 'docker compose logs -n {view.namespace}' type platform logs --tail {view.namespace}"
        return
    for row, service in zip(rows, view.names, strict=True):
        if row.cause is not None and (row.kind == "Job" or not has_lines):
            yield f"{row.service}: {row.problem}" + (f" ({row.hint})" if row.hint else "")
            yield from left_out_lines(view.planned.loaded, row.service, row.cause)
        elif service not in with_pods and (view.is_part or not with_pods):
            yield f"{row.service} has no pods: it is {row.state}"


def _absence(view: EnvironmentView, snapshot: Snapshot) -> str:
    """Say that nothing is deployed, or that pods run whose workload has lost its labels, or is gone without them."""
    kept = {
        service for pod in snapshot.pods if "deletionTimestamp" not in pod["metadata"] for service in services_of(pod)
    }
    names = ", ".join(name for name in view.names if name in kept)
    if names:
        return f"no workload has the labels of {view.environment}, and there are pods of {names}: platform deploy"
    return view.absence_in(snapshot)


def select_pods(pods: Iterable[Object], names: Container[str]) -> list[Object]:
    """List the pods of some services with their containers, and those of `platform run`."""
    return [shown for pod in pods if (shown := _with_containers(pod, names)) is not None]


def follow_logs(
    access: Access, namespace: str, environment: str, names: Container[str], asked: LogQuery, note: Note
) -> Follower:
    """Follow the logs of some services of an environment, by their names in the cluster; each has a connection."""
    raise_open_file_limit()
    return Follower(
        access=access,
        namespace=namespace,
        path=pods_path(namespace, environment),
        select=lambda pods: select_pods(pods, names),
        asked=asked,
        note=note,
    )


def _with_containers(pod: Object, names: Container[str]) -> Object | None:
    """Return a pod with the containers of some services; None without one."""
    run = run_service_of(pod)
    if run or len(services_of(pod)) == 1:
        return pod if (run or service_of(pod)) in names else None
    shown = [name for name in services_of(pod) if name in names]
    statuses = [found for name in shown for found in statuses_of(pod, name)]
    before = {found["name"] for name in shown for found in own_init_containers(pod, name)}
    init = [found for found in init_container_statuses(pod) if found["name"] in before]
    status = {**pod["status"], "containerStatuses": statuses, "initContainerStatuses": init}
    return {**pod, "status": status} if statuses else None


def _print(lines: Iterable[LogLine], printer: Printer) -> bool:
    """Print lines until nobody reads them; return whether there were any."""
    has_lines = False
    for line in lines:
        has_lines = True
        if not write_output(printer.show(line)):
            break
    return has_lines


@dataclass(slots=True, kw_only=True)
class Printer:
    """Formats lines; a long prefix widens those that follow."""

    names: dict[str, str]
    """The services that are shown: cluster name -> name."""
    every: tuple[str, ...]
    """All services: the color of a service does not depend on which others are shown."""
    timestamps: bool = False
    prefix: bool = True
    color: bool = False
    _width: int = 0

    def show(self, line: LogLine) -> str:
        text = clean_line(line.text)
        if self.timestamps:
            text = f"{line.time} {text}"
        return f"{self._prefix(line)}{text}\n"

    def _prefix(self, line: LogLine) -> str:
        if not self.prefix:
            return ""
        name = self.names.get(line.service, line.service)
        source = f"{name}{'-run' if line.is_one_off else ''}-{_end_of(line.pod)}"
        source += f"/{line.container}" if line.container else ""
        usual = max(map(len, self.names.values()), default=0) + _POD_SUFFIX_CHARS
        self._width = max(self._width, usual, len(source))
        prefix = f"{source.ljust(self._width)} |"
        if not self.color:
            return f"{prefix} "
        every = sorted(self.every)
        return f"\x1b[{_COLORS[every.index(name) % len(_COLORS) if name in every else 0]}m{prefix}\x1b[0m "


def _end_of(pod: str) -> str:
    """Return what distinguishes a pod of a service; Kubernetes shortens a long name with the dash before its end."""
    last = pod.rpartition("-")[2]
    return last if len(last) <= _POD_SUFFIX_CHARS else last[1 - _POD_SUFFIX_CHARS :]


@app.command(
    "logs",
    guide=Guide(
        {
            "The last lines of a service, and those to come": "platform logs --follow --tail 20 web",
            "What all services wrote in the last ten minutes": "platform logs --since 10m --timestamps",
        },
        "living.md",
    ),
)
@with_choice(file=opt.FilesByLongName)
def logs_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come.")] = False,
    since: Annotated[
        str, typer.Option("--since", metavar="10m|TIME", help="Only lines since a duration or a time (RFC 3339).")
    ] = "",
    tail: Annotated[str, typer.Option("--tail", metavar="N|all", help="Only the last lines of each pod.")] = _ALL,
    timestamps: Annotated[bool, typer.Option("--timestamps", "-t", help="Print the time of each line.")] = False,
    no_prefix: Annotated[bool, typer.Option("--no-prefix", help="Print no service before a line.")] = False,
) -> int:
    """Print the logs of all pods."""
    try:
        asked = parse_since(since)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from error
    options = LogOptions(follow=follow, timestamps=timestamps, prefix=not no_prefix)
    return run(choice, tuple(services or ()), replace(asked, tail=_parse_tail(tail)), options)


def _parse_tail(text: str) -> int | None:
    """Parse a number of lines; none is all of them."""
    if text == _ALL:
        return None
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"must be a number of lines, or {_ALL}, not '{printable(text)}'", param_hint="--tail")
    return int(text) if len(text) <= _MAX_TAIL_DIGITS else None
