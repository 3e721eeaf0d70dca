"""Merge the documents of a definition, each with its includes.

Owns the order of merging and Compose's ``include``.
Must not know any other key.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from composeplat.compose.dotenv import Lookup
from composeplat.compose.interpolate import interpolate
from composeplat.compose.load.extends import Extends, local_path, real_path
from composeplat.compose.load.sources import Fallbacks, Sources
from composeplat.compose.load.variables import default_env_file
from composeplat.compose.merge import apply_tags, merge
from composeplat.compose.nodes import RESET, Mapping, Node, Scalar
from composeplat.compose.parse.fields import Context, Field
from composeplat.compose.values import parse_path
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import Report, Source, Span
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot
from composeplat.system.records import record

MAX_INCLUDES = 100
_NOT_INCLUDED = ("name", "version", "x-platform")


@record
class Include:
    """An entry of ``include``: files that are merged, with their own folder and env files."""

    places: list[Field]
    names: list[str]
    folder: Path
    env_files: Sequence[tuple[Field | None, str]]
    """Each with its place, which the ``.env`` of the folder has not."""


class Documents:
    def __init__(
        self,
        sources: Sources,
        references: VariableReferences,
        root: ProjectRoot,
        *,
        substitute: bool,
        extends: bool,
    ) -> None:
        self.sources = sources
        self.root = root
        self.report = sources.report
        self.references = references
        self.substitute = substitute
        self._trail: list[str] = []
        self._included = 0
        self.of_sources: dict[int, Variables] = {}
        """The variables of each file, by the number of its source."""
        self._extends = Extends(sources, references, root, self.of_sources, substitute=substitute) if extends else None

    def join(self, texts: list[tuple[str, list[Node]]], variables: Variables) -> Node:
        """Merge the documents of several files, in their order."""
        whole: Node | None = None
        for path, nodes in texts:
            self._trail.append(real_path(path))
            for raw in nodes:
                self.of_sources[raw.span.source.order] = variables
                node = interpolate(raw, variables, self.report, self.references) if self.substitute else raw
                node = self._with_includes(node, real_path(path), variables)
                whole = node if whole is None else merge(whole, node, self.report)
            self._trail.pop()
        return self._nothing(texts[0][0]) if whole is None else whole

    def _nothing(self, path: str) -> Node:
        """Return the definition of empty files."""
        name = os.path.relpath(path, self.sources.request.folder) if path != "-" else "<stdin>"
        return Mapping(Span(Source(name=name, base=Path(), order=1)))

    def _with_includes(self, node: Node, path: str, variables: Variables) -> Node:
        """Merge a file into its includes: the file wins, with what its services extend."""
        under: Node | None = None
        include = node.get("include") if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and include is not None:
            under = self._includes(Field(Context(self.report, variables), include, ("include",)), variables)
            node = _without(node, ("include",))
        if self._extends is not None:
            node = self._extends.apply(node, path, variables, under)
        return node if under is None else merge(under, node, self.report)

    def _includes(self, include: Field, variables: Variables) -> Node | None:
        under: Node | None = None
        found = () if include.is_null or include.node.tag == RESET else include.items("a list of files")
        for item in found:
            part = None if item.node.tag == RESET else self._include(item, variables)
            if part is not None:
                under = part if under is None else _merge_includes(under, part, self.report)
        return under

    def _include(self, item: Field, variables: Variables) -> Node | None:
        self._included += 1
        if self._included > MAX_INCLUDES:
            item.report("invalid-value", f"exceeds the limit of {MAX_INCLUDES} includes")
            return None
        include = self._read_include(item, variables)
        if include is None or self._is_cycle(include):
            return None
        texts = [(name, self._nodes(place, name, include)) for place, name in _pairs(include)]
        if not any(nodes for _, nodes in texts):
            return None
        more: dict[str, str] = {}
        for place, path in include.env_files:
            if path != os.devnull:
                more.update(self._env(place, path, variables, more.get))
        node = self.join(texts, variables.with_defaults("include", more) if more else variables)
        # Its tags are for its own files.
        node = apply_tags(node, self.report)
        return _without(node, _NOT_INCLUDED) if isinstance(node, Mapping) else node

    def _read_include(self, item: Field, variables: Variables) -> Include | None:
        """Read the short or the long form; without a path in ``env_file``, use the ``.env`` of its folder."""
        if isinstance(item.node, Scalar):
            places, folder_field, env_field = [item], None, None
        else:
            section = item.section("include.*")
            path = section.get("path") if section else None
            if section is None or path is None or path.is_empty_list:
                item.report("missing-key", "must have a 'path'")
                return None
            places = list(path.items_or_text())
            folder_field, env_field = section.get("project_directory"), section.get("env_file")
        names = [os.path.normpath(os.path.join(item.base, text)) for place in places if (text := local_path(place))]
        if not names or len(names) != len(places):
            self.sources.complete = False
            return None
        given = folder_field.text() if folder_field else None
        folder = Path(os.path.normpath(os.path.join(item.base, given)) if given else os.path.dirname(names[0]))
        env_files: Sequence[tuple[Field | None, str]]
        if env_field is not None and not env_field.is_empty_list:
            env_files = [(place, file) for place in env_field.items_or_text() if (file := self._env_file(place))]
        else:
            own = default_env_file(variables, folder)
            env_files = [(None, own)] if own else []
        return Include(places, names, folder, env_files)

    def _env_file(self, place: Field) -> str:
        text = place.value(parse_path)
        path = os.path.join(place.base, text) if text else ""
        if not path or path == os.devnull or self.root.allows(path):
            return path
        place.report("outside-project", f"names {place.node.shown}, which is outside the project", self.root.fix)
        return ""

    def _env(self, place: Field | None, path: str, variables: Variables, earlier: Lookup) -> dict[str, str]:
        if place is None:
            return self.sources.env(path, variables, self.root)
        try:
            return self.sources.read_env(path, variables, self.root, Fallbacks(earlier))
        except files.Unreadable as error:
            hint = error.hint or (self.sources.similar_files(Path(path)) if error.missing else "")
            self._report_unreadable(place, error, hint)
            return {}

    def _report_unreadable(self, place: Field, error: files.Unreadable, hint: str) -> None:
        code = error.code or "unreadable-file"
        place.report(code, f"names {place.node.shown}, which {error.reason}", hint)

    def _is_cycle(self, include: Include) -> bool:
        for place, name in _pairs(include):
            if real_path(name) in self._trail:
                place.report("include-cycle", "includes a file that is already being included", "remove this include")
                return True
        return False

    def _nodes(self, place: Field, name: str, include: Include) -> list[Node]:
        try:
            content = self.sources.content(name, self.root)
        except files.Unreadable as error:
            self._report_unreadable(place, error, error.hint)
            self.sources.complete = False
            return []
        return self.sources.nodes_of(content, name, include.folder)


def _pairs(include: Include) -> list[tuple[Field, str]]:
    return list(zip(include.places, include.names, strict=True))


def _merge_includes(first: Node, later: Node, report: Report) -> Node:
    """Merge an earlier include over a later one, and keep their order."""
    return _in_order_of(first, merge(later, first, report), depth=2)


def _in_order_of(first: Node | None, merged: Node, *, depth: int) -> Node:
    """Put the entries of the first tree before the others."""
    if not isinstance(first, Mapping) or not isinstance(merged, Mapping) or depth == 0:
        return merged
    entries = {
        name: (merged.key(name), _in_order_of(first.get(name), merged.entries[name][1], depth=depth - 1))
        for name in dict.fromkeys((*first.entries, *merged.entries))
    }
    return Mapping(merged.span, entries, merged.tag, merged.size)


def _without(node: Mapping, names: tuple[str, ...]) -> Mapping:
    kept = {name: entry for name, entry in node.entries.items() if name not in names}
    return Mapping(node.span, kept, node.tag, node.size)
