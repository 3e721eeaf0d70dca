"""Services that have their address from a proxy which reads it from Docker.

Traefik and Caddy read labels, nginx-proxy reads a variable.
Owns the message that they have no URL here. Labels become annotations, which no proxy of the cluster reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker, annotation_path
from composeplat.diagnostics import PathKey
from composeplat.names import clean
from composeplat.plan.desired import EndpointPlan
from composeplat.plan.services import service_ports

_LABELS = {
    "Traefik": re.compile(r"traefik\.http\.routers\.[^.]+\.rule\Z"),
    "Caddy": re.compile(r"caddy(_\d+)?\Z"),
}
_PORT = re.compile(r"traefik\.http\.services\.[^.]+\.loadbalancer\.server\.port\Z")
_HOST_VARIABLE, _PORT_VARIABLE = "VIRTUAL_HOST", "VIRTUAL_PORT"


def check_proxy_routes(checker: Checker, endpoints: Iterable[EndpointPlan]) -> None:
    routed = {service for endpoint in endpoints for service, _ in endpoint.routes}
    for service in checker.project.services.values():
        is_published = service.public or any(port.published is not None for port in service.ports)
        found = _proxy_of(checker, service)
        if found and not is_published and clean(service.name) not in routed:
            proxy, path = found
            message = f"is a route of {proxy}, which reads it from Docker: here the service has no URL by it"
            checker.add("no-effect", path, message, _route_for(checker, service))


def _proxy_of(checker: Checker, service: Service) -> tuple[str, PathKey] | None:
    """Return the proxy that gives a service its address, and the place of it."""
    path: PathKey = ("services", service.name)
    for proxy, pattern in _LABELS.items():
        if label := next(filter(pattern.match, service.labels), ""):
            return proxy, annotation_path(path, label)
    if service.environment.get(_HOST_VARIABLE):
        variable: PathKey = (*path, "environment", _HOST_VARIABLE)
        return f"nginx-proxy ({_HOST_VARIABLE})", variable if checker.origins.has(*variable) else (*path, "environment")
    return None


def _route_for(checker: Checker, service: Service) -> str:
    """Return the keys that give the service a URL, with the port that the proxy is given."""
    path: PathKey = ("services", service.name)
    label = next(filter(_PORT.match, service.labels), "")
    given, place = service.labels.get(label), annotation_path(path, label)
    if given is None:
        given, place = service.environment.get(_PORT_VARIABLE), (*path, "environment", _PORT_VARIABLE)
    is_known = given and given.isdigit() and checker.origins.has(*place) and not checker.is_hidden(place)
    port = given if given and is_known else "PORT"
    route = f"give it a route: endpoints: {{NAME: [{{path: /, service: {service.name}, port: {port}}}]}}"
    return route if _has_port(service, port) else f"{route}, and the service the port: expose: [{port}]"


def _has_port(service: Service, port: str) -> bool:
    """Return whether a service lists a port; of one that is not known, whether it lists any."""
    listed = [str(number) for number, protocol in service_ports(service) if protocol == "tcp"]
    return port in listed if port.isdigit() else bool(listed)
