"""``platform events``: what the cluster has said of an environment, oldest first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import wants_color, write_json, write_output
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document
from composeplat.cli.selection import Choice, choosing
from composeplat.cluster.api import Api, kind_path
from composeplat.cluster.events import EnvironmentEvent, read_events
from composeplat.cluster.status import age
from composeplat.cluster.watching import Watcher
from composeplat.diagnostics import Exit

app = App()

_SPARE = ("OBJECT", "SERVICE")


def run(choice: Choice, services: Sequence[str], *, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        watcher = Watcher(view.planned.target.access, view.namespace, view.environment)
        wanted = view.wanted(watcher.take_snapshot(api).workloads)
        found = read_events(api.items(kind_path("v1", "Event", view.namespace)), wanted, _others(view))
    if as_json:
        write_json(events_document(view.environment, view.namespace, found))
    elif not found:
        progress.conclude(f"there are no events of {view.environment} in namespace {view.namespace}")
    else:
        color = wants_color(sys.stdout)
        write_output(events_table(found, datetime.now(UTC), width=terminal_width(), color=color))
    return Exit.DONE


def _others(view: EnvironmentView) -> dict[str, str]:
    """Objects besides workloads and what these own -> the service that they are for; a volume is nobody's own."""
    plan = view.planned.plan
    found = {
        f"{desired.kind}/{desired.name}": endpoint.routes[0][0] if endpoint.routes else ""
        for endpoint in plan.endpoints
        for desired in endpoint.objects
        if any(service in view.chosen for service, _ in endpoint.routes)
    }
    used = {need for one in plan.services if one.name in view.chosen for it in one.objects for need in it.needs}
    for volume in plan.volumes:
        for desired in volume.objects:
            if desired.key in used:
                found[f"{desired.kind}/{desired.name}"] = ""
    return found


def events_document(environment: str, namespace: str, found: Iterable[EnvironmentEvent]) -> dict[str, object]:
    rows = [
        {
            "time": one.moment,
            "count": one.count,
            "type": "Warning" if one.warning else "Normal",
            "service": one.service,
            "object": one.object,
            "reason": one.reason,
            "message": one.message,
        }
        for one in found
    ]
    return document("events", environment, namespace, events=rows)


def events_table(found: Sequence[EnvironmentEvent], now: datetime, *, width: int | None, color: bool) -> str:
    head = ("AGE", "SERVICE", "OBJECT", "REASON", "MESSAGE")
    cells = [(age(one.moment, now), one.service or "-", one.object, one.reason, _message(one)) for one in found]
    lines = fit_table([head, *cells], width, _SPARE if width and width < _NARROW else ()).splitlines()
    if color:
        lines = [
            lines[0],
            *(f"\x1b[33m{line}\x1b[0m" if one.warning else line for line, one in zip(lines[1:], found, strict=True)),
        ]
    return "\n".join(lines) + "\n"


_NARROW = 60


def _message(one: EnvironmentEvent) -> str:
    return f"{one.message} ({one.count} times)" if one.count > 1 else one.message


@app.command("events", guide=Guide({"The Kubernetes events of one service": "platform events web"}, "living.md"))
@choosing()
def events_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the Kubernetes events of the environment, oldest first."""
    return run(choice, tuple(services or ()), as_json=as_json)
