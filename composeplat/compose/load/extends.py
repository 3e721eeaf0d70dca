"""Merge services with those that they extend, in full mode.

Owns Compose's ``extends``: the service of the same file, or of another one, comes first, and the extending service is
merged over it, by the rules of several files. Nothing else of another file is taken: no volumes, no networks, and no
``include``.
Must not know what keys mean. Paths of another file are relative to its folder, because each node knows its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path

from composeplat.compose.interpolate import interpolate
from composeplat.compose.load.sources import Sources
from composeplat.compose.merge import merge, merge_service
from composeplat.compose.nodes import RESET, Mapping, Node, Scalar, find_node
from composeplat.compose.parse.fields import Context, Field
from composeplat.compose.values import is_address, parse_path
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.compose.yaml_reader import MAX_NODES
from composeplat.diagnostics import join_some
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot
from composeplat.system.records import mutable

MAX_FILES = 100
MAX_CHAIN = 100
_MAX_SHOWN = 8

Step = tuple[str, str]
"""A file and a service of it."""


@mutable
class _File:
    """The services of one file, before and after they are merged with what they extend."""

    path: str
    services: Mapping
    variables: Variables
    included: Mapping
    """The services of the files that it includes."""
    merged: dict[str, Node] = field(default_factory=dict)


class Extends:
    def __init__(
        self,
        sources: Sources,
        references: VariableReferences,
        root: ProjectRoot,
        of_sources: dict[int, Variables],
        *,
        substitute: bool,
    ) -> None:
        self._sources = sources
        self._report = sources.report
        self._references = references
        self._root = root
        self._of_sources = of_sources
        self._substitute = substitute
        self._files: dict[tuple[str, int], _File | None] = {}
        self._size = 0

    def apply(self, document: Node, path: str, variables: Variables, included: Node | None) -> Node:
        """Return a file's document with each service merged over the one that it extends, here or in an include."""
        services = document.get("services") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(services, Mapping):
            return document
        if not any(isinstance(service, Mapping) and "extends" in service for _, service in services):
            return document
        others = find_node(included, "services")
        file = _File(path, services, variables, others if isinstance(others, Mapping) else Mapping(services.span))
        merged = {name: (key, self._merged(file, name, ((path, name),))) for name, (key, _) in services.entries.items()}
        entries = dict(document.entries)
        entries["services"] = (document.key("services"), Mapping(services.span, merged, services.tag, services.size))
        return Mapping(document.span, entries, document.tag, document.size)

    def _merged(self, file: _File, name: str, trail: tuple[Step, ...]) -> Node:
        if name not in file.merged:
            service = file.services.entries[name][1]
            if isinstance(service, Mapping) and "extends" in service:
                service = self._extended(file, name, service, trail)
            file.merged[name] = service
        return file.merged[name]

    def _with_included(self, file: _File, name: str, trail: tuple[Step, ...]) -> Node:
        """Return a service, merged over the one of its name in an include."""
        below = file.included.get(name)
        if below is not None and name not in file.services:
            return below
        own = self._merged(file, name, trail)
        return own if below is None else merge_service(name, below, own, self._report)

    def _extended(self, file: _File, name: str, service: Mapping, trail: tuple[Step, ...]) -> Node:
        entries = {key: entry for key, entry in service.entries.items() if key != "extends"}
        own = Mapping(service.span, entries, service.tag, service.size)
        reference = service.entries["extends"][1]
        if reference.tag == RESET or (isinstance(reference, Scalar) and reference.is_null):
            return own
        whole = Field(Context(self._report, file.variables), reference, ("services", name, "extends"))
        base = self._base(whole, file, trail)
        if base is None and len(trail) > 1:
            # The service at the start of the chain has no error of its own, and would get false ones.
            self._sources.complete = False
        return merge_service(name, base, own, self._report) if isinstance(base, Mapping) else own

    def _base(self, whole: Field, file: _File, trail: tuple[Step, ...]) -> Node | None:
        """Return the service that is extended, merged itself; None if there is an error."""
        found = _read_reference(whole)
        if found is None:
            return None
        place, reference = found
        base_file = file if place is None else self._open(place, file)
        if base_file is None or not self._is_service(reference, base_file, is_own=place is None):
            return None
        step = base_file.path, reference.text() or ""
        if not self._is_allowed(reference, step, trail):
            return None
        base = self._with_included(base_file, step[1], (*trail, step))
        if place is not None:
            base = _with_context_of(whole.node, base)
        return base if self._fits(reference, base) else None

    def _is_service(self, reference: Field, file: _File, *, is_own: bool) -> bool:
        """Report a service that the file does not have."""
        name = reference.text()
        if name is None or name in file.services or name in file.included:
            return name is not None
        where = "this file" if is_own else f"'{self._sources.shown(file.path)}'"
        message = f"names {reference.node.shown}, which is not a service of {where}"
        names = {**file.included.entries, **file.services.entries}
        hint = self._report.near(name, names) or _listed(names)
        other = "; name the file of another service with 'file'" if is_own else ""
        reference.report("undefined-service", message, f"{hint}{other}".removeprefix("; "))
        return False

    def _is_allowed(self, reference: Field, step: Step, trail: tuple[Step, ...]) -> bool:
        """Report a cycle, and a chain that is too long."""
        if step in trail:
            names = [name for _, name in (*trail[trail.index(step) :], step)]
            shown = " -> ".join(names if len(names) <= _MAX_SHOWN else [*names[: _MAX_SHOWN - 2], "…", names[-1]])
            reference.report("extends-cycle", f"closes a cycle: {shown}", "remove one of these 'extends'")
        elif len(trail) > MAX_CHAIN:
            reference.report("invalid-value", f"makes a chain of more than {MAX_CHAIN} services that extend each other")
        return step not in trail and len(trail) <= MAX_CHAIN

    def _fits(self, reference: Field, base: Node) -> bool:
        """Limit the size of all services together: a large one may be extended often."""
        before, self._size = self._size, self._size + base.size
        if self._size > MAX_NODES >= before:
            reference.report("too-large", f"brings the extended services above {MAX_NODES} values")
        return self._size <= MAX_NODES

    def _open(self, place: Field, file: _File) -> _File | None:
        """Read the services of another file, once; its path is relative to the folder of the file that names it."""
        text = local_path(place)
        if not text:
            return None
        path = os.path.normpath(os.path.join(place.base, text))
        key = real_path(path), id(file.variables)
        if key not in self._files:
            if len(self._files) >= MAX_FILES:
                place.report("invalid-value", f"exceeds the limit of {MAX_FILES} files of 'extends'")
                return None
            self._files[key] = self._read(place, path, file.variables)
        return self._files[key]

    def _read(self, place: Field, path: str, variables: Variables) -> _File | None:
        try:
            content = self._sources.content(path, self._root)
        except files.Unreadable as error:
            place.report(error.code or "unreadable-file", f"names {place.node.shown}, which {error.reason}", error.hint)
            return None
        whole: Node | None = None
        for raw in self._sources.nodes_of(content, path, Path(os.path.dirname(path))):
            self._of_sources[raw.span.source.order] = variables
            node = interpolate(raw, variables, self._report, self._references) if self._substitute else raw
            whole = node if whole is None else merge(whole, node, self._report)
        services = whole.get("services") if isinstance(whole, Mapping) else None
        if isinstance(services, Mapping):
            return _File(real_path(path), services, variables, Mapping(services.span))
        if self._sources.complete:
            place.report("no-services", f"names {place.node.shown}, which has no services")
        return None


def _with_context_of(reference: Node, base: Node) -> Node:
    """Give a build without a context the folder of the extending file, as Compose does."""
    build = base.get("build") if isinstance(base, Mapping) else None
    if not isinstance(base, Mapping) or not isinstance(build, Mapping) or "context" in build:
        return base
    return replace(base, entries={**base.entries, "build": (base.key("build"), replace(build, span=reference.span))})


def _read_reference(whole: Field) -> tuple[Field | None, Field] | None:
    """Read the short form, a service of the same file, or the long one: the file, if it is another, and the service."""
    if isinstance(whole.node, Scalar):
        return None, whole
    found = dict(whole.members("a text or a mapping"))
    for name, place in found.items():
        if name not in ("file", "service") and not name.startswith("x-"):
            place.report("unknown-key", "is not a key of 'extends'")
    service, file = found.get("service"), found.get("file")
    if service is None or service.is_null:
        if isinstance(whole.node, Mapping):
            whole.report("missing-key", "must have a 'service'")
        return None
    return None if file is None or file.is_null else file, service


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return f"services are: {join_some(shown, _MAX_SHOWN)}" if shown else ""


def real_path(path: str) -> str:
    """Identify a file by its real path; an invalid path fails when it is read."""
    return path if "\0" in path else os.path.realpath(path)


def local_path(place: Field) -> str | None:
    """Return the path of a file on this machine; report an address."""
    text = place.value(parse_path)
    if text and is_address(text):
        place.report("invalid-value", "must be a file on this machine", "fetch it, and name the file")
        return None
    return text
