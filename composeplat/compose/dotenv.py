"""Env files in Compose's dialect.

Owns the line grammar: ``NAME=value``, ``NAME: value``, ``export``, quotes, comments, values of several lines, bare
names that are taken from the environment, and substitution from the environment, from earlier lines and earlier files.
Must not open files.

The scanner is python-dotenv's. Its grammar differs from Compose's (no ``NAME: value``, other escapes, invalid lines are
skipped silently), so the grammar is here, and reports each invalid line with its place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from composeplat.compose.pasted_text import CONFLICT, CONFLICT_HINT, conflict_line
from composeplat.compose.template import MAX_TEXT, BadTemplate, Outcome, evaluate, parse_template
from composeplat.diagnostics import Report, Source, Span
from composeplat.system.records import record

MAX_VALUES = 4 * MAX_TEXT

Lookup = Callable[[str], str | None]

_BLANK = re.compile(r"(?:[^\S\r\n]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*[^\S\r\n]*(?:#[^\r\n]*\Z)?")
_NAME = re.compile(r"(?:export[^\S\r\n]+)?([A-Za-z0-9_.\[\]-]+)[^\S\r\n]*")
_SEPARATOR = re.compile(r"[=:]([^\S\r\n]*)")
_SINGLE = re.compile(r"'((?:\\.|[^'\\])*)'", re.DOTALL)
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_BARE = re.compile(r"([^\r\n]*)")
_TAIL = re.compile(r"[^\S\r\n]*(?:#[^\r\n]*)?(?=[\r\n]|\Z)")
_INLINE_COMMENT = re.compile(r"\s#.*\Z")
_REST = re.compile(r"[^\r\n]*")
_ESCAPE = re.compile(r"\\(0[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
}


@record
class Line:
    """One assignment: ``template`` is the value before substitution, None for a bare name."""

    name: str
    template: str | None
    literal: bool
    line: int


@record
class EnvLines:
    """A parsed env file; its values depend on the service that reads it."""

    source: Source
    lines: tuple[Line, ...]


def read_env(source: Source, lookup: Lookup, report: Report, *, raw: bool = False) -> dict[str, str]:
    """Read an env file; substitutions use the environment, then earlier lines."""
    return evaluate_lines(parse_lines(source, report, raw=raw), lookup, report)


def parse_lines(source: Source, report: Report, *, raw: bool = False) -> EnvLines:
    return EnvLines(source, tuple(parse_raw(source) if raw else parse_env(source, report)))


def evaluate_lines(
    parsed: EnvLines,
    lookup: Lookup,
    report: Report,
    earlier: Lookup = lambda _: None,
    place: Lookup = lambda _: None,
) -> dict[str, str]:
    """Return the values; substitutions use ``lookup``, then earlier lines, then ``earlier`` layers, then ``place``.

    A line that sets a variable of the place, as in ``PLATFORM_DOMAIN=${PLATFORM_DOMAIN:-local}``, lacks its value.
    """
    source, values = parsed.source, dict[str, str]()

    def look(name: str, *, line: str) -> str | None:
        found = lookup(name)
        if found is None:
            found = values[name] if name in values else earlier(name)
        return place(name) if found is None and name != line else found

    length = 0
    for line in parsed.lines:
        if length > MAX_VALUES:
            message = f"the values are longer than {MAX_VALUES // 1024 // 1024} MiB in all"
            report.add("invalid-env-file", Span(source, line.line), (), message)
            break
        if line.template is None:
            value = lookup(line.name)
        else:
            value = line.template if line.literal else _substitute(line, source, partial(look, line=line.name), report)
        if value is not None:
            values[line.name] = value
        length += len(values.get(line.name, ""))
    return values


def _substitute(line: Line, source: Source, look: Lookup, report: Report) -> str | None:
    span = Span(source, line.line)
    try:
        parts = parse_template(line.template or "")
    except BadTemplate as error:
        report.add("invalid-env-file", span, (), f"the value of '{line.name}' can't be substituted: {error}")
        return None
    outcome = Outcome()
    value = evaluate(parts, look, outcome)
    if outcome.is_too_long:
        message = f"variables make the value of '{line.name}' longer than {MAX_TEXT // 1024 // 1024} MiB"
        report.add("invalid-env-file", span, (), message)
        return None
    if outcome.unset:
        # The name may be the end of a password that contains a dollar sign, so the message leaves it out.
        message = f"the value of '{line.name}' refers to a variable that is not set; an empty string is used"
        report.add("unset-variable", span, (), message, "set it, or write $$ for a dollar sign")
    for variable in outcome.required:
        reason = f": {variable.word_text}" if variable.word_text else ""
        report.add("required-variable", span, (), f"the variable '{variable.name}' must be set{reason}")
    return value


def parse_raw(source: Source) -> list[Line]:
    """Read the ``raw`` format: each line is NAME=value, without quotes or substitution."""
    lines = []
    for number, text in enumerate(source.text.split("\n"), start=1):
        name, equals, value = text.removesuffix("\r").partition("=")
        if name.strip() and not name.lstrip().startswith("#"):
            lines.append(Line(name.strip(), value if equals else None, literal=True, line=number))
    return lines


def parse_env(source: Source, report: Report) -> list[Line]:
    from dotenv.parser import Error, Reader  # noqa: PLC0415 -- 20 ms, and only where there is an env file

    reader = Reader(io.StringIO(source.text, newline=""))
    lines: list[Line] = []
    while True:
        reader.read_regex(_BLANK)
        if not reader.has_next():
            return lines
        number, start = reader.position.line, reader.position.chars
        try:
            lines.append(_parse_line(reader, number, Error))
        except (Error, ValueError) as error:
            column = start - max(source.text.rfind("\n", 0, start), source.text.rfind("\r", 0, start))
            message = str(error) if isinstance(error, ValueError) else "the line is not NAME=value"
            hint = "quote a value that holds quotes or spaces, and begin a comment with '#'"
            if conflict_line(source.line(number)):
                message, hint = CONFLICT, CONFLICT_HINT
            report.add("invalid-env-file", Span(source, number, column), (), message, hint)
            reader.read_regex(_REST)


def _parse_line(reader: Any, number: int, not_found: type[Exception]) -> Line:
    (name,) = reader.read_regex(_NAME)
    if reader.peek(1) in ("", "\n", "\r", "#"):
        reader.read_regex(_TAIL)
        return Line(name, None, literal=False, line=number)
    (space,) = reader.read_regex(_SEPARATOR)
    quote = reader.peek(1)
    if quote in ("'", '"'):
        try:
            (text,) = reader.read_regex(_SINGLE if quote == "'" else _DOUBLE)
        except not_found as error:
            raise ValueError(f"the value of '{name}' begins with a quote that is never closed") from error
        try:
            reader.read_regex(_TAIL)
        except not_found as error:
            raise ValueError(f"there is text after the closing quote of the value of '{name}'") from error
        if quote == "'":
            # Two backslashes stay two; only one before a quote is dropped.
            return Line(name, re.sub(r"(\\\\)|\\'", lambda pair: pair[1] or "'", text), literal=True, line=number)
        return Line(name, _ESCAPE.sub(_unescape, text), literal=False, line=number)
    (text,) = reader.read_regex(_BARE)
    return Line(name, _INLINE_COMMENT.sub("", space + text).strip(), literal=False, line=number)


def _unescape(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] == "0" and len(body) > 1:
        return chr(int(body, 8))
    if body == "$":
        return "$$"
    return _ESCAPES.get(body, match[0])
