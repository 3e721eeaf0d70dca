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
    """Return the key that gives the service a URL, with the port that Traefik's labels name."""
    label = next((name for name in service.labels if _PORT.match(name)), "")
    path = annotation_path(("services", service.name), label)
    is_known = label and service.labels[label].isdigit() and not checker.is_hidden(path)
    port = service.labels[label] if is_known else "PORT"
    return f"give it a route: endpoints: {{NAME: [{{path: /, service: {service.name}, port: {port}}}]}}"
