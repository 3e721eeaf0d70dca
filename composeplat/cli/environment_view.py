"""A deployed environment for the commands that inspect it: its services and addresses, and their tables.

Owns how a table is cut to the width of a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from composeplat import progress
from composeplat.cli.console import table, write_json, write_output
from composeplat.cli.operations import Planned, document, plan_for, stack_for
from composeplat.cli.selection import Choice
from composeplat.cluster.api import Api
from composeplat.cluster.endpoints import Address, find_addresses
from composeplat.cluster.environments import deployed_services
from composeplat.cluster.exposed_services import find_exposed
from composeplat.cluster.live_lists import Lists
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.status import ServiceQuery
from composeplat.cluster.watching import Watcher
from composeplat.diagnostics import printable, truncate
from composeplat.engine.dev_workloads import as_deployed, dev_workloads_by_service
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.records import record

_GAP = 2
_MIN_COLUMN_WIDTH = 8


@record
class EnvironmentView:
    """An environment, and those of its services that a command shows."""

    planned: Planned
    chosen: tuple[str, ...]

    @property
    def environment(self) -> str:
        return self.planned.plan.environment

    @property
    def namespace(self) -> str:
        return self.planned.plan.namespace

    @property
    def names(self) -> dict[str, str]:
        """The chosen services: cluster name -> name."""
        return {s.cluster_name: s.name for s in self.planned.plan.services if s.name in self.chosen}

    def queries(
        self, workloads: Mapping[tuple[str, str], Any], addresses: Collection[Address] = ()
    ) -> list[ServiceQuery]:
        dev_workloads = dev_workloads_by_service(workloads, self.environment)
        return [
            ServiceQuery(
                name=service.name,
                cluster_name=service.cluster_name,
                kind=service.workload_kind,
                pod_of=service.pod_of,
                urls=tuple(dict.fromkeys(a.url for a in addresses if a.service == service.cluster_name)),
                dev_workload=dev_workloads.get(service.workload_name, ""),
            )
            for service in (as_deployed(found, workloads) for found in self.planned.plan.services)
            if service.name in self.chosen
        ]

    def addresses(self, api: Api, lists: Lists | None = None) -> list[Address]:
        """List the addresses of the chosen services, as this machine reaches them, in the order of a deploy.

        Without lists the API server is asked.
        """
        reached_at, names = self.planned.target.reached_at, self.names
        addresses = (
            replace(found, url=reached_at(found.url))
            for found in (*find_addresses(lists or api, self.namespace, self.environment), *self._exposed(api, lists))
            if found.service in names
        )
        # By name and path: the domain of the deploy need not be known here. Those that left the file come last.
        order = [(plan.name, urlsplit(url).path) for plan in self.planned.plan.endpoints for url in plan.urls]
        ranks = {place: rank for rank, place in enumerate(order)}
        return sorted(addresses, key=lambda a: ranks.get((a.endpoint, urlsplit(a.url).path), len(order)))

    @property
    def watcher(self) -> Watcher:
        plan = self.planned.plan
        return Watcher(
            self.planned.target.access,
            plan.namespace,
            plan.environment,
            plan.workload_kinds,
            others_too=True,
            since_creation=True,
        )

    def _exposed(self, api: Api, lists: Lists | None) -> list[Address]:
        has_any = any(desired.key.kind is ResourceKind.EXPOSED for desired in self.planned.plan.objects)
        return find_exposed(api, self.namespace, self.environment, lists) if has_any else []

    def take_snapshot(self, api: Api) -> Snapshot:
        return self.watcher.take_snapshot(api)

    def show(self, command: str, table: str, *, as_json: bool, absent: str = "", **fields: object) -> None:
        """Show the rows of a command as JSON or as a table; without a table, that there is nothing to show."""
        if as_json:
            write_json(document(command, self.environment, self.namespace, **fields))
        elif table:
            write_output(table)
        elif absent:
            progress.conclude(absent)
        else:
            self.report_absent()

    def report_absent(self) -> None:
        progress.conclude(self.absence)

    @property
    def absence(self) -> str:
        """The message that nothing of what a command shows is deployed."""
        are = "is" if len(self.chosen) == 1 or not self.is_part else "are"
        return f"{self.title} {are} not deployed in namespace {self.namespace}: platform deploy"

    def others(self, snapshot: Snapshot) -> list[str]:
        """List the deployed services that the definition does not have, or whose profile is off."""
        planned = {service.cluster_name for service in self.planned.plan.services}
        return [found.name for found in deployed_services(snapshot) if found.name not in planned]

    def absence_in(self, snapshot: Snapshot) -> str:
        """The same message where other services may be deployed."""
        others = [] if self.is_part else self.others(snapshot)
        if not others:
            return self.absence
        return (
            f"{self.environment} in namespace {self.namespace} has no service of the file, and has"
            f" {', '.join(others)}: platform deploy"
        )

    @property
    def title(self) -> str:
        """The environment, or the services of it that are shown."""
        return f"{', '.join(self.chosen)} of {self.environment}" if self.is_part else self.environment

    @property
    def is_part(self) -> bool:
        """Whether some services alone are shown."""
        return len(self.chosen) < len(self.planned.plan.services)


def view_environment(choice: Choice, services: Sequence[str]) -> EnvironmentView | None:
    """Read the definition and select its services; if it has errors, show them and return None."""
    write_output("")
    planned = plan_for(choice, looking=True)
    if planned is None:
        return None
    planned.plan.select_services(services)
    notice = stack_for(planned).notice_of_other_project()
    if notice:
        progress.note(notice)
    known = [service.name for service in planned.plan.services]
    return EnvironmentView(planned, tuple(name for name in known if not services or name in services))


def terminal_width() -> int | None:
    """Return the columns of standard output; None if it is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def fit_table(
    rows: Sequence[tuple[str, ...]], width: int | None, spare: Sequence[str] = (), *, is_public: bool = False
) -> str:
    """Format rows within a width: first without the columns in ``spare``, in that order, then with shorter cells."""
    shown = [
        tuple(printable(cell if is_public else progress.masked_text(cell)).replace("\n", " ") for cell in row)
        for row in rows
    ]
    if width is None:
        return table(shown)
    for name in spare:
        if _width(shown) <= width:
            break
        index = shown[0].index(name)
        shown = [(*row[:index], *row[index + 1 :]) for row in shown]
    limits = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    while sum(limits) + _GAP * (len(limits) - 1) > width and max(limits) > _MIN_COLUMN_WIDTH:
        limits[limits.index(max(limits))] -= 1
    cut = [tuple(truncate(cell, limit) for cell, limit in zip(row, limits, strict=True)) for row in shown]
    return "".join(f"{line[:width].rstrip()}\n" for line in table(cut).splitlines())


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    return sum(max(len(row[i]) for row in rows) + _GAP for i in range(len(rows[0]))) - _GAP
