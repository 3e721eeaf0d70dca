"""``platform endpoints`` and ``platform open``: the addresses of an environment."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_json, write_unmasked
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.cluster.endpoints import Address
from composeplat.diagnostics import ComposeplatError, Exit

app = App()


def run(choice: Choice, *, as_json: bool) -> Exit:
    view = view_environment(choice, ())
    if view is None:
        return Exit.INVALID
    found = _addresses(view)
    if as_json:
        write_json(endpoints_document(view.environment, view.namespace, found, view.names))
    elif found:
        head = ("ENDPOINT", "SERVICE", "PORT", "URL")
        cells = [
            (address.endpoint, view.names[address.service], str(address.port or "-"), address.url) for address in found
        ]
        # A cut address is useless: the other columns are left out first.
        write_unmasked(_fit([head, *cells], terminal_width()))
    else:
        _report_none(view)
    return Exit.DONE


def _report_none(view: EnvironmentView) -> None:
    if _is_deployed(view):
        progress.conclude(f"{view.environment} has no endpoints in namespace {view.namespace}")
    else:
        view.report_absent()


def _is_deployed(view: EnvironmentView) -> bool:
    with Api(view.planned.target.access) as api:
        return bool(view.take_snapshot(api).workloads)


def _fit(rows: list[tuple[str, ...]], width: int | None) -> str:
    longest = max(len(row[-1]) for row in rows)
    return fit_table(rows, max(width, longest) if width else None, ("PORT", "ENDPOINT", "SERVICE"), is_public=True)


def endpoints_document(
    environment: str, namespace: str, found: Iterable[Address], names: Mapping[str, str]
) -> dict[str, object]:
    rows = [
        {"name": address.endpoint, "url": address.url, "service": names[address.service], "port": address.port}
        for address in found
    ]
    return document("endpoints", environment, namespace, endpoints=rows)


def run_open(choice: Choice, service: str) -> Exit:
    view = view_environment(choice, (service,) if service else ())
    if view is None:
        return Exit.INVALID
    found = [address for address in _addresses(view) if address.is_endpoint]
    if not found:
        whose = f"service '{service}'" if service else view.environment
        raise ComposeplatError(f"no address leads to {whose} in namespace {view.namespace}", _fix(view, service))
    url = found[0].url
    if not (has_display(os.environ, sys.platform) and webbrowser.open(url)):
        write_unmasked(f"{url}\n")
    return Exit.DONE


def _fix(view: EnvironmentView, service: str) -> str:
    if not _is_deployed(view):
        return "platform deploy"
    if service:
        return "platform endpoints lists what there is"
    return "publish a port, as in '8080:80', or use 'endpoints'; the deploy needs a domain: --domain"


def has_display(environment: Mapping[str, str], system: str) -> bool:
    """Check that a browser has a display; a browser that BROWSER names needs none."""
    if system in ("darwin", "win32") or environment.get("BROWSER"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _addresses(view: EnvironmentView) -> list[Address]:
    with Api(view.planned.target.access) as api:
        return view.addresses(api)


@app.command("endpoints", guide=Guide({"Addresses, for a program": "platform endpoints --json"}, "living.md"))
@with_choice()
def endpoints_command(
    choice: Choice,
    as_json: opt.Json = False,
) -> int:
    """Show the addresses of the environment."""
    return run(choice, as_json=as_json)


@app.command("open", guide=Guide({"The page of one service": "platform open web"}, "living.md"))
@with_choice()
def open_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service whose address to open.")] = "",
) -> int:
    """Open the first address in a browser; print it where there is no display."""
    return run_open(choice, service)
