"""What every reader needs: a node with its path, typed readings of it, and the table of keys applied.

Owns how a wrong type or value is worded, and the side table of origins that lets later stages name a line.
Must not know any key by name: what becomes of a key is in :mod:`composeplat.compose.keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from composeplat.compose.keys import OPEN_SECTIONS, SECTIONS, Handling, Row
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, kind_of
from composeplat.compose.origins import Origins
from composeplat.compose.parse.unsupported_keys import explain
from composeplat.compose.template import variable_names
from composeplat.compose.values import BadValue, parse_bool, split_pair
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import PathKey, Report, Span, dotted, quoted

T = TypeVar("T")


@dataclass(slots=True)
class Count:
    value: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What readers are given besides the nodes."""

    report: Report
    variables: Variables = field(default_factory=Variables)
    origins: Origins = field(default_factory=Origins)
    home: str = ""
    ports: Count = field(default_factory=Count)
    """How many ports have been read: a short range names many."""
    secrets: dict[str, Node] = field(default_factory=dict)
    """What the top level declares for builds, by name."""
    references: VariableReferences = field(default_factory=VariableReferences)

    def variable(self, name: str) -> str | None:
        """Give a variable that the definition names without a ``$``, as ``environment`` can, and note that it does."""
        self.references.add(name, self.variables, default=None, required=False)
        return self.variables.lookup(name)


@dataclass(slots=True)
class Field:
    """A node under its path; readings give None after reporting why where the node is not what was wanted."""

    ctx: Context
    node: Node
    path: PathKey

    @property
    def span(self) -> Span:
        return self.node.span

    @property
    def base(self) -> Path:
        """The folder that relative paths at this place are relative to."""
        return self.node.span.source.base

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, Scalar) and self.node.is_null

    def say(self, code: str, message: str, hint: str = "") -> None:
        self.ctx.report.add(code, self.node.span, self.path, f"{dotted(self.path)} {message}", hint)

    def wrong(self, want: str, hint: str = "") -> None:
        self.say("invalid-type", f"must be {want}, not {kind_of(self.node)}", hint)

    def text(self) -> str | None:
        if not isinstance(self.node, Scalar) or self.node.is_null:
            self.wrong("a text")
            return None
        return self.node.text

    def value(self, parse: Callable[[str], T], *, unset_means: str = "the value is empty") -> T | None:
        """Read a scalar by one of the small grammars; a variable that is not set may be what makes it wrong."""
        text = self.text()
        if text is None:
            return None
        try:
            return parse(text)
        except BadValue as error:
            assert isinstance(self.node, Scalar)  # noqa: S101 -- for the type checker: text() saw to it
            self.say("invalid-value", f"{error}, not {self.node.shown}", self._unset_hint(self.node, unset_means))
            return None

    def _unset_hint(self, node: Scalar, unset_means: str) -> str:
        """Name the variables of a text that are not set or empty."""
        names = variable_names(node.written) if node.is_substituted else ()
        unset = [name for name in names if not self.ctx.variables.lookup(name)]
        if not unset:
            return ""
        verb = "is" if len(unset) == 1 else "are"
        return f"{', '.join(unset)} {verb} not set or empty, so {unset_means}"

    def boolean(self) -> bool | None:
        return self.value(parse_bool)

    def choice(self, *words: str) -> str | None:
        """Read one of a few words."""
        text = self.text()
        if text is None or text in words:
            return text
        assert isinstance(self.node, Scalar)  # noqa: S101 -- for the type checker
        hint = "" if self.node.is_substituted else self.ctx.report.near(text, words)
        wanted = " or ".join(filter(None, (", ".join(f"'{word}'" for word in words[:-1]), f"'{words[-1]}'")))
        self.say("invalid-value", f"must be {wanted}, not {self.node.shown}", hint)
        return None

    def child(self, step: str | int, node: Node, key: Scalar | None = None) -> Field:
        path = (*self.path, step)
        self.ctx.origins.put(path, node, key)
        return Field(self.ctx, node, path)

    def items(self, want: str = "a list") -> Iterator[Field]:
        """The items of a list."""
        if not isinstance(self.node, Sequence):
            self.wrong(want, "" if want.startswith("a list of") else self._as_list())
            return
        for index, item in self.node.indexed_items:
            yield self.child(index, item)

    def _as_list(self) -> str:
        """Write a text as the list of one that it may have been meant to be."""
        if not isinstance(self.node, Scalar) or self.is_null or self.node.is_substituted:
            return ""
        return f"write a list: {self.path[-1]}: [{quoted(self.node.text)}]"

    def items_or_one(self) -> Iterator[Field]:
        """The items of a list, or the one text that stands for a list of one."""
        if isinstance(self.node, Scalar) and not self.node.is_null:
            yield self
        else:
            yield from self.items("a text or a list")

    def texts(self) -> tuple[str, ...]:
        return tuple(text for item in self.items_or_one() if (text := item.text()) is not None)

    def members(self, want: str = "a mapping") -> Iterator[tuple[str, Field]]:
        """The entries of a mapping whose keys are free names."""
        if not isinstance(self.node, Mapping):
            self.wrong(want)
            return
        for key, value in self.node:
            # Merging makes keys of a list's texts: what variables put into one must not come into a path.
            yield key.text, self.child(key.written, value, key)

    def section(self, pattern: str) -> Section | None:
        """Open a mapping whose keys are in the table."""
        if not isinstance(self.node, Mapping):
            self.wrong("a mapping")
            return None
        return Section(self, _used_fields(self, self.node, pattern))

    def pairs(self) -> Iterator[tuple[str, Field, str | None]]:
        """``NAME: value`` or a list of ``NAME=value``: name, place, value (None where there is none)."""
        if isinstance(self.node, Mapping):
            for name, value in self.members():
                if value.is_null:
                    yield name, value, None
                elif isinstance(value.node, Scalar):
                    yield name, value, value.node.text
                else:
                    value.wrong("a text, a number, a boolean or nothing")
            return
        for item in self.items("a mapping or a list of NAME=value"):
            if not isinstance(item.node, Scalar) or item.is_null:
                hint = "leave out the '-' to write NAME: value" if isinstance(item.node, Mapping) else ""
                item.wrong("a text NAME=value", hint)
                continue
            name, text = split_pair(item.node.text)
            yield name, item, text


@dataclass(slots=True)
class Section:
    """An open mapping: the fields that are used; the others have been reported as the table says."""

    whole: Field
    fields: dict[str, Field]

    def get(self, key: str) -> Field | None:
        """The field of a key that is set; a key without a value is as if it were not there."""
        found = self.fields.get(key)
        return None if found is None or found.is_null else found

    def text(self, key: str, default: str = "") -> str:
        found = self.get(key)
        text = found.text() if found else None
        return default if text is None else text

    def boolean(self, key: str, *, default: bool) -> bool:
        found = self.get(key)
        value = found.boolean() if found else None
        return default if value is None else value

    def value(self, key: str, parse: Callable[[str], T], default: T) -> T:
        found = self.get(key)
        value = found.value(parse) if found else None
        return default if value is None else value

    def optional(self, key: str, parse: Callable[[str], T]) -> T | None:
        found = self.get(key)
        return found.value(parse) if found else None

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key)
        return found.texts() if found else ()

    def section(self, key: str, pattern: str) -> Section | None:
        found = self.get(key)
        return found.section(pattern) if found else None

    def mapping(self, key: str) -> dict[str, str]:
        """``NAME: value`` pairs where no value is an empty text."""
        found = self.get(key)
        return {name: value or "" for name, _, value in found.pairs()} if found else {}


def _used_fields(whole: Field, node: Mapping, pattern: str) -> dict[str, Field]:
    table = SECTIONS[pattern]
    fields: dict[str, Field] = {}
    for key, value in node:
        row = table.get(key.text)
        if row is not None and row.handling.is_used:
            fields[key.text] = whole.child(key.text, value, key)
        else:
            _pass_over(whole, key, value, row, pattern)
    return fields


def _pass_over(whole: Field, key: Scalar, value: Node, row: Row | None, pattern: str) -> None:
    """Say what the table says of a key that is not used."""
    handling = row.handling if row else None
    path = (*whole.path, key.text)
    report = whole.ctx.report
    name = dotted(path)
    if handling is Handling.WARNED or (handling is None and pattern in OPEN_SECTIONS):
        _leave_out(report, key, value, path, pattern, row.why if row else "")
    elif handling is Handling.DEEP:
        _leave_out(report, key, value, path, pattern)
        _leave_out_fields(report, value, path)
    elif handling is Handling.IGNORED:
        report.add("ignored-key", key.span, path, f"{name} is ignored")
    elif not key.text.startswith("x-"):
        hint = report.near(key.text, SECTIONS[pattern])
        report.add("unknown-key", key.span, path, f"{name} is not a key that Compose or this tool knows", hint)


def _leave_out(report: Report, key: Scalar, value: Node, path: PathKey, pattern: str, hint: str = "") -> None:
    """Warn of a key without effect; where nothing is lost by it, only note that."""
    explanation = explain(pattern, key.text, value, path)
    if explanation and explanation.is_harmless:
        message = f"{dotted(path)} has no effect here, and needs none: {explanation.text}"
        report.add("redundant-key", key.span, path, message)
    else:
        more = f": {explanation.text}" if explanation else ""
        report.add("unsupported-key", key.span, path, f"{dotted(path)} is not supported and has no effect{more}", hint)


def _leave_out_fields(report: Report, block: Node, path: PathKey) -> None:
    """Say the same of each field of each entry of a block that has no effect."""
    for key, entry in block if isinstance(block, Mapping) else ():
        for name, value in entry if isinstance(entry, Mapping) else ():
            if not name.text.startswith("x-"):
                _leave_out(report, name, value, (*path, key.text, name.text), f"{dotted(path)}.*")
