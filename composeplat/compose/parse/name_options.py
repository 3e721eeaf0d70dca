"""Parse the keys of a service about names: its resolver, its hosts file and its own name.

They have an effect in full mode alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address

from composeplat.compose.nodes import Mapping
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.swarm_templates import HOSTNAME_FIX, describe_template
from composeplat.compose.parse.unsupported_keys import HOST_GATEWAY
from composeplat.compose.pod_model import NameOptions
from composeplat.compose.values import BadValue
from composeplat.names import clean, is_dns_label, is_dns_name

_MAX_SERVERS, _MAX_SEARCHES = 3, 29
_OPTION = r"[a-z][a-z0-9-]{0,63}(?::[0-9]{1,5})?\Z"


def parse_name_options(section: Section) -> NameOptions:
    hostname, _, rest = _hostname(section).partition(".")
    domain = section.value("domainname", _parse_domain, "") or rest
    return NameOptions(
        servers=_servers(section),
        searches=_searches(section),
        resolver_options=tuple(_resolver_options(section)),
        hosts=tuple(dict.fromkeys(_hosts(section))),
        hostname=hostname or (clean(str(section.whole.path[1])) if domain else ""),
        domain=domain,
    )


# the resolver ---------------------------------------------------------------------------------------------------------


def _servers(section: Section) -> tuple[str, ...]:
    found = section.get("dns")
    given = [item for item in found.items_or_text() if item.text() != ""] if found else []
    read = [(item, item.value(_parse_address)) for item in given]
    servers = [(item, address) for item, address in read if address is not None]
    for item, _ in servers[_MAX_SERVERS:]:
        item.report("no-effect", f"is left out: a pod has at most {_MAX_SERVERS} name servers")
    if found and servers:
        message = "replaces the cluster's name server: names of services resolve only if these servers know them"
        found.report("needs-cluster-setting", message, "leave it out, or name a server that forwards to the cluster's")
    return tuple(address for _, address in servers[:_MAX_SERVERS])


def _parse_address(text: str) -> str:
    if "%" in text:
        raise BadValue("must be an IP address without a zone, which is an interface of this machine")
    try:
        return str(ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError as error:
        raise BadValue("must be an IP address") from error


def _searches(section: Section) -> tuple[str, ...]:
    found = section.get("dns_search")
    read = [(item, item.value(_parse_search)) for item in found.items_or_text()] if found else []
    for item, domain in read:
        if domain == ".":
            item.report("no-effect", "asks for no search domains; those of the cluster stay, for the names of services")
    domains = [(item, domain) for item, domain in read if domain and domain != "."]
    for item, _ in domains[_MAX_SEARCHES:]:
        item.report("no-effect", f"is left out: a pod has at most {_MAX_SEARCHES} search domains besides the cluster's")
    return tuple(dict.fromkeys(domain for _, domain in domains[:_MAX_SEARCHES]))


def _parse_search(text: str) -> str:
    return text if text == "." else _parse_domain(text)


def _parse_domain(text: str) -> str:
    domain = text.lower().removesuffix(".")
    if domain and not is_dns_name(domain):
        raise BadValue("must be a domain such as example.com")
    return domain


def _resolver_options(section: Section) -> Iterator[tuple[str, str | None]]:
    found = section.get("dns_opt")
    for item in found.items_or_text() if found else ():
        text = item.value(_parse_option)
        if text:
            name, colon, value = text.partition(":")
            yield name, value if colon else None


def _parse_option(text: str) -> str:
    if not re.match(_OPTION, text):
        raise BadValue("must be an option of a resolver, such as ndots:2 or use-vc")
    return text


# the hosts file -------------------------------------------------------------------------------------------------------


def _hosts(section: Section) -> Iterator[tuple[str, str]]:
    """Yield each name with its address."""
    found = section.get("extra_hosts")
    for item, name, text in _host_entries(found) if found else ():
        if not is_dns_name(name.lower()):
            item.report("invalid-value", "must have a host name of letters, digits, '-' and '.' before the address")
        elif text == HOST_GATEWAY:
            message = f"must have an IP address, not {HOST_GATEWAY}: a pod does not run on this machine"
            hint = "deploy that program as a service and use its name, or give an address that the cluster can reach"
            item.report("invalid-value", message, hint)
        else:
            for part in text.split(","):
                address = item.value(partial(_parse_after, part.strip()))
                if address:
                    yield name.lower(), address


def _parse_after(text: str, _whole: str) -> str:
    """Parse the address of an entry, whose whole text a message shows."""
    return _parse_address(text)


def _host_entries(found: Field) -> Iterator[tuple[Field, str, str]]:
    """Yield the entries of ``[name=address]``, ``[name:address]``, ``name: address`` and ``name: [address]``."""
    if isinstance(found.node, Mapping):
        for name, place in found.members():
            for item in place.items_or_text():
                yield item, name, item.text() or ""
        return
    for item in found.items("a mapping or a list of NAME=ADDRESS"):
        text = item.text()
        if text is not None:
            name, _, address = text.partition("=" if "=" in text else ":")
            yield item, name.strip(), address.strip()


# the container's own name ---------------------------------------------------------------------------------------------


def _hostname(section: Section) -> str:
    """Read the host name, with a domain after its first dot."""
    found = section.get("hostname")
    text = found.text() if found else None
    if found is None or not text:
        return ""
    template = describe_template(text)
    if template:
        found.report("swarm-template", f"{template[0]}, and has no effect", HOSTNAME_FIX)
        return ""
    first, dot, domain = text.partition(".")
    cleaned = clean(first)
    if not is_dns_label(cleaned) or (dot and not is_dns_name(domain.lower())):
        found.report("invalid-value", "must be a host name of letters, digits and '-'")
        return ""
    if cleaned != first:
        shown = "another name" if found.node.is_substituted else f"'{cleaned}'"
        hint = "use small letters, digits and '-'" if found.node.is_substituted else f"name it {shown}"
        found.report("name-normalized", f"becomes {shown}, which is its host name", hint)
    return cleaned + dot + domain.lower()
