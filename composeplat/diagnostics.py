"""Say what is wrong, where, and what to do: spans, diagnostics, the report, and the errors that end a run.

Owns the shape of every message.
Must not know YAML, Compose or a terminal: stages append to a :class:`Report` and carry on, so that one run tells
everything, and the command line alone decides how it looks.

The errors, as a tree::

    ComposeplatError            exit 1   something the user can mend
      InvalidDefinition         exit 3   the definition has errors; carries the report
      MissingPiece              exit 4   something needed is not there (a cluster, a tool)

Values of variables never come into a message: whoever writes one quotes a scalar by what stands in the file
(:attr:`composeplat.compose.nodes.Scalar.written`), not by what became of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
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
    "printable",
    "quoted",
]

PathKey = tuple[str | int, ...]

#: As the YAML library counts lines.
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

_LONGEST_QUOTE = 60
_LONGEST_STEP = 100
_LONGEST_MESSAGE = 2000
_LONGEST_WORD = 60

MAX_MESSAGES = 10_000
MAX_LOOKUPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A file (or standard input) that was read: its name for people, its text, and what its paths are relative to."""

    name: str
    base: Path
    text: str = ""
    order: int = 0

    def line(self, number: int) -> str:
        lines = _LINE_END.split(self.text)
        return lines[number - 1] if 0 < number <= len(lines) else ""


def end_of(text: str) -> tuple[int, int]:
    """Give the line and column just behind a text."""
    *_, last = lines = _LINE_END.split(text)
    return len(lines), len(last) + 1


class Span(NamedTuple):
    """A place in a source: line and column count from 1, ``length`` is what a mark under it should cover."""

    source: Source
    line: int = 1
    column: int = 1
    length: int = 1

    @property
    def place(self) -> tuple[int, str, int, int]:
        return (self.source.order, self.source.name, self.line, self.column)


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


def near(word: str, words: Iterable[str]) -> str:
    """Give a hint at the word that was meant; not for long words, as likeness is slow to see."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only where a word is wrong

    found = [] if len(word) > _LONGEST_WORD else get_close_matches(word, words, n=1)
    return f"did you mean '{found[0]}'?" if found else ""


@dataclass(slots=True)
class Report:
    """Everything a run had to say, each thing once."""

    _kept: dict[tuple[Hashable, str, str], Diagnostic] = field(default_factory=dict)
    errors: int = 0
    not_kept: int = 0
    """How many messages there were after the most that are kept: a file made to be wrong has no end of them."""
    _lookups: int = 0

    def add(self, code: str, span: Span, path: PathKey, message: str, hint: str = "") -> None:
        """Keep a message; a second one of this code at this place (an anchor used twice) is the same one.

        Codes that tell several things of one place say so in their row and are told apart by their text.
        """
        row = CODES[code]
        told_apart = message.removeprefix(dotted(path)) if row.many or row.once else ""
        key = (None if row.once else span.place, code, told_apart)
        if key in self._kept:
            return
        is_error = row.severity is Severity.ERROR
        self.errors += is_error
        if (self.errors if is_error else len(self._kept)) > MAX_MESSAGES:
            self.not_kept += 1
            return
        self._kept[key] = Diagnostic(code=code, span=span, path=path, message=_one_line(message), hint=_one_line(hint))

    def near(self, word: str, words: Iterable[str]) -> str:
        """Give a hint at the word that was meant, for so many words as do not take long."""
        self._lookups += 1
        return "" if self._lookups > MAX_LOOKUPS else near(word, words)

    def has_error(self, *path: str | int) -> bool:
        """Say whether an error was found at or below a path: then what follows from it need not be told too."""
        return any(d.severity is Severity.ERROR and d.path[: len(path)] == path for d in self._kept.values())

    def has_error_at(self, *path: str | int) -> bool:
        """Say whether the very value at a path is wrong."""
        return any(d.severity is Severity.ERROR and d.path == path for d in self._kept.values())

    def sorted(self) -> list[Diagnostic]:
        return sorted(self._kept.values(), key=lambda d: (d.span.place, d.severity, d.code, d.message))

    def at_least(self, severity: Severity, *, strict: bool = False) -> list[Diagnostic]:
        return [d for d in self.sorted() if d.severity_under(strict=strict) <= severity]

    def summed_up(self) -> list[str]:
        """Give a line for each kind of note that is to be known of, where the notes themselves are not shown."""
        found: dict[str, list[Diagnostic]] = {}
        for diagnostic in self.sorted():
            if CODES[diagnostic.code].summary:
                found.setdefault(diagnostic.code, []).append(diagnostic)
        return [_sum_up(code, notes) for code, notes in found.items()]

    def raise_if_errors(self) -> None:
        if self.errors:
            raise InvalidDefinition(self)


class ComposeplatError(Exception):
    """Something the user can mend; ``exit_code`` is the status of the command that meets it."""

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
    """Something needed is not there: a cluster, an engine, a registry."""

    exit_code = Exit.MISSING


def _sum_up(code: str, notes: list[Diagnostic]) -> str:
    one, several = CODES[code].summary or ("", "")
    counts = Counter(_key_of(note.path) for note in notes)
    keys = ", ".join(f"{key} ({count})" if count > 1 else key for key, count in counts.most_common())
    return (one if len(notes) == 1 else several).format(count=len(notes), keys=keys)


def _key_of(path: PathKey) -> str:
    """The key that a note is of: the last of its path, but the block's own for what is in one."""
    steps = [step for step in path if isinstance(step, str)]
    return steps[0] if steps[0] not in ("services", "volumes") else steps[-1]


def dotted(path: PathKey) -> str:
    """Write a path as people do: ``services.web.ports[0]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if len(step) <= _LONGEST_STEP else f"{step[:_LONGEST_STEP]}…"
            text += f".{shown}" if text else shown
    return text


def _one_line(text: str) -> str:
    """Keep a message on its line, whatever the names in it hold, and to a length that someone may read."""
    shown = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
    return printable(shown).replace("\n", "\\n")


def printable(text: str) -> str:
    """Keep control characters (an escape sequence in a name) from reaching a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(text: str) -> str:
    """Quote what was found, cut to a length that fits a message."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    shown = shown.replace("\n", "\\n")
    return f"'{shown}'"
