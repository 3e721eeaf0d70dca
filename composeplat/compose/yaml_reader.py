"""Read YAML text into nodes.

Owns YAML's syntax: parser events become :class:`~composeplat.compose.nodes.Scalar`, ``Mapping`` and ``Sequence``;
anchors, merge keys and duplicate keys are resolved here, and so are the limits on size, depth and aliases.
Must not know Compose.

Nodes are built from events, in a loop. The library's own composer recurses (a file nested ten thousand levels deep ends
the process), reads ``no`` as a boolean and ``22:22`` as 1342, and lets the second of two equal keys win.
Aliases are counted as they unfold, and capped: an alias bomb is small as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import yaml

from composeplat.compose.nodes import BOOLEANS, OVERRIDE, RESET, Mapping, Node, Scalar, Sequence, kind_of
from composeplat.compose.pasted_text import CONFLICT, CONFLICT_HINT, conflict_line, space_hint
from composeplat.diagnostics import Report, Source, Span, end_of, quoted
from composeplat.system.records import mutable

MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_ALIASED = 100_000
ALIASED_PER_NODE = 20
MAX_ALIASED_IN_ALL = 2 * MAX_NODES
MAX_DIRECTIVES = 100

#: All that YAML does not call printable. Compiling a pattern of what it does call printable takes ten times as long.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "bool", "float", "null", "map", "seq", "merge")}
_STR = "tag:yaml.org,2002:str"


class StopReading(Exception):
    """The file can't be read any further; the report says why."""


_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def as_utf8(content: bytes) -> bytes:
    """Return YAML as UTF-8; UTF-16 with a byte order mark is YAML too, as Windows PowerShell writes it."""
    if not content.startswith(_UTF_16_MARKS):
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError:
        return content


def decode(content: bytes, make_source: Callable[[str], Source], report: Report) -> Source:
    """Decode bytes into a source; report the place of anything that is not UTF-8 text."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        _report_encoding(content, error.start, make_source, report)
        raise StopReading from error
    source = make_source(text)
    forbidden = FORBIDDEN.search(text)
    if forbidden:
        line, column = end_of(text[: forbidden.start()])
        message = f"a control character (U+{ord(forbidden[0]):04X}) is not allowed in the file"
        report.add("invalid-character", Span(source, line, column), (), message, "remove it")
        raise StopReading
    return source


def _report_encoding(content: bytes, start: int, make_source: Callable[[str], Source], report: Report) -> None:
    if content.startswith(_UTF_16_MARKS):
        span, message = Span(make_source("")), "the file is UTF-16 text, not UTF-8"
    else:
        line, column = end_of(content[:start].decode("utf-8"))
        span = Span(make_source(content.decode("utf-8", "replace")), line, column)
        message = "a byte here is not UTF-8 text"
    report.add("invalid-utf8", span, (), message, "save the file as UTF-8")


@mutable
class NodeCount:
    """The nodes read so far: the files of one definition share the limits."""

    nodes: int = 0
    aliased: int = 0


def read_nodes(source: Source, report: Report, count: NodeCount | None = None) -> list[Node]:
    """Read the documents of a source; where that fails, report why and raise :class:`StopReading`."""
    if source.text.count("\n%") > MAX_DIRECTIVES:  # each is compared with all before it
        report.add("invalid-yaml", Span(source), (), f"not YAML: there are more than {MAX_DIRECTIVES} directives")
        raise StopReading
    builder = _Builder(source, report, count or NodeCount())
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(source.text, Loader=loader):
            builder.handle(event)
    except yaml.MarkedYAMLError as error:
        _report_yaml(error, source, report)
        raise StopReading from error
    except yaml.YAMLError as error:
        report.add("invalid-yaml", Span(source), (), f"not YAML: {type(error).__name__}")
        raise StopReading from error
    except RecursionError as error:  # only in the library's pure Python parser, used where its C part is missing
        report.add("too-deep", Span(source), (), f"collections are nested deeper than {MAX_DEPTH} levels")
        raise StopReading from error
    return builder.documents


def _report_yaml(error: yaml.MarkedYAMLError, source: Source, report: Report) -> None:
    if line := conflict_line(source.text):
        report.add("invalid-yaml", Span(source, line, 1), (), f"not YAML: {CONFLICT}", CONFLICT_HINT)
        return
    mark = error.problem_mark or error.context_mark
    problem, hint = error.problem or error.context or "not YAML", ""
    opened = error.context_mark
    if opened and "end of stream" in problem and "quoted scalar" in (error.context or ""):
        mark, hint = opened, "close it on its line, or put the whole value in the other kind of quotes"
        problem = f"a quote opened on line {opened.line + 1} is never closed"
    if mark and "cannot start any token" in problem and source.line(mark.line + 1)[mark.column :].startswith("\t"):
        problem, hint = "the line is indented with a tab", "indent with spaces"
    if mark and "mapping values are not allowed" in problem:
        before = source.line(mark.line + 1)[: mark.column]
        hint = _VALUE_HINT if re.search(r":\s", before) else _COLON_HINT
    lines = (mark.line, mark.line + 1) if mark else ()
    hint = space_hint("".join(source.line(line).partition("#")[0] for line in lines)) or hint
    is_placeholder = mark is not None and source.line(mark.line + 1)[: mark.column + 1].endswith("${")
    hint = hint or _open_hint(error, problem, is_placeholder=is_placeholder)
    # After a last line without a line end, the library counts on.
    place = min((mark.line + 1, mark.column + 1), end_of(source.text)) if mark else (1, 1)
    report.add("invalid-yaml", Span(source, *place), (), f"not YAML: {problem}", hint or _yaml_hint(problem))


_VALUE_HINT = "quote a value that contains ': '"
_COLON_HINT = "look for a missing ':' in the line above; or this line is indented further than its neighbours"


def _open_hint(error: yaml.MarkedYAMLError, problem: str, *, is_placeholder: bool) -> str:
    """Name the line of the collection that was being read; empty if that is no cause."""
    opened, context = error.context_mark, error.context or ""
    if opened is None:
        return ""
    line = opened.line + 1
    if "while parsing a flow" in context and "did not find expected ','" in problem:
        bracket = "[" if "sequence" in context else "{"
        if is_placeholder:
            return f"within '{bracket}', quote an entry that has '${{'"
        return f"close the '{bracket}' of line {line}, or put a ',' between its entries"
    if "'-' indicator" in problem:
        return f"begin each entry of the list of line {line} with '-'; a key beside the list is indented less"
    return ""


def _yaml_hint(problem: str) -> str:
    if "violates indentation" in problem:
        return "indent with spaces"
    if "alphabetic or numeric character" in problem:
        return "quote a value that starts with '*' or '&'"
    if "cannot start any token" in problem:
        return "indent with spaces, not tabs, and quote a value that starts with a special character"
    if "did not find expected" in problem or "could not find expected" in problem:
        return "look for a missing ':' or quote, or a line that is indented differently from its neighbours"
    return ""


@mutable
class _Frame:
    node: Mapping | Sequence
    anchor: str | None
    key: Scalar | None = None
    merges: list[tuple[Scalar, Node, int]] = field(default_factory=list)
    skip_value: bool = False
    height: int = 0
    """Levels of collections below this one, with aliases unfolded."""


class _Builder:
    def __init__(self, source: Source, report: Report, count: NodeCount) -> None:
        self.source = source
        self.report = report
        self.count = count
        self.documents: list[Node] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._open: set[str] = set()

    def handle(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                scalar = self._scalar(event)
                self._count_node(scalar.span)
                self._add_node(scalar, event.anchor)
            case yaml.MappingStartEvent():
                self._start(Mapping(self._span(event), tag=self._tag(event)), event)
            case yaml.SequenceStartEvent():
                self._start(Sequence(self._span(event), tag=self._tag(event)), event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._anchors.clear()

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        length = end.column - start.column if end.line == start.line else 1
        return Span(self.source, start.line + 1, start.column + 1, max(1, length))

    def _scalar(self, event: Any) -> Scalar:
        written = event.value
        tag = self._tag(event) if event.tag else ""
        plain = not event.style and event.tag != _STR  # the C parser says "" where the other says None
        # Compose prints a boolean so where a key wants a text.
        text = written.lower() if plain and written in BOOLEANS else written
        return Scalar(self._span(event), text, written, plain, tag)

    def _tag(self, event: Any) -> str:
        tag: str | None = event.tag
        if tag in (RESET, OVERRIDE):
            return tag or ""
        if tag and tag not in _CORE_TAGS and tag != "!":
            self.report.add("unknown-tag", self._span(event), (), f"the tag {quoted(tag)} has no meaning here")
        return ""

    def _count_node(self, span: Span) -> None:
        self.count.nodes += 1
        if self.count.nodes > MAX_NODES:
            self.report.add("too-large", span, (), f"the definition has more than {MAX_NODES} nodes")
            raise StopReading
        self._check_depth(span, 0)

    def _check_depth(self, span: Span, height: int) -> None:
        if len(self._stack) + height > MAX_DEPTH:
            self.report.add("too-deep", span, (), f"collections are nested deeper than {MAX_DEPTH} levels")
            raise StopReading

    def _start(self, node: Mapping | Sequence, event: Any) -> None:
        frame = _Frame(node, event.anchor)
        if event.anchor:
            self._open.add(event.anchor)
            self._anchors.pop(event.anchor, None)
        self._stack.append(frame)
        self._count_node(node.span)

    def _end(self) -> None:
        frame = self._stack.pop()
        if isinstance(frame.node, Mapping):
            self._merge(frame, frame.node)
        if frame.anchor:
            self._open.discard(frame.anchor)
        self._add_node(frame.node, frame.anchor, height=frame.height + 1)

    def _alias(self, event: Any) -> None:
        span = self._span(event)
        if event.anchor in self._open:
            message = f"the anchor {quoted(event.anchor)} contains an alias to itself"
            self.report.add("recursive-alias", span, (), message, "break the cycle")
            raise StopReading
        node, height = self._anchors.get(event.anchor, (None, 0))
        if node is None:
            message = f"not YAML: the alias {quoted('*' + event.anchor)} refers to no anchor above it"
            self.report.add("invalid-yaml", span, (), message, f"define it as &{event.anchor}, before its use")
            raise StopReading
        self._check_depth(span, height)
        self.count.aliased += node.size
        if self.count.aliased > min(MAX_ALIASED + ALIASED_PER_NODE * self.count.nodes, MAX_ALIASED_IN_ALL):
            self.report.add(
                "too-many-aliases", span, (), "aliases unfold to far more than the file has (an alias bomb)"
            )
            raise StopReading
        self._count_node(span)
        self._add_node(node, None, height=height)

    def _add_node(self, node: Node, anchor: str | None, *, height: int = 0) -> None:
        if anchor:
            self._anchors[anchor] = (node, height)
        if not self._stack:
            self.documents.append(node)
            return
        frame = self._stack[-1]
        if isinstance(frame.node, Sequence):
            frame.node.items.append(node)
            frame.node.size += node.size
            frame.height = max(frame.height, height)
        elif frame.skip_value:
            frame.skip_value = False
        elif frame.key is None:
            self._set_key(frame, node)
        else:
            self._set_entry(frame, frame.node, frame.key, node, height)
            frame.key = None

    def _set_key(self, frame: _Frame, node: Node) -> None:
        if not isinstance(node, Scalar) or not node.is_text:
            found = quoted(node.written) if isinstance(node, Scalar) else kind_of(node)
            self.report.add("non-string-key", node.span, (), f"a key must be text, not {found}", self._key_hint(node))
            frame.skip_value = True
        else:
            if node.plain and (hint := space_hint(node.written[:1])):
                message = "not YAML: the line is indented with another kind of space"
                self.report.add("invalid-yaml", node.span, (), message, hint)
            frame.key = node

    def _key_hint(self, node: Node) -> str:
        if not isinstance(node, Scalar):
            return "quote a text that begins with '{' or '['"
        in_list = self._stack[1:] and isinstance(self._stack[-2].node, Sequence)
        return "leave out the space after the ':'" if in_list else f'quote it: "{node.written}"'

    def _set_entry(self, frame: _Frame, mapping: Mapping, key: Scalar, value: Node, height: int) -> None:
        if key.plain and key.text == "<<":
            frame.merges.append((key, value, height))
        elif key.text in mapping.entries:
            first = mapping.key(key.text).span.line
            message = f"key {quoted(key.text)} is already set on line {first}"
            self.report.add("duplicate-key", key.span, (), message, "keep one of them")
        else:
            mapping.entries[key.text] = (key, value)
            mapping.size += key.size + value.size
            frame.height = max(frame.height, height)

    def _merge(self, frame: _Frame, mapping: Mapping) -> None:
        for key, value, height in frame.merges:
            # Merged entries are at the level of the merge key, not below it.
            frame.height = max(frame.height, height - (2 if isinstance(value, Sequence) else 1))
            for base in value.items if isinstance(value, Sequence) else [value]:
                if not isinstance(base, Mapping):
                    message = f"the merge key '<<' needs a mapping or a list of mappings, not {kind_of(base)}"
                    self.report.add("invalid-merge-key", key.span, (), message, "give it an alias such as *defaults")
                    continue
                for name, (name_node, merged) in base.entries.items():
                    own = mapping.get(name)
                    if own is None:
                        mapping.entries[name] = (name_node, merged)
                        mapping.size += name_node.size + merged.size
                    elif own.tag == RESET and merged.tag != RESET:
                        # A value of earlier files is reset; that of the anchor takes its place.
                        mapping.entries[name] = (name_node, replace(merged, tag=OVERRIDE))
                        mapping.size += merged.size
