"""Parse networks: those of the file, and the network of a service with its names there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from composeplat.compose.model import DEFAULT_NETWORKS, Dependency, Service
from composeplat.compose.network_model import HOST_NETWORK, NO_NETWORK, Network, Networking
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence
from composeplat.compose.origins import alias_path, network_use_path
from composeplat.compose.parse.external import parse_external
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.placeholders import has_placeholder
from composeplat.names import clean, is_service_name

_PATTERN = "services.*.networks.*"
_SAME_AS_DEFAULT = ("", "bridge", "default")
_LOOPBACK = "localhost"


def parse_network_names(section: Section) -> frozenset[str] | None:
    """Read the names of a service's networks, also where they have no effect: a check reports the missing isolation."""
    node = section.whole.node
    if not isinstance(node, Mapping) or "network_mode" in node:
        return None
    whole = node.get("networks")
    if whole is None:
        return DEFAULT_NETWORKS
    section.whole.child("networks", whole, node.key("networks"))
    places = dict(_named_networks(whole))
    for name, (step, node) in places.items():
        path = (*section.whole.path, "networks", step)
        section.whole.ctx.origins.put_alias(network_use_path(str(section.whole.path[1]), name), node, path)
    return frozenset(places) or DEFAULT_NETWORKS


def _named_networks(whole: Node) -> Iterator[tuple[str, tuple[str | int, Scalar]]]:
    """Yield the names of a list or mapping, each with its last step and its node."""
    if isinstance(whole, Mapping):
        yield from ((key.text, (key.written, key)) for key, _ in whole)
    elif isinstance(whole, Sequence):
        yield from ((item.text, (index, item)) for index, item in whole.indexed_items if isinstance(item, Scalar))


def parse_networking(section: Section) -> Networking:
    own = section.get("container_name")
    places = [own] if own is not None else []
    places += [place for entry in _entries(section) for place in _aliases(entry)]
    return Networking(
        mode=_mode(section), aliases=_names(section, places), links=_links(section), hostname=_hostname(section)
    )


def _names(section: Section, places: list[Field]) -> tuple[str, ...]:
    """Read names, each once, and remember where they stand; the key of the service is no further one."""
    names: dict[str, Field] = {}
    own = str(section.whole.path[1]).lower()
    for place in places:
        text = place.text()
        if text and (_lower(text) != own or is_service_name(own)):
            names.setdefault(_lower(text), place)
    for name, place in names.items():
        section.whole.ctx.origins.put_alias(alias_path(str(section.whole.path[1]), name), place.node, place.path)
    return tuple(names)


def _lower(name: str) -> str:
    return name if has_placeholder(name) else name.lower()


def _hostname(section: Section) -> str:
    """Read the host name, by which others reach the container with Docker too, if a Service can have it."""
    found = section.get("hostname") if section.get("network_mode") is None else None
    name = (found.text() or "").lower() if found else ""
    if found is None or not is_service_name(name) or name == _LOOPBACK:
        return ""
    section.whole.ctx.origins.put_alias(alias_path(str(section.whole.path[1]), name), found.node, found.path)
    return name


def _entries(section: Section) -> list[Field]:
    found = section.get("networks")
    if found is None:
        return []
    if isinstance(found.node, Mapping):
        return [entry for _, entry in found.members() if not entry.is_null]
    for item in found.items("a list or a mapping"):
        item.text()
    return []


def _aliases(entry: Field) -> list[Field]:
    inner = entry.section(_PATTERN)
    found = inner.get("aliases") if inner else None
    return list(found.items()) if found else []


def _mode(section: Section) -> str:
    found = section.get("network_mode")
    text = found.text() if found else None
    if found is None or text is None or text in _SAME_AS_DEFAULT:
        return ""
    if text in (NO_NETWORK, HOST_NETWORK):
        return text
    kind, _, name = text.partition(":")
    if kind == "service" and name:
        return ""
    if kind == "container":
        message = f"is not supported and has no effect: it has its own network, not that of {found.node.shown}"
        found.report(
            "unsupported-key",
            message,
            "write service:NAME for a service of the definition, or reach it by its name, not localhost",
        )
    else:
        found.report("invalid-value", f"must be 'none', 'host' or 'service:NAME', not {found.node.shown}")
    return ""


# links ----------------------------------------------------------------------------------------------------------------


def _links(section: Section) -> tuple[tuple[str, str], ...]:
    """Read ``SERVICE[:ALIAS]``: the services and the names that this service knows them by."""
    found = section.get("links")
    links: list[tuple[str, str]] = []
    for item in found.items("a list of SERVICE or SERVICE:ALIAS") if found else ():
        text = item.text()
        service, _, alias = (text or "").partition(":")
        alias = _lower(alias or service)
        if service:
            name = str(section.whole.path[1])
            if not item.ctx.origins.has("services", name, "depends_on", service):
                item.ctx.origins.put_alias(("services", name, "depends_on", service), item.node, item.path)
            item.ctx.origins.put_alias(alias_path(service, alias), item.node, item.path)
            links.append((service, alias))
        elif text is not None:
            item.report("invalid-value", f"must be SERVICE or SERVICE:ALIAS, not {item.node.shown}")
    return tuple(links)


def with_further_names(services: dict[str, Service]) -> dict[str, Service]:
    """Let services be known by the names in ``links`` and by their host names, and linked ones start before."""
    return _with_hostnames(_with_linked_names(services))


def _with_hostnames(services: dict[str, Service]) -> dict[str, Service]:
    """Add each host name that means no other service; many files give several services the same."""
    holders = {clean(name): name for name in services}
    for service in services.values():
        for alias in service.networking.aliases:
            holders.setdefault(alias, service.name)
    found = dict(services)
    for name, service in services.items():
        own = service.networking
        if own.hostname and own.hostname not in own.aliases and holders.setdefault(own.hostname, name) == name:
            found[name] = replace(service, networking=replace(own, aliases=(*own.aliases, own.hostname)))
    return found


def _with_linked_names(services: dict[str, Service]) -> dict[str, Service]:
    """Let linked services start before, as Compose does, and be known by the names in ``links``."""
    names: dict[str, list[str]] = {}
    for service in services.values():
        for linked, alias in service.networking.links:
            names.setdefault(linked, []).append(alias)
    return {
        name: replace(
            service,
            depends_on=_with_links(service.depends_on, service.networking.links),
            networking=replace(
                service.networking, aliases=tuple(dict.fromkeys((*service.networking.aliases, *names.get(name, ()))))
            ),
        )
        if service.networking.links or name in names
        else service
        for name, service in services.items()
    }


def _with_links(dependencies: tuple[Dependency, ...], links: tuple[tuple[str, str], ...]) -> tuple[Dependency, ...]:
    named = {dependency.service for dependency in dependencies}
    linked = dict.fromkeys(service for service, _ in links if service not in named)
    return (*dependencies, *(Dependency(service=service, restart=True) for service in linked))


# the file's networks --------------------------------------------------------------------------------------------------


def parse_networks(section: Section) -> dict[str, Network]:
    whole = section.get("networks")
    networks = {name: Network(name=name) for name in DEFAULT_NETWORKS}
    for name, place in whole.members() if whole else ():
        networks[name] = _read_network(name, place)
    return networks


def _read_network(name: str, place: Field) -> Network:
    section = None if place.is_null else place.section("networks.*")
    if section is None:
        return Network(name=name)
    shared, given = parse_external(section, "networks")
    return Network(
        name=name,
        shared_name=(given or name) if shared else "",
        internal=section.boolean("internal", default=False),
    )
