"""``platform status``: how each service stands, for people and programs."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Any

from composeplat.cli.console import show_result, table, tell, wants_color
from composeplat.cli.operating import Choice, Mask, Planned, plan_for, to_json
from composeplat.cluster.api import Api
from composeplat.cluster.status import Row, Wanted, age, short_image, status_rows
from composeplat.cluster.watching import Watcher
from composeplat.diagnostics import Exit
from composeplat.engine.twins import TWIN_LABEL, is_twin

SCHEMA = "platform/status/1"
_EVERY = 1.0
_COLORS = {"ready": "32", "completed": "32", "failing": "31", "starting": "33", "started": "33", "developed": "36"}


def run(choice: Choice, *, watch: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, start=False, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    plan = planned.plan
    watcher = Watcher(planned.target.access, plan.namespace, plan.environment)
    mask = Mask(plan.confidential)
    with Api(planned.target.access) as api:
        while True:
            snapshot = watcher.look(api)
            now = datetime.now(UTC)
            rows = status_rows(_wanted(planned, snapshot.workloads), snapshot, now)
            if as_json:
                show_result(to_json(mask.clean_data(_document(planned, rows))))
            else:
                screen = _screen(planned, rows, now)
                show_result(mask.clean(f"\x1b[H\x1b[2J{screen}" if watch and sys.stdout.isatty() else screen))
            if not watch:
                break
            time.sleep(_EVERY)
    if not as_json and all(row.state == "absent" for row in rows):
        tell(f"{plan.environment} is not deployed in namespace {plan.namespace}: platform deploy\n")
    return Exit.DONE


def _wanted(planned: Planned, workloads: Any) -> list[Wanted]:
    twins = {
        one["metadata"]["labels"][TWIN_LABEL]: name
        for (kind, name), one in workloads.items()
        if kind == "Deployment" and is_twin(one)
    }
    return [
        Wanted(
            name=service.name, cluster_name=service.cluster_name, kind=service.workload_kind,
            urls=urls_of(planned, service.name), twin=twins.get(service.cluster_name, ""),
        )
        for service in planned.plan.services
    ]  # fmt: skip


def urls_of(planned: Planned, service: str) -> tuple[str, ...]:
    """The addresses that lead to a service."""
    found = (
        planned.target.reached_at(url)
        for endpoint in planned.plan.endpoints
        if any(name == service for name, _ in endpoint.routes)
        for url in endpoint.urls
    )
    return tuple(dict.fromkeys(found))


def _document(planned: Planned, rows: list[Row]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "environment": planned.plan.environment,
        "namespace": planned.plan.namespace,
        "services": [
            {
                "service": row.service, "kind": row.kind, "state": row.state, "ready": row.ready, "wanted": row.wanted,
                "restarts": row.restarts, "image": row.image, "created": row.created, "urls": list(row.urls),
                "problem": row.problem, "hint": row.hint, "pods": list(row.pods),
            }
            for row in rows
        ],
    }  # fmt: skip


def _screen(planned: Planned, rows: list[Row], now: datetime) -> str:
    head = ("SERVICE", "KIND", "STATE", "READY", "RESTARTS", "AGE", "IMAGE")
    cells = [
        (
            row.service, row.kind, row.state, f"{row.ready}/{row.wanted}", str(row.restarts),
            age(row.created, now) if row.created else "-", short_image(row.image) or "-",
        )
        for row in rows
    ]  # fmt: skip
    lines = table([head, *cells]).splitlines()
    if wants_color(sys.stdout):
        lines = [lines[0], *(_colored(line, row) for line, row in zip(lines[1:], rows, strict=True))]
    told = [f"  {row.service}: {row.problem}" + (f" ({row.hint})" if row.hint else "") for row in rows if row.problem]
    urls = [f"  {url}" for url in dict.fromkeys(url for row in rows for url in row.urls)]
    parts = [f"{planned.plan.environment} in namespace {planned.plan.namespace}", "", *lines]
    parts += ["", "Problems", *told] if told else []
    parts += ["", "Addresses", *urls] if urls else []
    return "\n".join(parts) + "\n"


def _colored(line: str, row: Row) -> str:
    color = _COLORS.get(row.state)
    return line.replace(f" {row.state} ", f" \x1b[{color}m{row.state}\x1b[0m ", 1) if color else line
