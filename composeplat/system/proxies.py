"""Which proxy leads to an address: what ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` say, as Go's programs read it.

Owns the grammar of these variables, and how a host and a port are written as an address; a user and password in a
proxy's URL are kept, and never shown.
Must not open a connection, nor read the environment of the process.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from composeplat.diagnostics import MissingPiece
from composeplat.system.records import record

if TYPE_CHECKING:  # loaded only where a proxy is named
    from ipaddress import IPv4Address, IPv6Address

_PORT = 80
_DEFAULT_PORTS = {"http": 80, "https": 443}


def join_host_port(host: str, port: int) -> str:
    """Return the address of a port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@record(kw_only=True)
class Proxy:
    """An HTTP proxy that connections are made through by ``CONNECT``."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of the ``Proxy-Authorization`` header."""

    @property
    def netloc(self) -> str:
        return join_host_port(self.host, self.port)

    @property
    def address(self) -> str:
        return f"http://{self.netloc}"


def parse_proxy(url: str, named_by: str) -> Proxy:
    """Read a proxy's URL; without a scheme it is an HTTP proxy."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port or _PORT
    except ValueError:
        parts, host, port = urlsplit(""), "", _PORT
    if not host:
        raise MissingPiece(f"{named_by} must be the URL of a proxy", "such as http://proxy.example.com:3128")
    if parts.scheme != "http":
        raise MissingPiece(
            f"{named_by} names a proxy of the kind '{parts.scheme}', which is not supported", "use an http:// proxy"
        )
    return Proxy(host=host, port=port, authorization=_authorization(parts.username, parts.password))


def _authorization(user: str | None, password: str | None) -> str:
    if user is None:
        return ""
    return "Basic " + base64.b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode("ascii")


def find_proxy(environment: Mapping[str, str], scheme: str, host: str, port: int) -> Proxy | None:
    """Return the proxy of the environment for an address; this machine needs none."""
    name = f"{scheme.upper()}_PROXY"
    found = next((key for key in (name, name.lower()) if environment.get(key)), "")
    listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not found or _is_here(host) or any(_covers(entry, host, port) for entry in listed.split(",")):
        return None
    return parse_proxy(environment[found], f"the environment variable {found}")


def find_proxy_for(environment: Mapping[str, str], url: str) -> Proxy | None:
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    return find_proxy(environment, parts.scheme, parts.hostname or "", port)


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(entry: str, host: str, port: int) -> bool:
    """Check an entry of ``NO_PROXY`` for an address: it is ``*``, a domain, an address or a network, with a port."""
    entry = entry.strip().lower()
    if entry in ("", "*"):
        return entry == "*"
    address = _address(host)
    if "/" in entry:
        return address is not None and _is_within(address, entry)
    entry, wanted = _split_port(entry)
    if wanted and wanted != str(port):
        return False
    if address is not None:
        return _address(entry) == address
    domain, host = entry.removeprefix("*"), host.lower().rstrip(".")
    return host == domain or host.endswith("." + domain.removeprefix("."))


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _is_within(address: IPv4Address | IPv6Address, network: str) -> bool:
    import ipaddress

    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    import ipaddress

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
