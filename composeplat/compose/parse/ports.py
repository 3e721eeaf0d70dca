"""Parse ``ports`` and ``expose``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from composeplat.compose.model import Port
from composeplat.compose.nodes import Scalar
from composeplat.compose.origins import port_path
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.port_values import (
    PROTOCOLS,
    PortText,
    is_loopback,
    pair_ports,
    parse_port,
    parse_port_range,
    parse_published,
)
from composeplat.compose.values import BadValue, parse_known

MAX_PORTS = 20_000


def parse_ports(service: Section) -> tuple[Port, ...]:
    """Return every port of a service, ``ports`` first; a port that is both mapped and exposed is one port."""
    kept: dict[tuple[int | None, int, str], Port] = {}
    ports = service.get("ports")
    for item in ports.items() if ports else ():
        for port in _counted(item, _read_port(item)):
            _keep(kept, port)
            item.ctx.origins.put_alias(port_path(str(service.whole.path[1]), port), item.node, item.path)
    mapped = {(port.target, port.protocol) for port in kept.values()}
    expose = service.get("expose")
    for item in expose.items() if expose else ():
        for port in _counted(item, _read_exposed(item)):
            if (port.target, port.protocol) not in mapped:
                kept.setdefault((None, port.target, port.protocol), port)
                item.ctx.origins.put_alias(port_path(str(service.whole.path[1]), port), item.node, item.path)
    return tuple(kept.values())


def _keep(kept: dict[tuple[int | None, int, str], Port], port: Port) -> None:
    """Keep a port once; if it is bound to loopback and to every address, every address wins."""
    key = (port.published, port.target, port.protocol)
    if key not in kept or (kept[key].loopback and not port.loopback):
        kept[key] = port


def _counted(item: Field, ports: Iterator[Port]) -> Iterator[Port]:
    """Stop at the limit of ports: a short file of ranges can name very many."""
    for port in ports:
        item.ctx.ports.value += 1
        if item.ctx.ports.value > MAX_PORTS:
            item.report("invalid-value", f"exceeds the limit of {MAX_PORTS} ports")
            return
        yield port


def _read_port(item: Field) -> Iterator[Port]:
    if isinstance(item.node, Scalar):
        text = item.value(parse_port)
        if text:
            _report_ignored(item, text)
            loopback = is_loopback(text.host_ip)
            for published, target in text.pairs:
                yield Port(target=target, published=published, protocol=text.protocol, loopback=loopback)
        return
    section = item.section("services.*.ports.*")
    if section:
        yield from _read_long_port(section)


def _report_ignored(item: Field, text: PortText) -> None:
    _report_address(item, text.host_ip)
    if text.from_range:
        _report_range(item)


def _report_range(item: Field) -> None:
    item.report("no-effect", "maps a range of host ports to one port; the first is used")


def _report_address(place: Field, host_ip: str) -> None:
    if host_ip and not is_loopback(host_ip):
        place.report("no-effect", "names a host address, which has no effect in a cluster", "leave the address out")


def _read_long_port(section: Section) -> Iterator[Port]:
    target_field = section.get("target")
    if target_field is None:
        section.report_missing("target", "the port inside the container")
        return
    targets = target_field.value(parse_port_range)
    published_field = section.get("published")
    published = published_field.value(parse_published) if published_field else None
    if targets is None:
        return
    address_field = section.get("host_ip")
    host_ip = (address_field.value(parse_known) if address_field else None) or ""
    if address_field:
        _report_address(address_field, host_ip)
    protocol_field = section.get("protocol")
    protocol = protocol_field.value(_parse_protocol) if protocol_field else "tcp"
    try:
        pairs = pair_ports(published, targets)
    except BadValue as error:
        section.whole.report("invalid-value", str(error))
        return
    if published is not None and len(published) > len(targets):
        _report_range(section.whole)
    for host, container in pairs:
        yield Port(
            target=container,
            published=host,
            protocol=protocol or "tcp",
            name=section.value("name", parse_known, ""),
            app_protocol=section.value("app_protocol", parse_known, ""),
            loopback=is_loopback(host_ip),
        )


def _parse_protocol(text: str) -> str:
    if text.lower() not in PROTOCOLS:
        raise BadValue("must be 'tcp', 'udp' or 'sctp'")
    return text.lower()


def _read_exposed(item: Field) -> Iterator[Port]:
    def parse_exposed(text: str) -> tuple[Sequence[int], str]:
        numbers, slash, protocol = text.partition("/")
        protocol = protocol.lower() if slash else "tcp"
        if protocol not in PROTOCOLS:
            raise BadValue("must have a protocol of tcp, udp or sctp after the '/'")
        if ":" in numbers:
            raise BadValue("must be a container port such as 8080; to publish it, use 'ports'")
        return parse_port_range(numbers), protocol

    read = item.value(parse_exposed)
    if read:
        for target in read[0]:
            yield Port(target=target, protocol=read[1], exposed=True)
