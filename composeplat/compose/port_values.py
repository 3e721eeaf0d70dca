"""The grammar of ports: ``127.0.0.1:8080-8081:80-81/tcp``.

Owns how the short form is read, and which addresses are loopback addresses. It is apart from
:mod:`~composeplat.compose.values` for its length, and like it must not know YAML, spans or Kubernetes objects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from composeplat.compose.placeholders import LateNumber, is_placeholder
from composeplat.compose.values import BadValue, parse_int
from composeplat.system.records import record

MAX_PORT = 65535
MAX_PORTS_IN_RANGE = 256
_LONG_RANGE_HINT = (
    "name fewer, also in the settings of its program; for Kubernetes alone: 'ports: !override' in compose.platform.yaml"
)
_ADDRESS = r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*|localhost)\Z"
PROTOCOLS = ("tcp", "udp", "sctp")


@record(kw_only=True)
class PortText:
    """A port in its short form, ``ip:published:target/protocol``, with ranges expanded to pairs."""

    pairs: tuple[tuple[int | None, int], ...]
    """(published or None, target)"""
    protocol: str
    host_ip: str
    from_range: bool = False


def is_loopback(address: str) -> bool:
    """Whether an address is a loopback address."""
    if address == "localhost":
        return True
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback


def parse_port_number(text: str) -> int:
    return parse_int(text, lowest=1, highest=MAX_PORT)


def parse_port_range(text: str, *, limit: int = MAX_PORTS_IN_RANGE) -> Sequence[int]:
    if is_placeholder(text):
        return (LateNumber(MAX_PORT, text),)
    first, dash, last = text.partition("-")
    start = parse_port_number(first)
    stop = parse_port_number(last) if dash else start
    if stop < start:
        raise BadValue("must be a range from a lower port to a higher one")
    if stop - start >= limit:
        raise BadValue(f"must name at most {limit} ports in one range", hint=_LONG_RANGE_HINT)
    return range(start, stop + 1)


def parse_published(text: str) -> Sequence[int] | None:
    """Read a published port, or a range; None where the number is left to Docker.

    Of a range for one port, Docker chooses a free number, so that it may be long; for several ports, theirs limits it.
    """
    return None if text in ("", "0") else parse_port_range(text, limit=MAX_PORT)


def parse_port(text: str) -> PortText:
    """Read the short form ``[[ip:]published:]target[/protocol]``."""
    expected = "must be a port such as 80, 8080:80, 127.0.0.1:8080:80 or 53:53/udp"
    rest, slash, protocol = text.partition("/")
    protocol = protocol.lower() if slash else "tcp"
    if protocol not in PROTOCOLS:
        raise BadValue("must have a protocol of tcp, udp or sctp after the '/'")
    host_ip, published = "", ""
    is_bracketed = rest.startswith("[")
    if is_bracketed:
        host_ip, _, rest = rest[1:].partition("]:")
    match rest.split(":"):
        case [target]:
            pass
        case [published, target]:
            pass
        case [*address, published, target] if not is_bracketed:  # an IPv6 address without brackets has colons
            host_ip = ":".join(address)
        case _:
            raise BadValue(expected)
    if host_ip and not re.match(_ADDRESS, host_ip, flags=re.ASCII):
        raise BadValue(expected)
    try:
        targets = parse_port_range(target)
        sources = parse_published(published)
    except BadValue as error:
        if re.fullmatch(r"[0-9:.\[\]-]*[0-9]", rest):
            raise
        raise BadValue(expected) from error
    return PortText(
        pairs=pair_ports(sources, targets),
        protocol=protocol,
        host_ip=host_ip,
        from_range=sources is not None and len(sources) > len(targets),
    )


def pair_ports(sources: Sequence[int] | None, targets: Sequence[int]) -> tuple[tuple[int | None, int], ...]:
    if sources is None:
        return tuple((None, target) for target in targets)
    if len(targets) == 1:
        return ((sources[0], targets[0]),)
    if len(sources) != len(targets):
        raise BadValue("must have ranges of the same length on both sides")
    return tuple(zip(sources, targets, strict=True))
