"""``platform status``: the status of each service, for people and programs."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import clean_line, is_terminal, place_row, wants_color, write_json, write_output
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.omitted_volumes import left_out_line, left_out_rows
from composeplat.cli.operations import cut, document
from composeplat.cli.schedules import schedule_fields, schedule_line
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.cause import Cause
from composeplat.cluster.endpoints import Address
from composeplat.cluster.live_lists import Lists, LiveLists
from composeplat.cluster.logs import UNAVAILABLE
from composeplat.cluster.probes import read_last_lines
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.status import ServiceQuery, StatusRow, age, short_image, status_rows
from composeplat.dev.lease import describe_holder, lease_holder
from composeplat.diagnostics import Exit, printable
from composeplat.system.signals import handle_signals

app = App()

#: Ages are shown in seconds.
_REDRAW_INTERVAL_S = 1.0
#: A request that fails can take many seconds, in which the rows are not read.
_ADDRESSES_RETRY_S = 15.0
#: Of a failing container, this many last lines are shown; 'platform logs' shows all.
_MAX_LOG_LINES = 5
_COLORS = {
    **dict.fromkeys(("ready", "scheduled", "completed"), "32"),
    **dict.fromkeys(("starting", "started"), "33"),
    "failing": "31",
    "in-development": "36",
}
#: The columns that a narrow terminal leaves out, in this order.
_SPARE = ("IMAGE", "KIND", "AGE", "RESTARTS")
#: Earlier lines, which a person may scroll back to, stay.
_CLEAR = "\x1b[H\x1b[2J"


def run(choice: Choice, services: Sequence[str], *, watch: bool, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        reader = StatusReader(view, api)
        rows = reader.read()
        if as_json:
            write_json(status_document(view.environment, view.namespace, rows))
            return Exit.DONE
        clear = _CLEAR if watch and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb" else ""
        try:
            with _resumptions() as resumed:
                if write_output(clear + _screen(view, rows, reader)) and watch:
                    rows = _redraw(view, rows, reader, clear, resumed)
        finally:
            reader.stop()
    if reader.others and not services:
        _note_others(reader.others, view.planned.plan.inactive)
    elif all(row.state == "absent" for row in rows):
        view.report_absent()
    return Exit.DONE


def _note_others(others: Sequence[str], inactive: Collection[str]) -> None:
    left = [name for name in others if name not in inactive]
    off = [name for name in others if name in inactive]
    for reason, names in (("that are not in the file", left), ("whose profile is off", off)):
        if names:
            progress.note(f"deployed services {reason}: {', '.join(names)}")


def _redraw(
    view: EnvironmentView, rows: list[StatusRow], reader: StatusReader, clear: str, resumed: Sequence[int]
) -> list[StatusRow]:
    """Write the status after each change until nobody reads, or until Ctrl-C; return the last rows.

    On a screen the ages grow; elsewhere, as in a pipe, an age alone is no change.
    """
    compared_at = None if clear else reader.now
    is_read, before, seen_before = True, _screen(view, rows, reader, compared_at), 0
    while is_read:
        time.sleep(_REDRAW_INTERVAL_S)
        rows = reader.read_again(rows)
        # After Ctrl-Z and fg, the lines of the shell are on the screen.
        compared, seen = _screen(view, rows, reader, compared_at), len(resumed)
        is_old = compared != before or (clear and seen != seen_before)
        is_read = not is_old or write_output(clear + _screen(view, rows, reader))
        before, seen_before = compared, seen
    return rows


@contextmanager
def _resumptions() -> Iterator[list[int]]:
    """Collect the signals that continue this process after a stop."""
    found: list[int] = []
    with handle_signals({signal.SIGCONT: lambda number, _: found.append(number)}):
        yield found


def _screen(view: EnvironmentView, rows: list[StatusRow], reader: StatusReader, now: datetime | None = None) -> str:
    """The status with the ages by the time of the cluster, or by another one."""
    width, color = terminal_width(), wants_color(sys.stdout)
    screen = status_screen(
        view.environment, view.namespace, rows, now or reader.now, urls=reader.urls, width=width, color=color
    )
    # The note of it is cleared from the screen with the rows before.
    return f"{screen}\n{_one_line(reader.problem)}; trying again\n" if reader.problem else screen


class StatusReader:
    """Reads the status of the services of an environment."""

    def __init__(self, view: EnvironmentView, api: Api) -> None:
        self._view, self._api = view, api
        self._watcher = view.watcher
        self._reasons = Reasons(api, view.namespace)
        self.urls: tuple[str, ...] = ()
        """All addresses, in the order of a deploy."""
        self._addresses: list[Address] = []
        self._may_read_addresses = True
        self._lists: LiveLists | None = None
        """The objects with the addresses; None until they are read again."""
        self._addresses_problem = ""
        self._addresses_due_at = 0.0
        """When they are read again after a failure, and until then the problem holds."""
        self._snapshot: Snapshot | None = None
        self._problem = ""

    def read(self) -> list[StatusRow]:
        """Read once."""
        self._addresses = self._read_addresses(self._api)
        return self._rows(self._watcher.take_snapshot(self._api))

    def read_again(self, before: list[StatusRow]) -> list[StatusRow]:
        """Return the rows by the latest events; while the cluster does not answer, the rows before."""
        snapshot, problem = self._watcher.latest, self._watcher.unreachable
        if problem or snapshot is None:
            self._note_problem(problem)
            return before
        self._note_problem(self._update_addresses())
        try:
            return self._rows(snapshot)
        except ApiError as error:
            if error.status:
                raise
            return before

    def _note_problem(self, problem: str) -> None:
        if problem and problem != self._problem:
            progress.note(f"{problem}; trying again")
        self._problem = problem

    def _update_addresses(self) -> str:
        """Read the addresses if they may have changed; return why they may be old."""
        if time.monotonic() < self._addresses_due_at:
            return self._addresses_problem
        if self._lists is None:
            self._lists = LiveLists(self._api)
        try:
            self._addresses = self._lists.update(self._read_addresses, self._addresses)
        except ApiError as error:
            if error.status not in UNAVAILABLE:
                raise
            self._addresses_due_at = time.monotonic() + _ADDRESSES_RETRY_S
            self._addresses_problem = f"the addresses may be old: {error}"
            return self._addresses_problem
        return ""

    @property
    def others(self) -> list[str]:
        """The services that were there the last time, and that the definition does not have, as after a rollback."""
        return self._view.others(self._snapshot) if self._snapshot else []

    def stop(self) -> None:
        self._watcher.stop()
        if self._lists is not None:
            self._lists.stop()

    def _read_addresses(self, lists: Lists) -> list[Address]:
        """Read the addresses; without the permission there are none, and a note the first time."""
        if not self._may_read_addresses:
            return []
        try:
            return self._view.addresses(self._api, lists)
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            self._may_read_addresses = False
            progress.note(f"addresses are not shown: {error}")
            return []

    def _rows(self, snapshot: Snapshot) -> list[StatusRow]:
        self._snapshot = snapshot
        self.urls = tuple(dict.fromkeys(address.url for address in self._addresses))
        queries = self._view.queries(snapshot.workloads, self._addresses)
        rows = status_rows(queries, snapshot, self.now)
        return [
            replace(_with_reason(row, self._view, self._reasons), developer=_developer(query, snapshot))
            for row, query in zip(rows, queries, strict=True)
        ]

    @property
    def now(self) -> datetime:
        """The time by the clock of the cluster."""
        return self._watcher.now

    @property
    def latest(self) -> Snapshot | None:
        """The latest snapshot, which is another object when something has changed."""
        return self._watcher.latest

    @property
    def problem(self) -> str:
        """Why the rows are old; empty if they are not."""
        return self._problem


@dataclass(slots=True)
class Reasons:
    """The last lines of failing containers, read once for each cause."""

    api: Api
    namespace: str
    _known: dict[Cause, tuple[str, ...]] = field(default_factory=dict)

    def lines(self, cause: Cause) -> tuple[str, ...]:
        if not cause.logs or not cause.pod:
            return ()
        if cause not in self._known:
            found = read_last_lines(self.api, self.namespace, cause.pod, cause.container, previous=cause.previous)
            self._known[cause] = tuple(found)
        return self._known[cause]


def _with_reason(row: StatusRow, view: EnvironmentView, reasons: Reasons) -> StatusRow:
    if row.cause is None or not row.problem:
        return row
    loaded = view.planned.loaded
    missing = left_out_rows(loaded, row.service, row.cause)
    place = loaded.origins.at("services", row.service, *row.cause.origin)
    return replace(row, lines=reasons.lines(row.cause), left_out=tuple(missing), place=place)


def _developer(query: ServiceQuery, snapshot: Snapshot) -> str:
    """Return who develops a service; empty if nobody does."""
    if not query.dev_workload:
        return ""
    holder = lease_holder(snapshot.workloads.get(("Deployment", query.dev_workload)), snapshot.time)
    return describe_holder(holder) if holder else ""


def status_document(environment: str, namespace: str, rows: Iterable[StatusRow]) -> dict[str, object]:
    services = [
        {
            "service": row.service,
            "kind": row.kind,
            "state": row.state,
            "ready": row.ready,
            "desired": row.desired,
            "restarts": row.restarts,
            "image": row.image,
            "created": row.created,
            "urls": list(row.urls),
            "problem": row.problem,
            "hint": row.hint,
            "pods": list(row.pods),
            "log_lines": list(row.lines),
            "omitted_volumes": list(row.left_out),
            "code": row.cause.code if row.cause and row.problem else "",
            "pod_status": [asdict(pod) for pod in row.pod_rows],
            "developer": row.developer,
            **({"place": place_row(row.place)} if row.place else {}),
            **({"schedule": schedule_fields(row.schedule)} if row.schedule else {}),
        }
        for row in rows
    ]
    return document("status", environment, namespace, services=services)


def status_screen(
    environment: str,
    namespace: str,
    rows: Sequence[StatusRow],
    now: datetime,
    *,
    urls: Sequence[str],
    width: int | None,
    color: bool,
) -> str:
    """Format the status for people; the table is cut to the width, messages and addresses are not."""
    head = ("SERVICE", "KIND", "STATE", "READY", "RESTARTS", "AGE", "IMAGE")
    cells = [
        (
            row.service,
            row.kind,
            row.state,
            f"{row.ready}/{row.desired}",
            str(row.restarts),
            age(row.created, now) if row.created else "-",
            short_image(row.image) or "-",
        )
        for row in rows
    ]
    lines = fit_table([head, *cells], width, _SPARE).splitlines()
    if color:
        lines = [lines[0], *(_colored(line, row) for line, row in zip(lines[1:], rows, strict=True))]
    problems = [line for row in rows if row.problem for line in _problem(row)]
    parts = [f"{environment} in namespace {namespace}", "", *lines]
    parts += ["", "Problems", *problems] if problems else []
    schedules = [schedule_line(row.service, row.schedule, now) for row in rows if row.schedule]
    parts += ["", "Schedules", *schedules] if schedules else []
    parts += ["", "Addresses", *(f"  {url}" for url in urls)] if urls else []
    return "\n".join(parts) + "\n"


def _problem(row: StatusRow) -> Iterable[str]:
    yield _one_line(f"  {row.service}: {row.problem}" + (f" ({row.hint})" if row.hint else ""))
    for line in row.lines[-_MAX_LOG_LINES:]:
        yield f"    {cut(clean_line(line))}"
    for mount in row.left_out:
        yield _one_line(f"    {left_out_line(mount)}")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _colored(line: str, row: StatusRow) -> str:
    color = _COLORS.get(row.state)
    if not color:
        return line
    # A service may have the name of a state. Its name, which a narrow terminal cuts, is first in the line.
    name, gap, rest = line.partition("  ")
    return name + (gap + rest).replace(f" {row.state} ", f" \x1b[{color}m{row.state}\x1b[0m ", 1)


@app.command(
    "status",
    guide=Guide(
        {
            "Until Ctrl-C, whenever something changes": "platform status --watch",
            "One service, for a program": "platform status web --json",
        },
        "living.md",
    ),
)
@app.command("ps", hidden=True)
@with_choice()
def status_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print it again whenever it changes.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Show the status of each service."""
    if watch and as_json:
        raise typer.BadParameter("can't be given along with --json", param_hint="--watch")
    return run(choice, tuple(services or ()), watch=watch, as_json=as_json)
