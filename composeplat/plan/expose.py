"""The Service that makes ports of a service reachable from outside, beside the one that gives it its DNS name.

Owns its name and ports, and that a port of databases and debuggers is exposed only if the definition allows it by
number.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.compose.extension_model import Expose, ExposedPort, ExposeType
from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.names import clean, shorten
from composeplat.plan.desired import DesiredObject, Manifest
from composeplat.plan.identity import Identity
from composeplat.plan.never_public import NEVER_PUBLIC
from composeplat.plan.resource_keys import ResourceKey, ResourceKind


def check_exposed(checker: Checker) -> None:
    """Check the exposed ports of all services, whose names and ports of the nodes must differ."""
    named: dict[str, str] = {}
    taken: dict[int | None, str] = {}
    services = checker.project.services.values()
    for service in services:
        for name in (clean(service.name), *service.networking.aliases):
            named.setdefault(name, service.name)
    for service in services:
        expose = service.extensions.expose
        if expose is not None:
            _check_ports(checker, service, expose)
            _check_node_ports(checker, service, taken)
            _check_name(checker, service, named)


def _check_ports(checker: Checker, service: Service, expose: Expose) -> None:
    for port in expose.ports:
        if port.target in NEVER_PUBLIC and port.target not in expose.allowed:
            message = "exposes a port on the list of ports of databases and debuggers, which are never public"
            shown = "" if checker.origins.is_substituted(*port.origin) else f": allow_never_public: [{port.target}]"
            checker.add("exposed-never-public", port.origin, message, f"if it must be reached, allow it{shown}")
        _check_protocol(checker, service, port)


def _check_name(checker: Checker, service: Service, named: Mapping[str, str]) -> None:
    name = exposed_name(service)
    if name in named:
        message = f"needs a Service '{name}', which is a name of services.{named[name]}"
        checker.add("name-conflict", ("services", service.name, "x-expose"), message, "rename one of them", at_key=True)


def _check_protocol(checker: Checker, service: Service, port: ExposedPort) -> None:
    """Report a port that the service has for another protocol, which is not exposed beside it."""
    listed = sorted({other.protocol for other in service.ports if other.target == port.target})
    if listed and not any(is_exposed(service, port.target, protocol) for protocol in listed):
        number = checker.plain(str(port.target), port.origin)
        message = f"exposes the {port.protocol.upper()} port {number}, and the service has it for {listed[0].upper()}"
        checker.add("no-effect", port.origin, message, f"write {number}/{listed[0]}")


def _check_node_ports(checker: Checker, service: Service, taken: dict[int | None, str]) -> None:
    """Report a port of the nodes that an earlier Service has; one Service may have it for both TCP and UDP."""
    own: set[tuple[int | None, str]] = set()
    for port in _node_ports(service):
        owner = "another port" if (port.published, port.protocol) in own else taken.get(port.published)
        own.add((port.published, port.protocol))
        if owner is not None:
            message = f"has the same node port as {owner}"
            checker.add("name-conflict", port.origin, message, "give it another one, or leave it to the cluster")
    taken.update((number, f"services.{service.name}") for number, _ in own)


def _node_ports(service: Service) -> list[ExposedPort]:
    """Return the ports of a service whose number on the nodes the definition gives."""
    expose = service.extensions.expose
    if expose is None or expose.type is not ExposeType.NODE_PORT:
        return []
    return [port for port in expose.ports if port.published is not None]


def exposed_name(service: Service) -> str:
    return shorten(f"{clean(service.name)}-exposed")


def exposed_ports(service: Service) -> tuple[ExposedPort, ...]:
    expose = service.extensions.expose
    return expose.ports if expose else ()


def is_exposed(service: Service, target: int, protocol: str) -> bool:
    return any((port.target, port.protocol) == (target, protocol) for port in exposed_ports(service))


def plan_exposed(service: Service, identity: Identity) -> list[DesiredObject]:
    expose = service.extensions.expose
    if expose is None:
        return []
    name = clean(service.name)
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": identity.service_metadata(exposed_name(service), name),
        "spec": {
            "type": str(expose.type),
            "selector": identity.selector(clean(service.pod_owner)),
            "ports": [_port(expose, port) for port in expose.ports],
        },
    }
    return [DesiredObject(key=ResourceKey(ResourceKind.EXPOSED, name), manifest=manifest)]


def _port(expose: Expose, port: ExposedPort) -> Manifest:
    is_node_port = expose.type is ExposeType.NODE_PORT
    number = port.target if is_node_port else port.published or port.target
    fields: Manifest = {"name": f"{port.protocol}-{number}", "port": number, "targetPort": port.target}
    fields["protocol"] = port.protocol.upper()
    if is_node_port and port.published is not None:
        fields["nodePort"] = port.published
    return fields
