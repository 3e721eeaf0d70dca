"""``platform events``: what the cluster has said of an environment, oldest first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from composeplat import progress
from composeplat.cli.console import show_result, wants_color
from composeplat.cli.environment_view import Living, find_living, fit_table, terminal_width
from composeplat.cli.operations import Mask, document, to_json
from composeplat.cli.selection import Choice
from composeplat.cluster.api import Api, kind_path
from composeplat.cluster.events import Happening, read_events
from composeplat.cluster.status import age
from composeplat.cluster.watching import Watcher
from composeplat.diagnostics import Exit

_SPARE = ("OBJECT", "SERVICE")


def run(choice: Choice, services: Sequence[str], *, as_json: bool) -> Exit:
    living = find_living(choice, services)
    if living is None:
        return Exit.INVALID
    with Api(living.planned.target.access) as api:
        watcher = Watcher(living.planned.target.access, living.namespace, living.environment)
        wanted = living.wanted(watcher.look(api).workloads)
        found = read_events(api.items(kind_path("v1", "Event", living.namespace)), wanted, _others(living))
    mask = Mask(living.planned.plan.confidential)
    if as_json:
        show_result(to_json(mask.clean_data(events_document(living.environment, living.namespace, found))))
    elif not found:
        progress.conclude(f"there are no events of {living.environment} in namespace {living.namespace}")
    else:
        color = wants_color(sys.stdout)
        show_result(mask.clean(events_table(found, datetime.now(UTC), width=terminal_width(), color=color)))
    return Exit.DONE


def _others(living: Living) -> dict[str, str]:
    """Objects besides workloads and what these own -> the service that they are for; a volume is nobody's own."""
    plan = living.planned.plan
    found = {
        f"{desired.kind}/{desired.name}": endpoint.routes[0][0] if endpoint.routes else ""
        for endpoint in plan.endpoints
        for desired in endpoint.objects
        if any(service in living.chosen for service, _ in endpoint.routes)
    }
    used = {need for one in plan.services if one.name in living.chosen for it in one.objects for need in it.needs}
    for volume in plan.volumes:
        for desired in volume.objects:
            if desired.key in used:
                found[f"{desired.kind}/{desired.name}"] = ""
    return found


def events_document(environment: str, namespace: str, found: Iterable[Happening]) -> dict[str, object]:
    rows = [
            {
                "moment": one.moment, "count": one.count, "type": "Warning" if one.warning else "Normal",
                "service": one.service, "object": one.object, "reason": one.reason, "message": one.message,
            }
            for one in found
        ]  # fmt: skip
    return document("events", environment, namespace, events=rows)


def events_table(found: Sequence[Happening], now: datetime, *, width: int | None, color: bool) -> str:
    head = ("AGE", "SERVICE", "OBJECT", "REASON", "MESSAGE")
    cells = [
        (age(one.moment, now), one.service or "-", one.object, one.reason, _message(one))
        for one in found
    ]  # fmt: skip
    lines = fit_table([head, *cells], width, _SPARE if width and width < _NARROW else ()).splitlines()
    if color:
        lines = [
            lines[0],
            *(f"\x1b[33m{line}\x1b[0m" if one.warning else line for line, one in zip(lines[1:], found, strict=True)),
        ]
    return "\n".join(lines) + "\n"


_NARROW = 60


def _message(one: Happening) -> str:
    return f"{one.message} ({one.count} times)" if one.count > 1 else one.message
