"""Typed access to nodes: a node with its path, and the fields of a mapping by the table of keys.

Owns the messages about wrong types and values, and recording the origins of the model.
Must not know any key by name: the handling of a key is in :mod:`composeplat.compose.keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping as PairMapping
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from composeplat.compose.keys import OPEN_SECTIONS, SECTIONS, Handling, Row
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, kind_of
from composeplat.compose.origins import Origins
from composeplat.compose.parse.unsupported_keys import explain, explain_name, is_empty, with_full_mode
from composeplat.compose.pasted_text import pasted_hint
from composeplat.compose.placeholders import has_placeholder, late_hint, name_of, placeholders_in
from composeplat.compose.template import variable_names
from composeplat.compose.values import BadValue, parse_bool, split_pair
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import PathKey, Report, Span, dotted, printable, quoted
from composeplat.system.records import mutable, record

T = TypeVar("T")


@mutable
class Count:
    value: int = 0


@record
class Context:
    """The shared state of parsing: report, variables, origins."""

    report: Report
    variables: Variables = field(default_factory=Variables)
    origins: Origins = field(default_factory=Origins)
    home: str = ""
    ports: Count = field(default_factory=Count)
    """The number of ports so far; a range can name many."""
    secrets: dict[str, Node] = field(default_factory=dict)
    """The top-level secrets, by name."""
    awaited: set[str] = field(default_factory=set)
    """The services whose end others wait for."""
    references: VariableReferences = field(default_factory=VariableReferences)
    full: bool = False
    """Whether the keys that full mode honors have an effect."""
    inactive: PairMapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The services whose profiles are off, with their profiles; the definition does not have them."""
    of_sources: PairMapping[int, Variables] = field(default_factory=dict)
    """The variables of each file, by the number of its source: an included file may have some of its own."""


@mutable
class Field:
    """A node with its path; its readers report a value of another type, and return None."""

    ctx: Context
    node: Node
    path: PathKey

    @property
    def span(self) -> Span:
        return self.node.span

    @property
    def base(self) -> Path:
        """The folder that paths at this place are relative to."""
        return self.node.span.source.base

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, Scalar) and self.node.is_null

    @property
    def is_empty_list(self) -> bool:
        return isinstance(self.node, Sequence) and not self.node.items

    @property
    def variables(self) -> Variables:
        """The variables of the file that this place is in."""
        return self.ctx.of_sources.get(self.node.span.source.order, self.ctx.variables)

    def variable(self, name: str) -> str | None:
        """Return a variable that is named without a ``$``, as in ``environment``, and record the reference."""
        self.ctx.references.add(name, self.variables, default=None, required=False)
        return self.variables.lookup(name)

    def report(self, code: str, message: str, hint: str = "") -> None:
        if isinstance(self.node, Mapping) and self.ctx.report.has_bad_key(self.node.span):
            return
        self.ctx.report.add(code, self.node.span, self.path, f"{dotted(self.path)} {message}", hint)

    def report_type(self, expected: str, hint: str = "") -> None:
        if expected.startswith("a mapping") and isinstance(self.node, Scalar) and self.node.plain:
            key, _, value = self.node.written.partition(":")
            is_known = any(key in rows for rows in SECTIONS.values())
            hint = hint or ("write a space after the ':'" if value and is_known else "")
        self.report("invalid-type", f"must be {expected}, not {kind_of(self.node)}", hint)

    def scalar(self) -> Scalar | None:
        if isinstance(self.node, Scalar) and not self.node.is_null:
            return self.node
        self.report_type("a text", self.text_hint())
        return None

    def text_hint(self) -> str:
        """The fix of an entry of a list that its ':' makes a mapping."""
        if not isinstance(self.path[-1], int) or not isinstance(self.node, Mapping) or len(self.node.entries) != 1:
            return ""
        ((_, value),) = self.node
        if not isinstance(value, Scalar):
            return "leave out the '-' to write a mapping"
        if value.is_null:
            return "leave out the ':' at its end"
        return "a ': ' makes it a mapping: leave out the space, or quote the text"

    def text(self) -> str | None:
        scalar = self.scalar()
        return None if scalar is None else scalar.text

    def value(self, parse: Callable[[str], T], *, unset_means: str = "the value is empty") -> T | None:
        """Parse a scalar by one of the small grammars; the hint names unset variables in it."""
        scalar = self.scalar()
        if scalar is None:
            return None
        try:
            return parse(scalar.text)
        except BadValue as error:
            if scalar.is_substituted and self.ctx.report.has_required(scalar.span):
                return None
            hint = self._unset_hint(scalar, unset_means) or error.hint
            if error.known and not scalar.is_substituted:
                hint = hint or self.ctx.report.near(scalar.text.partition(":")[0], error.known)
            hint = hint or (pasted_hint(scalar.written) if scalar.plain else "")
            self.report("invalid-value", f"{error}, not {scalar.shown}", hint)
            return None

    def _unset_hint(self, node: Scalar, unset_means: str) -> str:
        """Name the variables of a text that are unset or empty."""
        names = variable_names(node.written) if node.is_substituted else ()
        late = [name for name in names if has_placeholder(self.variables.lookup(name) or "")]
        if late:
            return late_hint(late)
        unset = [name for name in names if not self.variables.lookup(name)]
        if not unset:
            return ""
        verb = "is" if len(unset) == 1 else "are"
        return f"{', '.join(unset)} {verb} not set or empty, so {unset_means}"

    def boolean(self) -> bool | None:
        return self.value(parse_bool)

    def choice(self, *allowed: str) -> str | None:
        """Read one of the allowed texts."""
        scalar = self.scalar()
        if scalar is None or scalar.text in allowed:
            return None if scalar is None else scalar.text
        if scalar.is_substituted and self.ctx.report.has_required(scalar.span):
            return None
        hint = "" if scalar.is_substituted else self.ctx.report.near(scalar.text, allowed)
        if has_placeholder(scalar.text):
            hint = _late_hint_of(scalar.text)
        quoted_texts = [f"'{choice}'" for choice in allowed]
        expected = " or ".join(filter(None, (", ".join(quoted_texts[:-1]), quoted_texts[-1])))
        self.report("invalid-value", f"must be {expected}, not {scalar.shown}", hint)
        return None

    def child(self, step: str | int, node: Node, key: Scalar | None = None) -> Field:
        path = (*self.path, step)
        self.ctx.origins.put(path, node, key)
        return Field(self.ctx, node, path)

    def items(self, expected: str = "a list", *, suggests_list: bool = True) -> Iterator[Field]:
        """The items of a list; ``suggests_list`` unless a list with a text is invalid too."""
        if not isinstance(self.node, Sequence):
            self.report_type(expected, self._as_list() if suggests_list else "")
            return
        for index, item in self.node.indexed_items:
            yield self.child(index, item)

    def _as_list(self) -> str:
        """Suggest a list with this text as its only entry; YAML folds lines of NAME=value into one text."""
        if not isinstance(self.node, Scalar) or self.is_null or self.node.is_substituted:
            return ""
        parts = self.node.text.split()
        entries = parts if all("=" in part for part in parts) else [self.node.text]
        return f"write a list: {self.path[-1]}: [{', '.join(map(quoted, entries))}]"

    def _as_names(self) -> str:
        """Suggest keys in place of a list of names, by its first entry."""
        first = self.node.items[0] if isinstance(self.node, Sequence) and self.node.items else None
        name = first.get("name") if isinstance(first, Mapping) else first
        if not isinstance(name, Scalar) or name.is_null or name.is_substituted:
            return "leave out the '-' before each name" if isinstance(first, Mapping) else ""
        if isinstance(first, Mapping):
            return f"write its name as a key: '{printable(name.text)}:', with the others indented below it"
        return f"write each name as a key: '{printable(name.text)}:'"

    def items_or_text(self) -> Iterator[Field]:
        """The items of a list, or a single text as a list with one item."""
        if isinstance(self.node, Scalar) and not self.node.is_null:
            yield self
        else:
            yield from self.items("a text or a list")

    def texts(self) -> tuple[str, ...]:
        return tuple(text for item in self.items_or_text() if (text := item.text()) is not None)

    def members(self, expected: str = "a mapping", *, suggests_list: bool = False) -> Iterator[tuple[str, Field]]:
        """The entries of a mapping with user-defined names; ``suggests_list`` if a list with a text is valid too."""
        if not isinstance(self.node, Mapping):
            self.report_type(expected, self._as_list() if suggests_list else self._as_names())
            return
        for key, value in self.node:
            # Merging converts list entries to keys; a path must not contain a variable's value.
            yield key.text, self.child(key.written, value, key)

    def section(self, pattern: str) -> Section | None:
        """Open a mapping with keys of the table."""
        if not isinstance(self.node, Mapping):
            self.report_type("a mapping")
            return None
        return open_section(self, self.node, pattern)

    def pairs(self) -> Iterator[tuple[str, Field, str | None]]:
        """The pairs of a mapping or of a list of ``NAME=value``: name, field, value (None if missing)."""
        if isinstance(self.node, Mapping):
            for name, value in self.members():
                if value.is_null:
                    yield name, value, None
                elif isinstance(value.node, Scalar):
                    yield name, value, value.node.text
                else:
                    value.report_type("a text, a number, a boolean or nothing")
            return
        for item in self.items("a mapping or a list of NAME=value"):
            if not isinstance(item.node, Scalar) or item.is_null:
                hint = "leave out the '-' to write NAME: value" if isinstance(item.node, Mapping) else ""
                item.report_type("a text NAME=value", hint)
                continue
            name, text = split_pair(item.node.text)
            if has_placeholder(name):
                item.report("invalid-value", "has a name that is made of an output", _late_hint_of(name))
            else:
                yield name, item, text


def _late_hint_of(text: str) -> str:
    return late_hint(map(name_of, placeholders_in(text)))


@mutable
class Section:
    """An open mapping: its supported fields; the other keys are reported as the table says."""

    whole: Field
    fields: dict[str, Field]

    def get(self, key: str) -> Field | None:
        """The field of a key; None without a value too."""
        found = self.fields.get(key)
        return None if found is None or found.is_null else found

    def report_missing(self, key: str, purpose: str) -> None:
        """Report a key that must be there; an entry without any of ours may be a text that its ':' makes a mapping."""
        keys = self.whole.node if isinstance(self.whole.node, Mapping) else ()
        unknown = (self.whole.ctx.report.near(found.text, (key,)) for found, _ in keys if found.text not in self.fields)
        hint = next(filter(None, unknown), "" if self.fields else self.whole.text_hint())
        self.whole.report("missing-key", f"must have a '{key}', {purpose}", hint)

    def given(self, key: str) -> Field | None:
        """The field of a key; None for an empty text too, such as that of a variable that is not set."""
        found = self.get(key)
        return found if found and found.text() else None

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
        """The pairs of a mapping; a missing value is an empty text."""
        found = self.get(key)
        return {name: value or "" for name, _, value in found.pairs()} if found else {}


def open_section(whole: Field, node: Mapping, pattern: str) -> Section:
    return Section(whole, _used_fields(whole, node, pattern))


def _used_fields(whole: Field, node: Mapping, pattern: str) -> dict[str, Field]:
    table = SECTIONS[pattern]
    fields: dict[str, Field] = {}
    for key, value in node:
        row = table.get(key.text)
        if row is not None and row.handling_in(full=whole.ctx.full).is_used:
            fields[key.text] = whole.child(key.text, value, key)
        else:
            _report_unused(whole, key, value, row, pattern)
    return fields


def _report_unused(whole: Field, key: Scalar, value: Node, row: Row | None, pattern: str) -> None:
    """Report a key without effect, as the table says."""
    handling = row.handling_in(full=whole.ctx.full) if row else None
    path = (*whole.path, key.text)
    report = whole.ctx.report
    name = dotted(path)
    if handling in (Handling.WARNED, Handling.DEEP, Handling.IGNORED) and is_empty(value):
        message = f"{name} has no effect here, and needs none: it is empty"
        report.add("redundant-key", key.span, path, message, with_full_mode(path, ""))
    elif handling is Handling.WARNED or (handling is None and pattern in OPEN_SECTIONS):
        _report_unsupported(whole.ctx, key, value, path, pattern, row.why if row else "")
    elif handling is Handling.DEEP:
        _report_unsupported(whole.ctx, key, value, path, pattern)
        _report_unsupported_fields(whole.ctx, value, path)
    elif handling is Handling.IGNORED:
        report.add("ignored-key", key.span, path, f"{name} is ignored", with_full_mode(path, ""))
    elif not key.text.startswith("x-"):
        hint = pasted_hint(key.text) or report.near(key.text, SECTIONS[pattern])
        report.add("unknown-key", key.span, path, f"{name} is not a key that Compose or this tool knows", hint)


def _report_unsupported(ctx: Context, key: Scalar, value: Node, path: PathKey, pattern: str, hint: str = "") -> None:
    """Warn about a key without effect; add a note if the key asks for the default."""
    report = ctx.report
    explanation = explain_name(ctx.variables, value, path) or explain(pattern, key.text, value, path)
    if explanation and explanation.is_harmless:
        message = f"{dotted(path)} has no effect here, and needs none: {explanation.text}"
        report.add("redundant-key", key.span, path, message, with_full_mode(path, ""))
    else:
        more = f": {explanation.text}" if explanation and explanation.text else ""
        fix, values = (explanation.fix, explanation.in_full_mode) if explanation else ("", "")
        fix = with_full_mode(path, fix or hint, values)
        report.add("unsupported-key", key.span, path, f"{dotted(path)} is not supported and has no effect{more}", fix)


def _report_unsupported_fields(ctx: Context, block: Node, path: PathKey) -> None:
    """Report each field of each entry of a block without effect."""
    for key, entry in block if isinstance(block, Mapping) else ():
        for name, value in entry if isinstance(entry, Mapping) else ():
            if not name.text.startswith("x-"):
                _report_unsupported(ctx, name, value, (*path, key.text, name.text), f"{dotted(path)}.*")
