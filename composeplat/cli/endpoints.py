"""``platform endpoints`` and ``platform open``: where an environment answers."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterable, Mapping

from composeplat import progress
from composeplat.cli.console import show_result
from composeplat.cli.environment_view import Living, find_living, fit_table, terminal_width
from composeplat.cli.operations import document, to_json
from composeplat.cli.selection import Choice
from composeplat.cluster.api import Api
from composeplat.cluster.endpoints import Address
from composeplat.diagnostics import ComposeplatError, Exit


def run(choice: Choice, *, as_json: bool) -> Exit:
    living = find_living(choice, ())
    if living is None:
        return Exit.INVALID
    found = _addresses(living)
    if as_json:
        show_result(to_json(endpoints_document(living.environment, living.namespace, found, living.names)))
    elif found:
        head = ("ENDPOINT", "SERVICE", "PORT", "URL")
        cells = [(one.endpoint, living.names[one.service], str(one.port or "-"), one.url) for one in found]
        # An address that is cut leads nowhere: the other columns go before it.
        show_result(_fitting([head, *cells], terminal_width()))
    else:
        progress.conclude(f"{living.environment} has no endpoints in namespace {living.namespace}")
    return Exit.DONE


def _fitting(rows: list[tuple[str, ...]], width: int | None) -> str:
    longest = max(len(row[-1]) for row in rows)
    return fit_table(rows, max(width, longest) if width else None, ("PORT", "ENDPOINT", "SERVICE"))


def endpoints_document(
    environment: str, namespace: str, found: Iterable[Address], names: Mapping[str, str]
) -> dict[str, object]:
    rows = [
            {"name": one.endpoint, "url": one.url, "service": names[one.service], "port": one.port} for one in found
        ]  # fmt: skip
    return document("endpoints", environment, namespace, endpoints=rows)


def run_open(choice: Choice, service: str) -> Exit:
    living = find_living(choice, (service,) if service else ())
    if living is None:
        return Exit.INVALID
    found = _addresses(living)
    if not found:
        whose = f"service '{service}'" if service else living.environment
        raise ComposeplatError(
            f"no address leads to {whose} in namespace {living.namespace}", "platform endpoints lists what there is"
        )
    url = found[0].url
    if not (has_display(os.environ, sys.platform) and webbrowser.open(url)):
        show_result(f"{url}\n")
    return Exit.DONE


def has_display(environment: Mapping[str, str], system: str) -> bool:
    """Say whether a browser would be seen; one that is named is believed."""
    if system in ("darwin", "win32") or environment.get("BROWSER"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _addresses(living: Living) -> list[Address]:
    with Api(living.planned.target.access) as api:
        return living.addresses(api)
