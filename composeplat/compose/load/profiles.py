"""Which services a definition has for the chosen profiles.

Owns Compose's rule: a service without ``profiles`` is always active, one with some if one of them is chosen, and a
service that the command names brings its profiles. ``platform init`` asks the same question.
Must not know a service's other keys, but for the names of what only inactive services use: these leave the definition
with them, so that there is no message about what nobody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from composeplat.compose.nodes import Mapping as MappingNode, Node, Scalar, Sequence
from composeplat.compose.parse.fields import Context, Field
from composeplat.diagnostics import Report
from composeplat.system.records import record

_ALL = "*"
#: The top-level keys whose entries services use by name.
_RESOURCES = ("volumes", "networks", "configs", "secrets")

#: The sections whose entries have profiles.
_SECTIONS = ("services", "jobs")

Profiles = Mapping[str, tuple[str, ...]]


@record
class Selection:
    """A definition without its inactive services, and the profiles of these."""

    document: Node
    inactive: Profiles = field(default_factory=dict)


def read_profiles(document: Node, report: Report) -> Profiles:
    """Return the profiles of each service; report those that are no list of texts."""
    ctx = Context(report)
    return {
        key.text: tuple(place.text() or "" for place in _profiles(Field(ctx, service, (section, key.text))))
        for section in _SECTIONS
        for key, service in _entries(document, section)
    }


def _entries(document: Node, section: str) -> MappingNode | tuple[()]:
    """Return the entries of a section, which profiles choose from."""
    found = document.get(section) if isinstance(document, MappingNode) else None
    return found if isinstance(found, MappingNode) else ()


def _profiles(service: Field) -> Iterator[Field]:
    found = service.node.get("profiles") if isinstance(service.node, MappingNode) else None
    if found is None or (isinstance(found, Scalar) and found.is_null):
        return
    yield from (item for item in service.child("profiles", found).items() if item.text() is not None)


def active_services(profiles: Profiles, chosen: Collection[str], named: Collection[str] = ()) -> frozenset[str]:
    """Return the services that the chosen profiles start, and those of the named services.

    Where none is chosen, the profile without a name is, as in Compose: ``profiles: ["", pg]`` starts a service then.
    """
    wanted = {*(chosen or ("",)), *(profile for name in named for profile in profiles.get(name, ()))}
    return frozenset(name for name, own in profiles.items() if not own or _ALL in wanted or not wanted.isdisjoint(own))


def select(document: Node, chosen: Collection[str], named: Collection[str], report: Report) -> Selection:
    """Drop the inactive services from a definition, and what nobody else uses."""
    profiles = read_profiles(document, report)
    active = active_services(profiles, chosen, named)
    if len(active) == len(profiles) or not isinstance(document, MappingNode):
        return Selection(document)
    inactive = {name: _shown_profiles(name, document) for name in profiles if name not in active}
    return Selection(limited_to(document, active), inactive)


def limited_to(document: MappingNode, names: Collection[str]) -> MappingNode:
    """Return a definition with some of its services, and without the entries that only the others use."""
    dropped = {kind: _names_of_others(document, kind, names) for kind in _RESOURCES}
    others = frozenset(key.text for section in _SECTIONS for key, _ in _entries(document, section)) - {*names}
    dropped |= dict.fromkeys(_SECTIONS, others)
    entries = {
        name: (key, _without(value, dropped.get(name, frozenset()))) for name, (key, value) in document.entries.items()
    }
    emptied = [kind for kind in _RESOURCES if dropped[kind] and not _has_entries(entries.get(kind))]
    kept = {name: entry for name, entry in entries.items() if name not in emptied}
    return MappingNode(document.span, kept, document.tag, document.size)


def _shown_profiles(name: str, document: Node) -> tuple[str, ...]:
    """Return the profiles of a service for messages: one from a variable as the file has it."""
    nodes = [node for section in _SECTIONS for key, node in _entries(document, section) if key.text == name]
    places = _profiles(Field(Context(Report()), nodes[0], ("services", name)))
    return tuple(place.node.written if place.node.is_substituted else place.text() or "" for place in places)


def _has_entries(entry: tuple[Scalar, Node] | None) -> bool:
    return entry is not None and isinstance(entry[1], MappingNode) and bool(entry[1].entries)


def _names_of_others(document: Node, kind: str, kept: Collection[str]) -> frozenset[str]:
    """Return the names that the services which are not kept use alone."""
    used: dict[bool, set[str]] = {True: set(), False: set()}
    for section in _SECTIONS:
        for key, service in _entries(document, section):
            used[key.text in kept].update(_names_used(service, kind))
    return frozenset(used[False] - used[True])


def _names_used(service: Node, kind: str) -> Iterator[str]:
    """Yield the names of top-level entries that a service uses, in the short and the long form."""
    if not isinstance(service, MappingNode):
        return
    build = service.get("build")
    for owner in (service, build):
        found = owner.get(kind) if isinstance(owner, MappingNode) else None
        if isinstance(found, MappingNode):
            yield from found.entries
        for item in found if isinstance(found, Sequence) else ():
            source = item.get("source") if isinstance(item, MappingNode) else item
            if isinstance(source, Scalar):
                yield source.text.partition(":")[0]


def _without(node: Node, names: Collection[str]) -> Node:
    if not names or not isinstance(node, MappingNode):
        return node
    kept = {name: entry for name, entry in node.entries.items() if name not in names}
    return MappingNode(node.span, kept, node.tag, node.size)
