"""``platform events``: the Kubernetes events of an environment, oldest first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.cluster.events import EnvironmentEvent, read_events
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.cluster.status import age
from composeplat.cluster.watching import environment_selector
from composeplat.diagnostics import Exit

app = App()

_SPARE = ("OBJECT", "SERVICE")


def run(choice: Choice, services: Sequence[str], *, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        found = events_of(view, api, api.items(events_path(view)))
        now = datetime.fromtimestamp(api.server_time, UTC)
    if as_json:
        write_json(events_document(view.environment, view.namespace, found))
    elif not found:
        progress.conclude(f"there are no events of {view.environment} in namespace {view.namespace}")
    else:
        color = wants_color(sys.stdout)
        write_output(events_table(found, now, width=terminal_width(), color=color))
    return Exit.DONE


def events_path(view: EnvironmentView) -> str:
    return kind_path("v1", "Event", view.namespace)


def events_of(view: EnvironmentView, api: Api, listed: Iterable[Object]) -> list[EnvironmentEvent]:
    """Return those of the namespace's events that are of the environment, oldest first."""
    # Of the workloads, only those of development add names; all of them are Deployments.
    path = kind_path("apps/v1", "Deployment", view.namespace) + environment_selector(view.environment)
    deployments = {("Deployment", item["metadata"]["name"]): item for item in api.items(path)}
    names, others = tuple(service.name for service in view.planned.plan.services), _other_objects(view)
    found = read_events(listed, replace(view, chosen=names).queries(deployments), others)
    return [event for event in found if event.service in view.chosen or event.object in others]


def _other_objects(view: EnvironmentView) -> dict[str, str]:
    """Map the objects that no workload owns to the service that they are for; a volume is of no service."""
    plan = view.planned.plan
    found = {
        f"{desired.kind}/{desired.name}": endpoint.routes[0][0] if endpoint.routes else ""
        for endpoint in plan.endpoints
        for desired in endpoint.objects
        if any(service in view.chosen for service, _ in endpoint.routes)
    }
    chosen = [desired for service in plan.services if service.name in view.chosen for desired in service.objects]
    used = {need for desired in chosen for need in desired.needs}
    for volume in plan.volumes:
        for desired in volume.objects:
            if desired.key in used:
                found[f"{desired.kind}/{desired.name}"] = ""
    return found


def events_document(environment: str, namespace: str, found: Iterable[EnvironmentEvent]) -> dict[str, object]:
    rows = [
        {
            "time": event.time,
            "count": event.count,
            "type": "Warning" if event.warning else "Normal",
            "service": event.service,
            "object": event.object,
            "reason": event.reason,
            "message": event.message,
        }
        for event in found
    ]
    return document("events", environment, namespace, events=rows)


def events_table(found: Sequence[EnvironmentEvent], now: datetime, *, width: int | None, color: bool) -> str:
    head = ("AGE", "SERVICE", "OBJECT", "REASON", "MESSAGE")
    cells = [
        (age(event.time, now), event.service or "-", event.object, event.reason, _message(event)) for event in found
    ]
    lines = fit_table([head, *cells], width, _SPARE if width and width < _NARROW else ()).splitlines()
    if color:
        lines = [
            lines[0],
            *(
                f"\x1b[33m{line}\x1b[0m" if event.warning else line
                for line, event in zip(lines[1:], found, strict=True)
            ),
        ]
    return "\n".join(lines) + "\n"


_NARROW = 60


def _message(event: EnvironmentEvent) -> str:
    return f"{event.message} ({event.count} times)" if event.count > 1 else event.message


@app.command("events", guide=Guide({"The Kubernetes events of one service": "platform events web"}, "living.md"))
@with_choice()
def events_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the Kubernetes events of the environment, oldest first."""
    return run(choice, tuple(services or ()), as_json=as_json)
