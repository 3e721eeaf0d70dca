"""How things look: diagnostics, colors, width.

Owns standard error.
Results go to standard output, and everything a person is told goes here.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from composeplat.diagnostics import Diagnostic, Report, Severity, Span, dotted, printable

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_DEFAULT_WIDTH = 100


def wants_color(stream: TextIO) -> bool:
    """Colors are for terminals, unless NO_COLOR is set or the terminal can't show them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_report(report: Report, *, strict: bool = False, verbose: bool = False, as_json: bool = False) -> bool:
    """Show the diagnostics; gives whether any of them is an error."""
    least = Severity.NOTE if verbose else Severity.WARNING
    shown = report.at_least(least, strict=strict)
    failed = any(d.severity_under(strict=strict) is Severity.ERROR for d in shown)
    stream = sys.stderr
    if as_json:
        for diagnostic in shown:
            stream.write(json.dumps(as_data(diagnostic, strict=strict), ensure_ascii=False) + "\n")
        return failed
    color, excerpts = wants_color(stream), stream.isatty()
    for diagnostic in shown:
        stream.write(_line(diagnostic, strict=strict, color=color) + "\n")
        if excerpts:
            stream.write(_excerpt(diagnostic.span, color=color))
        if diagnostic.hint:
            stream.write(f"  hint: {diagnostic.hint}\n")
    if shown:
        stream.write(_summary(shown, strict=strict))
    return failed


def as_data(diagnostic: Diagnostic, *, strict: bool) -> dict[str, object]:
    span = diagnostic.span
    return {
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
        "length": span.length,
        "severity": str(diagnostic.severity_under(strict=strict)),
        "code": diagnostic.code,
        "path": dotted(diagnostic.path),
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def _line(diagnostic: Diagnostic, *, strict: bool, color: bool) -> str:
    span = diagnostic.span
    severity = diagnostic.severity_under(strict=strict)
    word = f"\x1b[1;{_COLORS[severity]}m{severity}\x1b[0m" if color else str(severity)
    name = printable(span.source.name)
    return f"{name}:{span.line}:{span.column}: {word}: {diagnostic.message} [{diagnostic.code}]"


def _excerpt(span: Span, *, color: bool) -> str:
    """The line, with a mark under what is meant, cut to the terminal's width around it."""
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


def _summary(shown: list[Diagnostic], *, strict: bool) -> str:
    counts = []
    for severity in Severity:
        count = sum(d.severity_under(strict=strict) is severity for d in shown)
        if count:
            counts.append(f"{count} {severity}{'s' if count > 1 else ''}")
    return ", ".join(counts) + "\n"


def show_error(message: str, hint: str = "") -> None:
    word = "\x1b[1;31merror\x1b[0m" if wants_color(sys.stderr) else "error"
    sys.stderr.write(f"{word}: {message}\n")
    if hint:
        sys.stderr.write(f"  hint: {hint}\n")
