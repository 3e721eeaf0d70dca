"""Read files as sources, numbered in their order.

Owns the messages about unreadable files, and whether all files could be read.
Must not know which files belong to a definition.
"""

from __future__ import annotations

import os.path
from pathlib import Path

from composeplat.compose.discovery import MAX_DEFINITION_BYTES, MAX_ENV_FILE_BYTES
from composeplat.compose.dotenv import EnvLines, Lookup, evaluate_lines, parse_lines
from composeplat.compose.nodes import Mapping, Node, Scalar
from composeplat.compose.options import Request
from composeplat.compose.variables import Variables
from composeplat.compose.yaml_reader import NodeCount, StopReading, as_utf8, decode, read_nodes
from composeplat.diagnostics import Report, Source, Span, join_some, quoted
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot
from composeplat.system.records import record

_MAX_NAMES = 5


@record
class Fallbacks:
    """The variables of earlier env files and of the place: a line uses them where the lines above it have none."""

    earlier: Lookup = lambda _: None
    place: Lookup = lambda _: None


class Sources:
    def __init__(self, request: Request, report: Report) -> None:
        self.request = request
        self.report = report
        self.complete = True
        """Whether every definition file could be read as YAML."""
        self._count = 0
        self._node_count = NodeCount()
        self._bytes = 0

    def make(self, path: str, base: Path, text: str) -> Source:
        """Make a numbered source: messages are sorted by the order of files."""
        self._count += 1
        return Source(name=self.shown(path), base=base, text=text, order=self._count)

    def shown(self, path: str) -> str:
        """Return the path relative to the current folder, unless the file is above it."""
        if path == "-":
            return self.request.snippet_of or "<stdin>"
        relative = os.path.relpath(path, self.request.folder)
        return path if relative.startswith("..") else relative

    def nodes(self, path: str, base: Path, root: ProjectRoot | None = None) -> list[Node]:
        """Read a definition's documents; report a file that can't be read."""
        try:
            content = self.content(path, root)
        except files.Unreadable as error:
            self.complete = False
            self._report_unreadable(path, base, error)
            return []
        return self.nodes_of(content, path, base)

    def content(self, path: str, root: ProjectRoot | None) -> bytes:
        """Read a file of the definition, or standard input; the limit is for all of them together.

        Without a ``root``, the user has named the file.
        """
        given = self.request.standard_input
        if path in self.request.contents:
            content = files.capped(self.request.contents[path], MAX_DEFINITION_BYTES)
        elif path != "-":
            content = files.read_bytes(Path(path), limit=MAX_DEFINITION_BYTES, root=root)
        else:
            content = files.read_standard_input(limit=MAX_DEFINITION_BYTES) if given is None else given
        self._bytes += len(content)
        if self._bytes > MAX_DEFINITION_BYTES:
            raise files.Unreadable(f"makes the definition larger than {MAX_DEFINITION_BYTES // 1024 // 1024} MiB")
        return content

    def nodes_of(self, content: bytes, path: str, base: Path) -> list[Node]:
        try:
            source = decode(as_utf8(content), lambda text: self.make(path, base, text), self.report)
            documents = read_nodes(source, self.report, self._node_count)
            if path == "-" and self.request.snippet_of:
                self._refuse_whole_definition(documents[:1])
                documents = _with_service(documents, self.request.snippet_of, Span(source))
        except StopReading:
            self.complete = False
            return []
        return [node for node in documents if not (isinstance(node, Scalar) and node.is_null)]

    def _refuse_whole_definition(self, first: list[Node]) -> None:
        for node in first:
            if isinstance(node, Mapping) and "services" in node.entries:
                key, _ = node.entries["services"]
                message = "has 'services', as a whole Compose file: it must be the keys of one service"
                hint = "use ComposeStack, or leave out 'services' and the name below it"
                self.report.add("invalid-type", key.span, ("compose",), f"compose {message}", hint)
                raise StopReading

    def _report_unreadable(self, path: str, base: Path, error: files.Unreadable) -> None:
        source = self.make(path, base, "")
        code = error.code or "unreadable-file"
        hint = error.hint or (self.similar_files(Path(path)) if error.missing else "")
        self.report.add(code, Span(source), (), f"{quoted(source.name)} {error.reason}", hint)

    def similar_files(self, path: Path) -> str:
        """List the files beside a missing one."""
        names = files.names_beside(path)
        listed = join_some([quoted(name) for name in names], _MAX_NAMES)
        return f"there {'is' if len(names) == 1 else 'are'}: {listed}" if names else ""

    def env(
        self, path: str, variables: Variables, root: ProjectRoot | None, fallbacks: Fallbacks | None = None
    ) -> dict[str, str]:
        """Read an env file with variables of the definition; report one that can't be read."""
        try:
            return self.read_env(path, variables, root, fallbacks or Fallbacks())
        except files.Unreadable as error:
            self._report_unreadable(path, Path(os.path.dirname(path)), error)
            return {}

    def read_env(
        self, path: str, variables: Variables, root: ProjectRoot | None, fallbacks: Fallbacks
    ) -> dict[str, str]:
        given = self.request.env_contents.get(path)
        if given is None:
            content = files.read_bytes(Path(path), limit=MAX_ENV_FILE_BYTES, root=root)
        else:
            content = files.capped(given, MAX_ENV_FILE_BYTES)
        parsed = self.env_lines(content, path)
        # The lines are above earlier files and the platform's variables, also for each other.
        above, platform = variables.split()

        def earlier(name: str) -> str | None:
            found = fallbacks.earlier(name)
            return platform.lookup(name) if found is None else found

        return evaluate_lines(parsed, above.lookup, self.report, earlier, fallbacks.place) if parsed else {}

    def env_lines(self, content: bytes, path: str, *, raw: bool = False) -> EnvLines | None:
        """Parse an env file; None if it is not text, which is reported."""
        base = Path(os.path.dirname(path))
        try:
            source = decode(content, lambda text: self.make(path, base, text), self.report)
        except StopReading:
            return None
        return parse_lines(source, self.report, raw=raw)


def _with_service(documents: list[Node], name: str, span: Span) -> list[Node]:
    """Put the first document, the keys of a service, below ``services``; the others are parts of a definition."""
    first, *others = documents or [Mapping(span)]
    services = Mapping(first.span, {name: (Scalar(first.span, name, name), first)})
    return [Mapping(first.span, {"services": (Scalar(first.span, "services", "services"), services)}), *others]
