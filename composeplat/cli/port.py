"""``platform port``: where a port of a service is reached."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_json, write_unmasked
from composeplat.cli.environment_view import EnvironmentView, fit_table, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.cluster.endpoints import Address
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import ComposeplatError, Exit
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.system.records import record

app = App()


@record(kw_only=True)
class PortRow:
    port: int
    protocol: str
    address: str
    """In the cluster."""
    urls: tuple[str, ...]


def run(choice: Choice, service: str, port: int | None, *, as_json: bool) -> Exit:
    view = view_environment(choice, (service,))
    if view is None:
        return Exit.INVALID
    (cluster_name,) = view.names
    with Api(view.planned.target.access) as api:
        found = api.find(api_path("Service", view.namespace, cluster_name))
        rows = port_rows(found, view.addresses(api)) if found else []
    if found is None or not belongs_to(found, view.environment):
        raise ComposeplatError(f"service '{service}' is not deployed", "platform deploy")
    shown = [row for row in rows if port in (None, row.port)]
    if port is not None and not shown:
        known = ", ".join(str(row.port) for row in rows)
        hint = f"its ports are: {known}" if rows else _without_ports(found, str(port))
        raise ComposeplatError(f"service '{service}' has no port {port}", hint)
    if rows or as_json:
        _show(view, shown, service, port, as_json=as_json)
    else:
        progress.conclude(f"service '{service}' lists no ports: {_without_ports(found, 'PORT')}")
    return Exit.DONE


def _without_ports(service: Object, port: str) -> str:
    return f"{_host(service)}:{port} is reached in the cluster, if its pods listen there; list it under 'expose'"


def _host(service: Object) -> str:
    return f"{service['metadata']['name']}.{service['metadata']['namespace']}"


def _show(view: EnvironmentView, rows: list[PortRow], service: str, port: int | None, *, as_json: bool) -> None:
    if as_json:
        ports = [asdict(row) for row in rows]
        write_json(document("port", view.environment, view.namespace, service=service, ports=ports))
    elif port is not None:
        # A port can be of TCP and of UDP, at one address.
        lines = dict.fromkeys(line for row in rows for line in (*row.urls, row.address))
        write_unmasked("".join(f"{line}\n" for line in lines))
    else:
        cells = [(f"{row.port}/{row.protocol}", row.address, " ".join(row.urls) or "-") for row in rows]
        # A cut address is useless.
        write_unmasked(fit_table([("PORT", "IN THE CLUSTER", "URL"), *cells], None, is_public=True))


def port_rows(service: Object, addresses: list[Address]) -> list[PortRow]:
    entries = service["spec"].get("ports") or []
    # An endpoint routes to a port of the cluster service, an exposed port to one of the container.
    targets = {(int(entry["port"]), _protocol(entry)): _target(entry) for entry in entries}

    def urls(entry: Object) -> tuple[str, ...]:
        found = [
            address.url
            for address in addresses
            if address.protocol == _protocol(entry)
            and _target(entry)
            == (targets.get((address.port, address.protocol)) if address.is_endpoint else address.port)
        ]
        return tuple(dict.fromkeys(found))

    return [
        PortRow(
            port=int(entry["port"]),
            protocol=_protocol(entry),
            address=f"{_host(service)}:{entry['port']}",
            urls=urls(entry),
        )
        for entry in entries
    ]


def _protocol(entry: Object) -> str:
    return str(entry.get("protocol", "TCP")).lower()


def _target(entry: Object) -> object:
    """The container port of a port of the cluster service."""
    return entry.get("targetPort", entry["port"])


@app.command(
    "port",
    guide=Guide(
        {"All ports of a service": "platform port web", "Where one is reached": "platform port web 8080"}, "living.md"
    ),
)
@with_choice()
def port_command(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service.")],
    port: Annotated[int | None, typer.Argument(metavar="[PORT]", help="Only this port.", min=1, max=65535)] = None,
    as_json: opt.Json = False,
) -> int:
    """Show where the ports of a service are reached: in the cluster, and by URL."""
    return run(choice, service, port, as_json=as_json)
