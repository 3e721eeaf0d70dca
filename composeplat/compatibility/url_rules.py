"""Rules about URLs of this machine: those by which browsers reach a published port in Docker.

Owns how these are recognized, and the URL to write; a message never quotes the text around one.
In Docker a published port is a port of this machine, and pages, redirects and lists of origins name it so. In a cluster
the service has a URL of its own instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from composeplat.compatibility.host_rules import variable_path
from composeplat.compose.model import Service
from composeplat.compose.nodes import Node, find_node
from composeplat.compose.origins import Checker
from composeplat.diagnostics import PathKey, join_some
from composeplat.plan import Plan

_MAX_LISTED = 4
_URL = re.compile(r"(http|ws)(s?)://(?:localhost|127\.0\.0\.1)(?::(\d{1,5}))?(?![\w.:-])", re.ASCII)


def check_local_urls(checker: Checker, plan: Plan, document: Node | None) -> None:
    """Report texts with a URL of this machine that leads to a public port; one of its own port may be for itself."""
    published = _published(checker, plan)
    for service in checker.project.services.values():
        if find_node(document, "services", service.name, "network_mode"):
            continue  # its hint is about 'localhost' too
        own = {port.target for port in service.ports}
        for path, text in _texts(checker, service):
            reached: dict[str, str] = {}
            for scheme, tls, number in _URL.findall(text):
                port = int(number or (443 if tls else 80))
                if port in published and port not in own:
                    name, url = published[port]
                    reached[name] = url.replace("https:", f"{scheme}s:")
            if reached:
                _report(checker, path, reached)


def _report(checker: Checker, path: PathKey, reached: dict[str, str]) -> None:
    names = join_some([f"'{name}'" for name in reached], _MAX_LISTED)
    message = f"leads browsers to {names} by a URL of this machine, which publishes ports in Docker alone"
    hint = f"write {join_some(list(reached.values()), _MAX_LISTED)}, in compose.platform.yaml"
    checker.add("local-url", path, message, hint)


def _published(checker: Checker, plan: Plan) -> dict[int, tuple[str, str]]:
    """Return the ports that Docker would publish, each with the service and the URL to write instead."""
    urls = {
        (service, port): _portable(url, endpoint.name, plan.namespace)
        for endpoint in plan.endpoints
        for url, service, port in endpoint.addresses
    }
    found: dict[int, tuple[str, str]] = {}
    for service in checker.project.services.values():
        for port in service.ports:
            url = urls.get((service.name, port.target))
            if url and port.published is not None:
                found.setdefault(port.published, (service.name, url))
    return found


def _portable(url: str, endpoint: str, namespace: str) -> str:
    """Return a URL with the variables of its namespace and its domain, which are others elsewhere."""
    host, slash, path = url.removeprefix("https://").partition("/")
    name, dot, _ = host.partition(".")
    if name != f"{endpoint}-{namespace}" or not dot:
        return "its URL, which 'platform check --explain' lists"
    return f"https://{endpoint}-${{PLATFORM_NAMESPACE}}.${{PLATFORM_DOMAIN}}{slash}{path}"


def _texts(checker: Checker, service: Service) -> Iterator[tuple[PathKey, str]]:
    for variable, value in service.variables.items():
        yield variable_path(checker, service, variable), value
    for name, value in service.build.args.items() if service.build else ():
        path = ("services", service.name, "build", "args", name)
        yield path if checker.origins.has(*path) else path[:-1], value
