"""What commands share that look at a deployed environment: its services, tables that fit, writing while one reads.

Owns how a table is cut to a terminal's width.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composeplat import progress
from composeplat.cli.console import table, write_output
from composeplat.cli.operations import Planned, plan_for, stack_for
from composeplat.cli.selection import Choice
from composeplat.cluster.api import Api
from composeplat.cluster.endpoints import Address, find_addresses
from composeplat.cluster.status import ServiceQuery
from composeplat.diagnostics import printable
from composeplat.engine.dev_workloads import dev_workloads_by_service

_GAP = 2
_LEAST = 8
"""No column is cut to less."""


@dataclass(frozen=True, slots=True)
class EnvironmentView:
    """An environment, and the services of it that are asked about."""

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
        return {one.cluster_name: one.name for one in self.planned.plan.services if one.name in self.chosen}

    def wanted(
        self, workloads: Mapping[tuple[str, str], Any], addresses: Collection[Address] = ()
    ) -> list[ServiceQuery]:
        dev_workloads = dev_workloads_by_service(workloads, self.environment)
        return [
            ServiceQuery(
                name=service.name,
                cluster_name=service.cluster_name,
                kind=service.workload_kind,
                urls=tuple(dict.fromkeys(one.url for one in addresses if one.service == service.cluster_name)),
                dev_workload=dev_workloads.get(service.cluster_name, ""),
            )
            for service in self.planned.plan.services
            if service.name in self.chosen
        ]

    def addresses(self, api: Api) -> list[Address]:
        """The addresses that lead to the chosen services, as they are reached from here."""
        reached_at, names = self.planned.target.reached_at, self.names
        return [
            Address(endpoint=one.endpoint, url=reached_at(one.url), service=one.service, port=one.port)
            for one in find_addresses(api, self.namespace, self.environment)
            if one.service in names
        ]

    def tell_absent(self) -> None:
        progress.conclude(f"{self.environment} is not deployed in namespace {self.namespace}: platform deploy")


def view_environment(choice: Choice, services: Sequence[str]) -> EnvironmentView | None:
    """Read the definition and find its services; none, once its messages are shown, where it has errors."""
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
    """How many columns standard output has; none where it is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def fit_table(
    rows: Sequence[tuple[str, ...]], width: int | None, spare: Sequence[str] = (), *, is_public: bool = False
) -> str:
    """Lay rows out within a width: the columns named in ``spare`` go first, in that order; then cells are cut."""
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
    while sum(limits) + _GAP * (len(limits) - 1) > width and max(limits) > _LEAST:
        limits[limits.index(max(limits))] -= 1
    cut = [tuple(shorten(cell, limit) for cell, limit in zip(row, limits, strict=True)) for row in shown]
    return "".join(f"{line[:width].rstrip()}\n" for line in table(cut).splitlines())


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    return sum(max(len(row[i]) for row in rows) + _GAP for i in range(len(rows[0]))) - _GAP


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
