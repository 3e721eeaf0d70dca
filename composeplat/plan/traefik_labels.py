"""Services whose address Traefik gives, by labels that it reads from Docker.

Owns the message that they have no URL here. Labels become annotations, which no proxy of the cluster reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker, annotation_path
from composeplat.names import clean
from composeplat.plan.desired import EndpointPlan
from composeplat.plan.services import service_ports

_RULE = re.compile(r"traefik\.http\.routers\.[^.]+\.rule\Z")
_PORT = re.compile(r"traefik\.http\.services\.[^.]+\.loadbalancer\.server\.port\Z")


def check_traefik_labels(checker: Checker, endpoints: Iterable[EndpointPlan]) -> None:
    routed = {service for endpoint in endpoints for service, _ in endpoint.routes}
    for service in checker.project.services.values():
        rule = next((name for name in service.labels if _RULE.match(name)), "")
        is_published = service.public or any(port.published is not None for port in service.ports)
        if rule and not is_published and clean(service.name) not in routed:
            path = annotation_path(("services", service.name), rule)
            message = "is a route of Traefik, which reads it from Docker: here the service has no URL by it"
            checker.add("no-effect", path, message, _route_for(checker, service))


def _route_for(checker: Checker, service: Service) -> str:
    """Return the keys that give the service a URL, with the port that Traefik's labels name."""
    label = next((name for name in service.labels if _PORT.match(name)), "")
    path = annotation_path(("services", service.name), label)
    is_known = label and service.labels[label].isdigit() and not checker.is_hidden(path)
    port = service.labels[label] if is_known else "PORT"
    route = f"give it a route: endpoints: {{NAME: [{{path: /, service: {service.name}, port: {port}}}]}}"
    return route if _has_port(service, port) else f"{route}, and the service the port: expose: [{port}]"


def _has_port(service: Service, port: str) -> bool:
    """Return whether a service lists a port; of one that is not known, whether it lists any."""
    listed = [str(number) for number, protocol in service_ports(service) if protocol == "tcp"]
    return port in listed if port.isdigit() else bool(listed)
