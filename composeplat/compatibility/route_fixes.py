"""The entries that give a service a URL: in place of a proxy beside it, or of a published port that never gets one.

Owns which of the two it is: services that share an address are routes of one endpoint, and each other one is published.
A program with a page at a port on the list of databases is known by its image.
Must not read labels: :mod:`composeplat.plan.proxy_routes` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping as Table
from dataclasses import replace

from composeplat.compatibility.entries import Entry, expose_entries, yaml_text
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compatibility.port_rules import Use, exposed_ports, unreachable_ports
from composeplat.compose.load import Loaded
from composeplat.compose.model import NEVER, Port, Service
from composeplat.compose.nodes import Mapping, Node, Sequence, find_node
from composeplat.diagnostics import Diagnostic
from composeplat.names import clean
from composeplat.plan.endpoints import NOT_HTTP
from composeplat.plan.never_public import NEVER_PUBLIC
from composeplat.plan.proxy_routes import ProxyRoute, find_proxy_route, harmless_middlewares, is_published
from composeplat.plan.services import service_ports

_ROOT = "/"
#: Ports that get a URL by a route alone.
_UNPUBLISHED = NEVER_PUBLIC | NOT_HTTP.keys()

#: Ports of databases at which other programs have their page.
_PAGES = {5678: "n8n", 8088: "superset"}


def route_to_page(loaded: Loaded, name: str) -> tuple[Entry, ...]:
    """Return the route to the page of a known program, if that is the only port that it publishes and has none."""
    service, endpoints = loaded.project.services[name], loaded.project.endpoints
    if any(clean(route.service) == clean(name) for endpoint in endpoints for route in endpoint.routes):
        return ()
    published = {port.target for port in service.ports if port.published is not None}
    port = next(iter(published)) if len(published) == 1 else 0
    is_known = port in _PAGES and _PAGES[port] in service.image.lower()
    if not is_known or not _takes_routes(loaded.document, service.name):
        return ()
    return (_route_entry(service, _ROOT, port, service.name, f"The page of {_PAGES[port]}"),)


def _takes_routes(document: Node | None, endpoint: str) -> bool:
    """Whether a list of routes can have this name: a file's own endpoints may be one list, or have other keys."""
    whole = find_node(document, "endpoints")
    if isinstance(whole, Mapping):
        return "rules" not in whole and not isinstance(whole.get(clean(endpoint)), Mapping)
    return not isinstance(whole, Sequence)


def _route_entry(service: Service, path: str, port: int, endpoint: str, reason: str) -> Entry:
    line = f"- {{path: {path}, service: {yaml_text(service.name)}, port: {port}}}"
    return Entry(("endpoints", clean(endpoint)), line, f"{reason}; a deploy needs a domain for it.")


class RouteFixes:
    """The entries for the services of a definition that have their address from a proxy."""

    def __init__(self, loaded: Loaded, images: ImageAnswers, uses: Table[str, Iterable[Use]]) -> None:
        self._services = loaded.project.services
        self._document = loaded.document
        self._images = images
        self._uses = uses
        found = {name: find_proxy_route(loaded.origins, service) for name, service in self._services.items()}
        self.routes = {name: route for name, route in found.items() if route is not None}
        """The services that have their address from a proxy."""
        self._names = {loaded.origins.written_at(route.path): name for name, route in self.routes.items()}
        """The services by the places of their routes."""
        self._harmless = harmless_middlewares(self._services.values())
        self._prefixes: dict[tuple[str, str], dict[str, str]] = {}
        """Proxy and hosts -> the services that are open there, with the first part of their paths."""
        for name, route in self.routes.items():
            if self._ports(self._services[name], route):
                self._prefixes.setdefault((route.proxy, route.hosts), {})[name] = route.prefix

    def entries_for(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Return the entries; none where the proxy does not open the service to all, or its port is not known."""
        name = self._names.get(diagnostic.path)
        if name is None:
            return ()
        service, route = self._services[name], self.routes[name]
        ports = self._ports(service, route)
        together = self._prefixes.get((route.proxy, route.hosts), {})
        is_shared = any(prefix != _ROOT for prefix in together.values())
        if not ports:
            return ()
        if not is_shared and not _UNPUBLISHED.intersection(ports):
            return tuple(self._publish(service, ports, route.proxy))
        endpoint = self._endpoint_of(together) if is_shared else name
        endpoint = endpoint if _takes_routes(self._document, endpoint) else ""
        return tuple(self._route(service, route, ports[0], endpoint)) if endpoint and len(ports) == 1 else ()

    def _endpoint_of(self, together: Table[str, str]) -> str:
        """Name the endpoint of services, after the one with most paths; empty if one is published, or shares a path."""
        is_published_too = any(is_published(self._services[name]) for name in together)
        is_ambiguous = len(set(together.values())) < len(together)
        return "" if is_published_too or is_ambiguous else min(together, key=lambda name: together[name])

    def _ports(self, service: Service, route: ProxyRoute) -> tuple[int, ...]:
        """Return the ports of a route that is open to all; else none."""
        if not route.is_open(self._harmless) or service.restart == NEVER:
            return ()
        listed = {number for number, protocol in service_ports(service) if protocol == "tcp"}
        known = listed or set(exposed_ports(service, self._images))
        return route.ports or (tuple(known) if len(known) == 1 else ())

    def _publish(self, service: Service, ports: tuple[int, ...], proxy: str) -> Iterator[Entry]:
        parent = ("services", service.name, "ports")
        yield from (Entry(parent, f'- "{port}:{port}"', f"The route of {proxy}.") for port in ports)
        yield from self._list_others(service, ports)

    def _route(self, service: Service, route: ProxyRoute, port: int, endpoint: str) -> Iterator[Entry]:
        if (port, "tcp") not in service_ports(service):
            yield Entry(("services", service.name, "expose"), f'- "{port}"', f"For the route of {route.proxy}.")
            yield from self._list_others(service, (port,))
        yield _route_entry(service, route.prefix, port, endpoint, f"The route of {route.proxy}")

    def _list_others(self, service: Service, ports: tuple[int, ...]) -> tuple[Entry, ...]:
        """List the ports that others use: a name without any port leads to all, one with some to these alone."""
        listed = replace(service, ports=(*service.ports, *(Port(target=port) for port in ports)))
        missing = unreachable_ports(listed, self._uses[service.name], exposed_ports(service, self._images))
        return expose_entries(service.name, missing)
