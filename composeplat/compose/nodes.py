"""The nodes that every stage works on: scalars, mappings and sequences, each with its place in a file.

Owns the node types, and what the YAML 1.2 core schema sees in a scalar's text.
Must not know YAML's syntax (:mod:`composeplat.compose.yaml_reader` does) or Compose's keys.

A scalar keeps its text and whether it was *plain*; the reader of a key knows the type that the key wants, and decides.
An aliased node is shared, not copied, so its diagnostics name one place. Stages that rewrite nodes must therefore
remember the result for each node (:func:`rewrite` does).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from composeplat.diagnostics import Span, quoted
from composeplat.system.records import mutable

#: Tags of Compose, for values that take the place of those of earlier files.
RESET, OVERRIDE = "!reset", "!override"

_CHARS_PER_NODE = 64

_NULLS = {"", "~", "null", "Null", "NULL"}
BOOLEANS = {"true", "True", "TRUE", "false", "False", "FALSE"}
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z",
    re.ASCII,
)
_SHORT_INT = re.compile(r"-?[0-9]{1,16}\Z", re.ASCII)
_SHORT_FLOAT = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,6}\Z", re.ASCII)


@mutable
class Scalar:
    """A text with its place: ``written`` as in the file, ``text`` after substitution, a boolean in lower case."""

    span: Span
    text: str
    written: str
    plain: bool = False
    tag: str = ""
    is_substituted: bool = False
    """Whether variables changed the text; a message then shows ``written``."""

    @property
    def size(self) -> int:
        """Count a long text as several nodes: aliases of it unfold to as much text."""
        return 1 + len(self.text) // _CHARS_PER_NODE

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULLS and not self.is_substituted

    @property
    def shown(self) -> str:
        """Quote the scalar for a message, as the file has it."""
        if self.is_null:
            return "nothing"
        return quoted(self.written) + (" (after substitution)" if self.is_substituted else "")

    @property
    def is_text(self) -> bool:
        """Whether the YAML 1.2 core schema sees text here, not a null, boolean or number."""
        if not self.plain:
            return True
        if self.text in _NULLS:
            return self.is_substituted
        return not (self.text in BOOLEANS or _INT.match(self.text) or _FLOAT.match(self.text))

    def to_plain(self) -> str | int | float | bool | None:
        """Return the value that the YAML 1.2 core schema sees, or the text where the value would print otherwise."""
        if self.is_text:
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


@mutable
class Mapping:
    span: Span
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    tag: str = ""
    size: int = 1

    shown = "a mapping"
    written = ""
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


@mutable
class Sequence:
    span: Span
    items: list[Node] = field(default_factory=list)
    tag: str = ""
    size: int = 1
    indices: tuple[int, ...] = ()
    """The index of each item in the file, where items were dropped; messages count by it."""

    shown = "a list"
    written = ""
    is_substituted = False

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    @property
    def indexed_items(self) -> Iterator[tuple[int, Node]]:
        return zip(self.indices or range(len(self.items)), self.items, strict=True)


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


def find_node(node: Node | None, *path: str) -> Node | None:
    """Return the node at a path of keys, or None."""
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def rewrite(node: Node, scalar: Callable[[Scalar], Scalar], memo: dict[int, Node]) -> Node:
    """Return the tree with its scalars rewritten; a shared node stays shared."""
    known = memo.get(id(node))
    if known is not None:
        return known
    rewritten: Node
    match node:
        case Scalar():
            rewritten = scalar(node)
        case Mapping():
            entries = {name: (key, rewrite(value, scalar, memo)) for name, (key, value) in node.entries.items()}
            rewritten = Mapping(node.span, entries, node.tag, node.size)
        case Sequence():
            rewritten = Sequence(node.span, [rewrite(item, scalar, memo) for item in node.items], node.tag, node.size)
    memo[id(node)] = rewritten
    return rewritten


def to_plain(node: Node) -> Any:
    """Return the tree as plain Python values, for output and comparison."""
    match node:
        case Scalar():
            return node.to_plain()
        case Mapping():
            return {name: to_plain(value) for name, (_, value) in node.entries.items()}
        case Sequence():
            return [to_plain(item) for item in node.items]
