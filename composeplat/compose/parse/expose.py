"""Parse ``x-expose``: the ports of a service that are reached from outside without an endpoint."""

from __future__ import annotations

from composeplat.compose.extension_model import Expose, ExposedPort, ExposeType
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.port_values import PortText, parse_port, parse_port_number
from composeplat.compose.values import BadValue

_EXPOSE = "services.*.x-expose"
_NODE_PORTS = range(30000, 32768)


def parse_expose(service: Section) -> Expose | None:
    section = service.section("x-expose", _EXPOSE)
    if section is None:
        return None
    written, listed = section.get("type"), section.get("ports")
    chosen = written.choice(*ExposeType) if written else None
    if written is None:
        section.whole.report("missing-key", "must have 'type'", "write type: LoadBalancer, or type: NodePort")
    if listed is None:
        section.whole.report(
            "missing-key", "must have 'ports'", "write the ports of the container, as in ports: [53/udp]"
        )
    if chosen is None or listed is None:
        return None
    kind = ExposeType(chosen)
    ports = _ports(listed, kind)
    if listed.is_empty_list:
        listed.report("invalid-value", "must name a port")
    return Expose(type=kind, ports=ports, allowed=_allowed(section)) if ports else None


def _allowed(section: Section) -> frozenset[int]:
    listed = section.get("allow_never_public")
    ports = [item.value(parse_port_number) for item in listed.items()] if listed else []
    return frozenset(port for port in ports if port is not None)


def _ports(listed: Field, kind: ExposeType) -> tuple[ExposedPort, ...]:
    found: dict[tuple[int, str], ExposedPort] = {}
    for item in listed.items():
        text = item.value(_parse_node_port if kind is ExposeType.NODE_PORT else _parse_exposed)
        if text is None:
            continue
        for published, target in text.pairs:
            port = ExposedPort(target=target, published=published, protocol=text.protocol, origin=item.path)
            # A Service has each of its ports once; the one of a node port is the container's.
            number = target if kind is ExposeType.NODE_PORT else published or target
            if found.setdefault((number, text.protocol), port) is not port:
                item.report("name-conflict", "exposes the same port as another one", "leave it out")
    return tuple(found.values())


def _parse_exposed(text: str) -> PortText:
    port = parse_port(text)
    if port.host_ip:
        raise BadValue("must be a port without an address, such as 53:5353/udp")
    return port


def _parse_node_port(text: str) -> PortText:
    port = _parse_exposed(text)
    if any(published is not None and published not in _NODE_PORTS for published, _ in port.pairs):
        message = f"must publish a port of nodes, {_NODE_PORTS[0]} to {_NODE_PORTS[-1]}, or leave it to the cluster"
        raise BadValue(message)
    return port
