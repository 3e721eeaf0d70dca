"""Diagnostics: what is wrong, where, and how to fix it; the report that collects them; the errors that end a run.

Owns the shape of every message.
Must not know YAML, Compose or a terminal: stages append to a :class:`Report` and continue, so that one run reports
everything, and the command line decides how it is shown.

The errors, as a tree::

    ComposeplatError            exit 1   something the user can fix
      InvalidDefinition         exit 3   the definition has errors; carries the report
      MissingPiece              exit 4   something required is missing (a cluster, a tool)

Messages never contain the value of a variable: they quote a scalar as the file has it
(:attr:`composeplat.compose.nodes.Scalar.written`), not after substitution.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from composeplat.codes import CODES, Severity

__all__ = [
    "ComposeplatError",
    "Diagnostic",
    "InvalidDefinition",
    "MissingPiece",
    "Report",
    "Severity",
    "Source",
    "Span",
    "dotted",
    "format_count",
    "join_and_count",
    "join_some",
    "printable",
    "quoted",
]

PathKey = tuple[str | int, ...]

#: The line ends that the YAML library counts.
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

_MAX_QUOTE_CHARS = 60
_MAX_STEP_CHARS = 100
_MAX_MESSAGE_CHARS = 2000
_MAX_TYPO_CHARS = 60

MAX_MESSAGES = 10_000
#: Names that are compared with typos; a comparison takes some 40 µs.
MAX_COMPARED = 25_000


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A file, or standard input: its name in messages, its text, and the folder that its paths are relative to."""

    name: str
    base: Path
    text: str = ""
    order: int = 0

    def line(self, number: int) -> str:
        lines = _split_lines(self.text)
        return lines[number - 1] if 0 < number <= len(lines) else ""


# A file can have thousands of messages, each of which is shown with its line.
@lru_cache(maxsize=4)
def _split_lines(text: str) -> list[str]:
    return _LINE_END.split(text)


def end_of(text: str) -> tuple[int, int]:
    """Return the line and column after the end of a text."""
    *_, last = lines = _LINE_END.split(text)
    return len(lines), len(last) + 1


class Span(NamedTuple):
    """A place in a source: line and column count from 1; ``length`` is the number of characters to underline."""

    source: Source
    line: int = 1
    column: int = 1
    length: int = 1

    @property
    def place(self) -> tuple[int, str, int, int]:
        return (self.source.order, *self.location)

    @property
    def location(self) -> tuple[str, int, int]:
        """The place without the order of its source: a file may be read twice, as ``.env`` for ``env_file: .env``."""
        return (self.source.name, self.line, self.column)


class Exit(IntEnum):
    """Exit statuses of the command; documented in docs/commands.md."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    MISSING = 4
    CHANGES = 5
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    code: str
    span: Span
    path: PathKey
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{printable(self.span.source.name)}:{self.span.line}:{self.span.column}"
        return f"{place}: {self.severity}: {self.message} [{self.code}]"

    @property
    def severity(self) -> Severity:
        return CODES[self.code].severity

    def severity_under(self, *, strict: bool) -> Severity:
        """Return the severity; ``--strict`` makes warnings and unknown keys errors."""
        if strict and (self.severity is Severity.WARNING or self.code == "unknown-key"):
            return Severity.ERROR
        return self.severity


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint for a typo; none for long names, as comparing them is slow."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only for a typo

    found = [] if len(name) > _MAX_TYPO_CHARS else get_close_matches(name, known, n=1)
    return f"did you mean '{found[0]}'?" if found else ""


_Identity = tuple[Hashable, str, str]


@dataclass(slots=True)
class Report:
    """All messages of a run, without duplicates."""

    _kept: dict[_Identity, Diagnostic] = field(default_factory=dict)
    errors: int = 0
    dropped: int = 0
    """The number of messages beyond the limit: a crafted file can cause any number of them."""
    _compared: int = 0
    _repeated: list[tuple[_Identity, Diagnostic]] = field(default_factory=list)
    """Duplicates: the same finding at another path, where services share an anchor."""
    _error_paths: set[PathKey] = field(default_factory=set)
    _paths_with_errors: set[PathKey] = field(default_factory=set)
    """The paths of errors, and all above them."""

    def add(self, code: str, span: Span, path: PathKey, message: str, hint: str = "") -> None:
        """Add a message; a second one with the same code and place (an anchor used twice) is a duplicate.

        Codes with several messages for one place are marked in the table; their text then distinguishes them.
        """
        row = CODES[code]
        distinct_text = message.removeprefix(dotted(path)) if row.many or row.once else ""
        key = (None if row.once else span.location, code, distinct_text)
        is_repeated = key in self._kept
        if not self._has_room(row.severity, is_repeated=is_repeated):
            return
        found = Diagnostic(code=code, span=span, path=path, message=_to_line(message), hint=_to_line(hint))
        if is_repeated:
            self._repeated.append((key, found))
            return
        self._kept[key] = found
        if row.severity is Severity.ERROR:
            self._error_paths.add(path)
            self._paths_with_errors.update(path[:depth] for depth in range(len(path) + 1))

    def _has_room(self, severity: Severity, *, is_repeated: bool) -> bool:
        """Count a message, and return whether it is kept."""
        if is_repeated:
            return len(self._repeated) < MAX_MESSAGES
        is_error = severity is Severity.ERROR
        self.errors += is_error
        has_room = (self.errors if is_error else len(self._kept)) <= MAX_MESSAGES
        self.dropped += not has_room
        return has_room

    def copy(self) -> Report:
        """Return a report with the messages so far; what is added to either is not in the other."""
        return replace(
            self,
            _kept=dict(self._kept),
            _repeated=list(self._repeated),
            _error_paths=set(self._error_paths),
            _paths_with_errors=set(self._paths_with_errors),
        )

    def near(self, name: str, known: Collection[str]) -> str:
        """Return a hint for a typo, up to a number of comparisons, as each takes time."""
        self._compared += len(known)
        return "" if self._compared > MAX_COMPARED else near(name, known)

    def has_error(self, *path: str | int) -> bool:
        """Whether there is an error at or below a path; errors that follow from it are then not reported."""
        return path in self._paths_with_errors

    def has_error_at(self, *path: str | int) -> bool:
        """Whether there is an error at exactly this path."""
        return path in self._error_paths

    def has_required(self, span: Span) -> bool:
        """Whether a text lacks a variable that must be set: then errors about the text follow from it."""
        return any(d.code == "required-variable" and d.span.place == span.place for d in self._kept.values())

    def has_bad_key(self, span: Span) -> bool:
        """Whether the mapping that begins here has a first key that is no text, and lacks it: its errors follow."""
        return (span.location, "non-string-key", "") in self._kept

    def sorted(self) -> list[Diagnostic]:
        return sorted(self._kept.values(), key=lambda d: (d.span.place, d.severity, d.code, d.message))

    def by_path(self) -> list[Diagnostic]:
        """Return all messages once for each path, also duplicates for a reader of the file, unless the code is once."""
        repeated = (diagnostic for _, diagnostic in self._repeated if not CODES[diagnostic.code].once)
        found = {(d.code, d.path, d.span.location, d.message): d for d in (*self.sorted(), *repeated)}
        return list(found.values())

    def errors_with_duplicates(self) -> list[list[Diagnostic]]:
        """Return each error that is shown, followed by its duplicates at other paths."""
        found = {key: [d] for key, d in self._kept.items() if d.severity is Severity.ERROR}
        for key, diagnostic in self._repeated:
            if key in found:
                found[key].append(diagnostic)
        return list(found.values())

    def at_least(self, severity: Severity, *, strict: bool = False) -> list[Diagnostic]:
        return [d for d in self.sorted() if d.severity_under(strict=strict) <= severity]

    def summaries(self) -> list[str]:
        """Return a line for each kind of note that has a summary."""
        found: dict[str, list[Diagnostic]] = {}
        for diagnostic in self.sorted():
            if CODES[diagnostic.code].summary:
                found.setdefault(diagnostic.code, []).append(diagnostic)
        return [_summary(code, notes) for code, notes in found.items()]

    def raise_if_errors(self) -> None:
        if self.errors:
            raise InvalidDefinition(self)


class ComposeplatError(Exception):
    """An error that the user can fix; ``exit_code`` is the exit status of the command."""

    exit_code: int = Exit.FAILED
    code: str = ""
    """The diagnostic code of a message that has no place in a file."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(printable(message))
        self.hint = printable(hint)


class InvalidDefinition(ComposeplatError):
    """The definition has errors, all of them in ``report``."""

    exit_code = Exit.INVALID

    def __init__(self, report: Report) -> None:
        errors = [d for d in report.sorted() if d.severity is Severity.ERROR]
        first = errors[0] if errors else None
        where = f"{first.span.source.name}:{first.span.line}: {first.message}" if first else "invalid definition"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(where + more)
        self.report = report


class MissingPiece(ComposeplatError):
    """Something required is missing: a cluster, an engine, a registry."""

    exit_code = Exit.MISSING


def _summary(code: str, notes: list[Diagnostic]) -> str:
    singular, plural = CODES[code].summary or ("", "")
    counts = Counter(_key_of(note.path) for note in notes)
    keys = ", ".join(f"{key} ({count})" if count > 1 else key for key, count in counts.most_common())
    return (singular if len(notes) == 1 else plural).format(count=len(notes), keys=keys)


def _key_of(path: PathKey) -> str:
    """The key that a note is about: the last key of its path, or the top-level block's."""
    steps = [step for step in path if isinstance(step, str)]
    return steps[0] if steps[0] not in ("services", "volumes") else steps[-1]


def dotted(path: PathKey) -> str:
    """Write a path as in ``services.web.ports[0]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if len(step) <= _MAX_STEP_CHARS else f"{step[:_MAX_STEP_CHARS]}…"
            text += f".{shown}" if text else shown
    return text


def _to_line(text: str) -> str:
    """Put a message on one line, and cut it to a readable length."""
    shown = text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[:_MAX_MESSAGE_CHARS]}…"
    return printable(shown).replace("\n", "\\n")


def printable(text: str) -> str:
    """Escape control characters: a name must not send an escape sequence to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(text: str) -> str:
    """Quote a text, cut to a length that fits a message."""
    shown = truncate(text, _MAX_QUOTE_CHARS).replace("\n", "\\n")
    return f"'{shown}'"


def truncate(text: str, limit: int) -> str:
    """Cut a text to a number of characters; an ellipsis replaces what does not fit."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def format_count(count: int, noun: str) -> str:
    """Write a number with its noun, as in ``2 files``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def join_some(names: Collection[str], limit: int) -> str:
    """List names with commas; dots replace those after the limit."""
    return _first(names, limit) + (" …" if len(names) > limit else "")


def join_and_count(names: Collection[str], limit: int) -> str:
    """List names with commas; a number replaces those after the limit."""
    return _first(names, limit) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _first(names: Collection[str], limit: int) -> str:
    return ", ".join(islice(names, limit))
