"""Turn text into nodes that know their place.

Owns YAML: parser events become :class:`Scalar`, :class:`Mapping` and :class:`Sequence`, with anchors, merge keys and
duplicates settled.
Must not know Compose.

Nodes are built from events, by a loop: the library's own composer recurses (a file nested ten thousand deep ends the
process), resolves ``no`` to a boolean and ``22:22`` to 1342, and lets the second of two equal keys win.
Here a scalar keeps its text and only whether it was *plain*, and the reader, who knows the type a key wants, decides.

An aliased node is shared, not copied, so its diagnostics name one place, and stages that rewrite nodes must remember
what they made of one (:func:`rewrite` does).
What aliases unfold to is counted as they are met and capped: that is what an alias bomb grows, while its text is small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from composeplat.diagnostics import Report, Source, Span, end_of, quoted

MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_ALIASED = 100_000
ALIASED_PER_NODE = 20
MOST_ALIASED = 2 * MAX_NODES
_TEXT_PER_NODE = 64
MAX_DIRECTIVES = 100

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {"true", "True", "TRUE", "false", "False", "FALSE"}
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z",
    re.ASCII,
)
_SHORT_INT = re.compile(r"-?[0-9]{1,16}\Z", re.ASCII)
_SHORT_FLOAT = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,6}\Z", re.ASCII)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_RESET, _OVERRIDE = "!reset", "!override"
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "bool", "float", "null", "map", "seq", "merge")}
_STR = "tag:yaml.org,2002:str"


@dataclass(slots=True, eq=False)
class Scalar:
    """A text with its place; ``written`` is what stands in the file, ``text`` what it is after substitution."""

    span: Span
    text: str
    written: str
    plain: bool = False
    tag: str = ""

    @property
    def size(self) -> int:
        """Count a long text as more than one node: aliases of it unfold to as much text."""
        return 1 + len(self.text) // _TEXT_PER_NODE

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULLS and self.text is self.written

    @property
    def is_substituted(self) -> bool:
        return self.text is not self.written

    @property
    def shown(self) -> str:
        """Quote the scalar for a message, by what stands in the file."""
        if self.is_null:
            return "nothing"
        return quoted(self.written) + (" (after substitution)" if self.is_substituted else "")

    @property
    def means_text(self) -> bool:
        """Say whether the YAML 1.2 core schema sees text here, not a null, boolean or number."""
        if not self.plain:
            return True
        if self.text in _NULLS:
            return self.is_substituted
        return not (self.text in _BOOLS or _INT.match(self.text) or _FLOAT.match(self.text))

    def as_plain_value(self) -> str | int | float | bool | None:
        """Give the value the YAML 1.2 core schema sees, for output, where that is written as it stands here."""
        if self.means_text:
            return self.text
        if self.text in _NULLS:
            return None
        if self.text in ("true", "false"):
            return self.text == "true"
        if _SHORT_INT.match(self.text) and str(int(self.text)) == self.text:
            return int(self.text)
        if _SHORT_FLOAT.match(self.text) and repr(float(self.text)) == self.text:
            return float(self.text)
        return self.text


@dataclass(slots=True, eq=False)
class Mapping:
    span: Span
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    tag: str = ""
    size: int = 1

    shown = "a mapping"
    is_substituted = False

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[tuple[Scalar, Node]]:
        return iter(self.entries.values())

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return entry[1] if entry else None

    def key(self, key: str) -> Scalar:
        return self.entries[key][0]


@dataclass(slots=True, eq=False)
class Sequence:
    span: Span
    items: list[Node] = field(default_factory=list)
    tag: str = ""
    size: int = 1
    numbers: tuple[int, ...] = ()
    """The index that each item was written at, where items have been left out; messages count by it."""

    shown = "a list"
    is_substituted = False

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    @property
    def numbered(self) -> Iterator[tuple[int, Node]]:
        return zip(self.numbers or range(len(self.items)), self.items, strict=True)


Node = Scalar | Mapping | Sequence


def kind_of(node: Node) -> str:
    match node:
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case Scalar() if node.is_null:
            return "nothing"
        case _:
            return f"the text {node.shown}"


class StopReading(Exception):
    """This file can't be read further."""


def decode(content: bytes, source: Callable[[str], Source], report: Report) -> Source:
    """Turn bytes into a source; what is not UTF-8 text is refused with its place."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = end_of(content[: error.start].decode("utf-8"))
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        what = "the file is UTF-16 text, not UTF-8" if wide else "a byte here is not UTF-8 text"
        report.add(
            "invalid-utf8",
            Span(source("" if wide else content.decode("utf-8", "replace")), *((1, 1) if wide else (line, column))),
            (),
            what,
            "save the file as UTF-8",
        )
        raise StopReading from None
    made = source(text)
    bad = _FORBIDDEN.search(text)
    if bad:
        line, column = end_of(text[: bad.start()])
        message = f"a control character (U+{ord(bad[0]):04X}) must not stand in the file"
        report.add("invalid-character", Span(made, line, column), (), message, "remove it")
        raise StopReading
    return made


@dataclass(slots=True)
class Amount:
    """How much has been read: the files of one definition share the limits."""

    nodes: int = 0
    aliased: int = 0


def read_nodes(source: Source, report: Report, amount: Amount | None = None) -> list[Node]:
    """Read the documents of a source; raises :class:`StopReading` after reporting why where it can't."""
    if source.text.count("\n%") > MAX_DIRECTIVES:  # each is compared with all before it
        report.add("invalid-yaml", Span(source), (), f"not YAML: there are more than {MAX_DIRECTIVES} directives")
        raise StopReading
    builder = _Builder(source, report, amount or Amount())
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(source.text, Loader=loader):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        _report_yaml(error, source, report)
        raise StopReading from None
    except yaml.YAMLError as error:
        report.add("invalid-yaml", Span(source), (), f"not YAML: {type(error).__name__}")
        raise StopReading from None
    except RecursionError:  # only the pure-Python parser, where the library was built without its C part
        report.add("too-deep", Span(source), (), f"collections are nested deeper than {MAX_DEPTH} levels")
        raise StopReading from None
    return builder.documents


def _report_yaml(error: yaml.MarkedYAMLError, source: Source, report: Report) -> None:
    mark = error.problem_mark or error.context_mark
    problem, hint = error.problem or error.context or "not YAML", ""
    opened = error.context_mark
    if opened and "end of stream" in problem and "quoted scalar" in (error.context or ""):
        mark, hint = opened, "close it on its line, or put the whole value in the other kind of quotes"
        problem = f"a quote opened on line {opened.line + 1} is never closed"
    if mark and "cannot start any token" in problem and source.line(mark.line + 1)[mark.column :].startswith("\t"):
        problem, hint = "a tab stands where a line is indented", "indent with spaces"
    # The library counts on behind a last line without an end.
    place = min((mark.line + 1, mark.column + 1), end_of(source.text)) if mark else (1, 1)
    report.add("invalid-yaml", Span(source, *place), (), f"not YAML: {problem}", hint or _yaml_hint(problem))


def _yaml_hint(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "a value that holds ': ' needs quotes; or this line is indented further than its neighbours"
    if "cannot start any token" in problem:
        return "indent with spaces, not tabs, and quote a value that begins with a special character"
    if "did not find expected" in problem or "could not find expected" in problem:
        return "look for a missing ':' or quote, or for a line that is indented differently from its neighbours"
    return ""


@dataclass(slots=True)
class _Frame:
    node: Mapping | Sequence
    anchor: str | None
    key: Scalar | None = None
    merges: list[tuple[Scalar, Node, int]] = field(default_factory=list)
    skip_value: bool = False
    height: int = 0
    """Levels of collections below this one, aliases unfolded."""


class _Builder:
    def __init__(self, source: Source, report: Report, amount: Amount) -> None:
        self.source = source
        self.report = report
        self.amount = amount
        self.documents: list[Node] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._open: set[str] = set()

    def feed(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                scalar = self._scalar(event)
                self._count(scalar.span)
                self._place(scalar, event.anchor)
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
        text = event.value
        tag = self._tag(event) if event.tag else ""
        plain = not event.style and event.tag != _STR  # the C parser says "" where the other says None
        return Scalar(self._span(event), text, text, plain, tag)

    def _tag(self, event: Any) -> str:
        tag: str | None = event.tag
        if tag in (_RESET, _OVERRIDE):
            return tag or ""
        if tag and tag not in _CORE_TAGS and tag != "!":
            self.report.add("unknown-tag", self._span(event), (), f"the tag {quoted(tag)} has no meaning here")
        return ""

    def _count(self, span: Span) -> None:
        self.amount.nodes += 1
        if self.amount.nodes > MAX_NODES:
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
        self._count(node.span)

    def _end(self) -> None:
        frame = self._stack.pop()
        if isinstance(frame.node, Mapping):
            self._merge(frame)
        if frame.anchor:
            self._open.discard(frame.anchor)
        self._place(frame.node, frame.anchor, height=frame.height + 1)

    def _alias(self, event: Any) -> None:
        span = self._span(event)
        if event.anchor in self._open:
            message = f"the anchor {quoted(event.anchor)} holds an alias of itself"
            self.report.add("recursive-alias", span, (), message, "break the circle")
            raise StopReading
        node, height = self._anchors.get(event.anchor, (None, 0))
        if node is None:
            message = f"not YAML: the alias {quoted('*' + event.anchor)} names no anchor above it"
            self.report.add("invalid-yaml", span, (), message, f"define it as &{event.anchor}, before its use")
            raise StopReading
        self._check_depth(span, height)
        self.amount.aliased += node.size
        if self.amount.aliased > min(MAX_ALIASED + ALIASED_PER_NODE * self.amount.nodes, MOST_ALIASED):
            self.report.add("too-many-aliases", span, (), "aliases unfold to far more than is written (an alias bomb)")
            raise StopReading
        self._count(span)
        self._place(node, None, height=height)

    def _place(self, node: Node, anchor: str | None, *, height: int = 0) -> None:
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
            self._take_key(frame, node)
        else:
            self._set(frame, frame.key, node, height)
            frame.key = None

    def _take_key(self, frame: _Frame, node: Node) -> None:
        if not isinstance(node, Scalar) or not node.means_text:
            what = quoted(node.text) if isinstance(node, Scalar) else kind_of(node)
            hint = f'quote it: "{node.text}"' if isinstance(node, Scalar) else ""
            self.report.add("non-string-key", node.span, (), f"a key must be text, not {what}", hint)
            frame.skip_value = True
        else:
            frame.key = node

    def _set(self, frame: _Frame, key: Scalar, value: Node, height: int) -> None:
        mapping = frame.node
        assert isinstance(mapping, Mapping)  # noqa: S101 -- for the type checker: only mappings have keys
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

    def _merge(self, frame: _Frame) -> None:
        mapping = frame.node
        assert isinstance(mapping, Mapping)  # noqa: S101 -- for the type checker
        for key, value, height in frame.merges:
            # What a merge brings in stands where the merge key stands, not below it.
            frame.height = max(frame.height, height - (2 if isinstance(value, Sequence) else 1))
            for base in value.items if isinstance(value, Sequence) else [value]:
                if not isinstance(base, Mapping):
                    message = f"the merge key '<<' takes a mapping or a list of mappings, not {kind_of(base)}"
                    self.report.add("invalid-merge-key", key.span, (), message, "give it an alias such as *defaults")
                    continue
                for name, entry in base.entries.items():
                    if name not in mapping.entries:
                        mapping.entries[name] = entry
                        mapping.size += entry[0].size + entry[1].size


def rewrite(node: Node, scalar: Callable[[Scalar], Scalar], memo: dict[int, Node]) -> Node:
    """Give a tree with its scalars rewritten; a node that did not change, or is shared, stays one node."""
    done = memo.get(id(node))
    if done is not None:
        return done
    made: Node
    match node:
        case Scalar():
            made = scalar(node)
        case Mapping():
            changed = {name: (key, rewrite(value, scalar, memo)) for name, (key, value) in node.entries.items()}
            made = Mapping(node.span, changed, node.tag, node.size)
        case Sequence():
            made = Sequence(node.span, [rewrite(item, scalar, memo) for item in node.items], node.tag, node.size)
    memo[id(node)] = made
    return made


def to_plain(node: Node) -> Any:
    """Give a tree as plain Python values, for output and for comparison."""
    match node:
        case Scalar():
            return node.as_plain_value()
        case Mapping():
            return {name: to_plain(value) for name, (_, value) in node.entries.items()}
        case Sequence():
            return [to_plain(item) for item in node.items]
