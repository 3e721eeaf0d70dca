"""Messages: their order, each once, and what may be in them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from composeplat.diagnostics import (
    ComposeplatError,
    Exit,
    InvalidDefinition,
    MissingPiece,
    Report,
    Severity,
    Source,
    Span,
    dotted,
    format_count,
    join_and_count,
    join_some,
    printable,
    quoted,
)
from tests.conftest import lines

FIRST = Source("b.yaml", Path(), order=1)
SECOND = Source("a.yaml", Path(), order=2)


def test_messages_are_sorted_as_people_read() -> None:
    """Files come in the order they were read, then lines, columns, and errors first at one place."""
    report = Report()
    report.add("unknown-key", Span(SECOND, 1, 1), (), "fourth")
    report.add("no-effect", Span(FIRST, 2, 1), (), "third")
    report.add("invalid-value", Span(FIRST, 2, 1), (), "second")
    report.add("invalid-value", Span(FIRST, 1, 10), (), "first")

    assert [d.message for d in report.sorted()] == ["first", "second", "third", "fourth"]


def test_one_message_for_one_place() -> None:
    """A code that shows one thing of a place shows it once, as for an anchor that is used often."""
    report = Report()
    for path in ("services.a", "services.b"):
        report.add("unsupported-key", Span(FIRST, 1, 1), (path,), f"{path} is not supported")

    assert lines(report.sorted()) == ["b.yaml:1:1: warning: services.a is not supported [unsupported-key]"]


def test_a_file_that_is_read_twice() -> None:
    """A message about a place in a file is shown once, however often the file is read, as `.env` may be."""
    report, again = Report(), Source(FIRST.name, Path(), order=3)
    for source in (FIRST, again):
        report.add("invalid-env-file", Span(source, 1, 1), (), "is no line")
        report.add("unset-variable", Span(source, 2, 1), (), "is not set")

    assert lines(report.by_path()) == [
        "b.yaml:1:1: error: is no line [invalid-env-file]",
        "b.yaml:2:1: warning: is not set [unset-variable]",
    ]
    assert report.errors == 1


def test_findings_by_path() -> None:
    """Each of the services that share an anchor has its own finding."""
    report = Report()
    for path in ("services.a", "services.b", "services.a"):
        report.add("unsupported-key", Span(FIRST, 1, 1), (path,), f"{path} is not supported")

    assert [d.message for d in report.by_path()] == ["services.a is not supported", "services.b is not supported"]


def test_several_messages_for_one_place() -> None:
    """A code that may show several things shows each once, whatever path it was met under."""
    report = Report()
    for path, text in (("a", "is wrong"), ("b", "is wrong"), ("b", "is bad")):
        report.add("invalid-value", Span(FIRST, 1, 1), (path,), f"{path} {text}")

    assert [d.message for d in report.sorted()] == ["a is wrong", "b is bad"]
    assert report.errors == 2


def test_once_in_a_run() -> None:
    """Some things are reported once, wherever they come up again."""
    report = Report()
    for line in (3, 1, 2):
        report.add("unset-variable", Span(FIRST, line, 1), (), "the variable 'A' is not set")
    report.add("unset-variable", Span(FIRST, 1, 1), (), "the variable 'B' is not set")

    assert [(d.span.line, d.message[14]) for d in report.sorted()] == [(1, "B"), (3, "A")]
    assert report.by_path() == report.sorted()


def test_only_errors_are_counted() -> None:
    """Warnings and notes do not make a definition invalid."""
    report = Report()
    report.add("no-effect", Span(FIRST), (), "warning")
    report.add("ignored-key", Span(FIRST), (), "note")
    report.raise_if_errors()
    report.add("invalid-value", Span(FIRST), (), "error")

    with pytest.raises(InvalidDefinition):
        report.raise_if_errors()


def test_at_least() -> None:
    """Notes are left out unless they are wanted; under strict an unknown key is an error and any other note is not."""
    report = Report()
    report.add("invalid-value", Span(FIRST, 1), (), "error")
    report.add("no-effect", Span(FIRST, 2), (), "warning")
    report.add("unknown-key", Span(FIRST, 3), (), "unknown")
    report.add("ignored-key", Span(FIRST, 4), (), "ignored")

    assert [d.message for d in report.at_least(Severity.ERROR)] == ["error"]
    assert [d.message for d in report.at_least(Severity.WARNING)] == ["error", "warning"]
    assert [d.message for d in report.at_least(Severity.ERROR, strict=True)] == ["error", "warning", "unknown"]
    assert [d.message for d in report.at_least(Severity.NOTE)] == ["error", "warning", "unknown", "ignored"]


def test_notes_are_summaries() -> None:
    """Of notes that a user should know of there is one line a kind, with the keys, those that come most often first."""
    report = Report()
    for line, path in enumerate((("services", "a", "tty"), ("networks", "x", "driver"), ("networks",))):
        report.add("redundant-key", Span(FIRST, line), path, "note")
    report.add("loopback-port", Span(FIRST, 9), ("services", "a", "ports", 0), "note")
    report.add("ignored-key", Span(FIRST, 9), ("services", "a", "uts"), "note")

    assert report.summaries() == [
        "3 settings have no effect here, and need none: networks (2), tty",
        "1 port is bound to loopback, and so has no URL",
    ]


def test_an_unknown_code() -> None:
    """A message needs a row in the table of codes."""
    with pytest.raises(KeyError):
        Report().add("no-such-code", Span(FIRST), (), "message")


def test_invalid_definition() -> None:
    """The exception names the first error and how many more there are."""
    report = Report()
    report.add("invalid-value", Span(FIRST, 7), (), "second")
    report.add("invalid-value", Span(FIRST, 3), (), "first")
    report.add("no-effect", Span(FIRST, 1), (), "a warning")

    assert str(InvalidDefinition(report)) == "b.yaml:3: first (and 1 more)"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ComposeplatError("x"), Exit.FAILED),
        (InvalidDefinition(Report()), Exit.INVALID),
        (MissingPiece("x"), Exit.MISSING),
    ],
)
def test_exit_codes(error: ComposeplatError, expected: Exit) -> None:
    """Each error has its exit status."""
    assert expected == error.exit_code


def test_exit_statuses() -> None:
    """The statuses are a promise to scripts."""
    assert [(status.name, int(status)) for status in Exit] == [
        ("DONE", 0),
        ("FAILED", 1),
        ("USAGE", 2),
        ("INVALID", 3),
        ("MISSING", 4),
        ("CHANGES", 5),
        ("INTERRUPTED", 130),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [((), ""), (("services", "web", "ports", 0), "services.web.ports[0]"), ((0, "a"), "[0].a"), (("a.b",), "a.b")],
)
def test_dotted(path: tuple[str | int, ...], expected: str) -> None:
    """A path is written with dots and brackets."""
    assert expected == dotted(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain é 漢", "plain é 漢", id="letters"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape-sequence"),
        pytest.param("a\tb\rc\x00", "a\\tb\\rc\\x00", id="control-characters"),
        pytest.param("a\nb", "a\nb", id="newline-stays"),
        pytest.param("\u202egnp.exe", "\\u202egnp.exe", id="right-to-left-override"),
        pytest.param("\u200b", "\\u200b", id="zero-width-space"),
    ],
)
def test_printable(text: str, expected: str) -> None:
    """Nothing that steers a terminal comes through."""
    assert expected == printable(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("web", "'web'", id="short"),
        pytest.param("a\nb", "'a\\nb'", id="one-line"),
        pytest.param("a" * 60, "'" + "a" * 60 + "'", id="longest"),
        pytest.param("a" * 61, "'" + "a" * 59 + "…'", id="cut"),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    """What is quoted fits a message."""
    assert expected == quoted(text)


def test_messages_and_hints_are_printable() -> None:
    """A name with an escape sequence can't reach the terminal through a message, a hint or an exception."""
    report = Report()
    report.add("invalid-value", Span(FIRST), (), "\x1b[2J", "\x1b[2J")
    error = ComposeplatError("\x1b[2J", "\x1b[2J")

    assert {"\\x1b[2J"} == {report.sorted()[0].message, report.sorted()[0].hint, str(error), error.hint}


@pytest.mark.parametrize(("number", "expected"), [(1, "one"), (2, "two"), (3, ""), (4, ""), (0, ""), (-1, "")])
def test_a_line_of_a_source(number: int, expected: str) -> None:
    """A line is given without its end; there is none before the first and after the last."""
    assert expected == Source("a", Path(), "one\r\ntwo\n").line(number)


def test_the_lines_of_a_large_source() -> None:
    """A file with a message for each of its lines is not split into lines for each of them."""
    source = Source("compose.yaml", Path(), "key: value\n" * 50_000)
    start = time.monotonic()

    assert {source.line(number) for number in range(1, 5_000)} == {"key: value"}
    assert time.monotonic() - start < 2


def test_suggestions_have_an_end() -> None:
    """After 25,000 comparisons no more suggestions are looked for: a file made to be wrong has no end of them."""
    report = Report()
    known = ["service", *map(str, range(999))]

    hints = [report.near("srevice", known) for _ in range(26)]

    assert (all(hints[:25]), hints[25]) == (True, "")


def test_a_noun_has_the_number_of_its_count() -> None:
    """One file, and two files; none is a plural too."""
    assert [format_count(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]


def test_a_list_is_cut_at_its_limit() -> None:
    """As many names as the limit are whole; what is left out is dots, or a number."""
    assert join_some(["a", "b"], 2) == join_and_count(["a", "b"], 2) == "a, b"
    assert join_some({"a": 1, "b": 2, "c": 3}, 2) == "a, b …"
    assert join_and_count(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert join_some([], 2) == ""
