"""The format of diagnostics and errors, their colors and width, and writing to both outputs.

Owns standard error, which has all messages for people. Results go to standard output.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from composeplat import progress
from composeplat.codes import CODES
from composeplat.diagnostics import ComposeplatError, Diagnostic, Report, Severity, Span, dotted, printable
from composeplat.render.json_text import printable_json

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_DEFAULT_WIDTH = 100
#: Sequences that move a cursor, color text, or set a title; and a shorter one that starts them.
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal; there is none where the parent process has closed it."""
    return stream is not None and stream.isatty()


def wants_color(stream: TextIO | None) -> bool:
    """Colors are for terminals, unless NO_COLOR is set or the terminal can't show them."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_report(
    report: Report, *, strict: bool = False, verbose: bool = False, as_json: bool = False, counted: bool = True
) -> bool:
    """Show the diagnostics, and return whether any of them is an error."""
    least = Severity.NOTE if verbose else Severity.WARNING
    shown = report.at_least(least, strict=strict)
    failed = report.errors > 0 or any(d.severity_under(strict=strict) is Severity.ERROR for d in shown)
    summed = [] if verbose or not counted else report.summaries()
    if as_json:
        shown += [d for d in report.sorted() if summed and CODES[d.code].summary]
        write_json_lines(as_data(diagnostic, strict=strict) for diagnostic in shown)
        return failed
    summary = _summary(shown, report.dropped, strict=strict) if shown and counted else ""
    write_message(diagnostics_text(shown, strict=strict) + "".join(map(_sum_line, summed)) + summary)
    return failed


def diagnostics_text(shown: Iterable[Diagnostic], *, strict: bool = False) -> str:
    """Format diagnostics for standard error: with an excerpt of the file if that is a terminal."""
    color, excerpts = wants_color(sys.stderr), sys.stderr.isatty()
    parts: list[str] = []
    for diagnostic in shown:
        parts.append(_line(diagnostic, strict=strict, color=color) + "\n")
        if excerpts:
            parts.append(_excerpt(diagnostic.span, color=color))
        if diagnostic.hint:
            parts.append(f"  hint: {diagnostic.hint}\n")
    return "".join(parts)


def _sum_line(line: str) -> str:
    return f"{_severity(Severity.NOTE, color=wants_color(sys.stderr))}: {line} (-v shows them)\n"


_raw: list[bool] = []


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Return to the first column at the end of each line, while a program of the user has the terminal."""
    _raw.append(True)
    try:
        yield
    finally:
        _raw.pop()


def is_raw() -> bool:
    return bool(_raw)


_erasers: list[Callable[[], None]] = []


@contextmanager
def drawn_below(erase: Callable[[], None]) -> Iterator[None]:
    """Call a function before each message: it erases what is drawn on the terminal below the messages."""
    _erasers.append(erase)
    try:
        yield
    finally:
        _erasers.remove(erase)


def write_message(text: str) -> None:
    """Write to standard error; nothing happens if that is closed, as the exit status remains."""
    _write_error(progress.masked_text(text).replace("…", ellipsis(sys.stderr)))


def write_json_lines(rows: Iterable[object]) -> None:
    """Write data to standard error, a line each; the texts are masked, and the form is not: a secret may be `true`.

    It is in ASCII, so that no control character of a name reaches a terminal.
    """
    _write_error("".join(json.dumps(progress.masked_data(row), default=str) + "\n" for row in rows))


def _write_error(text: str) -> None:
    for erase in _erasers:
        erase()
    try:
        sys.stderr.write(text.replace("\n", "\r\n") if _raw else text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def ellipsis(stream: TextIO) -> str:
    return "…" if is_unicode(stream) else "..."


def write_output(text: str) -> bool:
    """Write a result to standard output, masked; return whether its reader is still there."""
    return write_unmasked(progress.masked_text(text))


def write_json(data: object) -> bool:
    """Write data to standard output as JSON; its texts are masked, and its form is not: a secret may be `true`."""
    return write_unmasked(to_json(progress.masked_data(data)))


def to_json(value: object) -> str:
    """Write data as JSON: readable, and without a control character that a terminal would obey."""
    return printable_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)) + "\n"


def write_unmasked(text: str) -> bool:
    """Write a result that is useless if masked, such as a definition; return whether its reader is still there.

    A terminal gets it in its own encoding. Everything else gets UTF-8 whatever the locale: programs read it.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        stream.write(text.replace("…", ellipsis(stream)) if stream.isatty() else text)
        stream.flush()
    except BrokenPipeError:
        # The reader has gone (`| head`): no error, and nothing more can be written.
        silence(stream)
        return False
    except OSError as error:
        silence(stream)
        raise ComposeplatError(lost_result(error)) from error
    return True


def lost_result(error: OSError) -> str:
    """Return the message about a result that can't be written."""
    is_closed = error.errno == errno.EBADF
    reason = "standard output is closed" if is_closed else (error.strerror or str(error)).lower()
    return f"can't write the result: {reason}"


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Format rows as columns; the first row has their names."""
    shown = [tuple(printable(cell).replace("\n", "\\n") for cell in row) for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def silence(stream: TextIO) -> None:
    """Drop all further output, so that the end of the process does not fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def place_row(place: Span) -> dict[str, object]:
    return {"file": place.source.name, "line": place.line, "column": place.column}


def as_data(diagnostic: Diagnostic, *, strict: bool) -> dict[str, object]:
    return {
        **place_row(diagnostic.span),
        "length": diagnostic.span.length,
        "severity": str(diagnostic.severity_under(strict=strict)),
        "code": diagnostic.code,
        "path": dotted(diagnostic.path),
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def _line(diagnostic: Diagnostic, *, strict: bool, color: bool) -> str:
    span = diagnostic.span
    severity = diagnostic.severity_under(strict=strict)
    word = _severity(severity, color=color)
    name = printable(span.source.name)
    return f"{name}:{span.line}:{span.column}: {word}: {diagnostic.message} [{diagnostic.code}]"


def _severity(severity: Severity, *, color: bool) -> str:
    return f"\x1b[1;{_COLORS[severity]}m{severity}\x1b[0m" if color else str(severity)


def _excerpt(span: Span, *, color: bool) -> str:
    """Return the line of a span with a mark below, cut around it to the width of the terminal."""
    text = span.source.line(span.line)
    if not text.strip():
        return ""
    gutter = f"{span.line:>5} | "
    width = max(40, _terminal_width() - len(gutter) - 1)
    start = max(0, span.column - 1 - width // 2) if len(text) > width else 0
    visible = "".join(c if c.isprintable() else " " for c in text[start : start + width])
    offset = min(span.column - 1 - start, len(visible))
    mark = "^" * max(1, min(span.length, len(visible) - offset))
    if color:
        mark = f"\x1b[1m{mark}\x1b[0m"
    return f"{gutter}{visible}\n      | {' ' * offset}{mark}\n"


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError):
        return _DEFAULT_WIDTH


def _summary(shown: list[Diagnostic], not_kept: int, *, strict: bool) -> str:
    counts = []
    for severity in Severity:
        count = sum(d.severity_under(strict=strict) is severity for d in shown)
        if count:
            counts.append(f"{count} {severity}{'s' if count > 1 else ''}")
    more = f"; there are {not_kept} more messages" if not_kept else ""
    return ", ".join(counts) + more + "\n"


def show_error(error: ComposeplatError, *, as_json: bool = False) -> None:
    """Show an error that has no place in a file."""
    if as_json:
        data = {"severity": "error", "code": error.code, "message": str(error), "hint": error.hint}
        write_json_lines([data])
        return
    word = "\x1b[1;31merror\x1b[0m" if wants_color(sys.stderr) else "error"
    text = f"{error}\n" + (f"  hint: {error.hint}\n" if error.hint else "")
    # Servers and plugins write parts of messages. What is hidden is known as it is, and not with its controls escaped.
    write_message(f"{word}: {printable(progress.masked_text(text))}")


def clean_line(text: str) -> str:
    """Remove control sequences for terminals from a line; tabs stay."""
    if text.isprintable():
        return text
    return "".join(c for c in _SEQUENCE.sub("", text) if c == "\t" or not _is_control(c))


def _is_control(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or "\u202a" <= character <= "\u202e"
        or "\u2066" <= character <= "\u2069"
    )
