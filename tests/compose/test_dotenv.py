"""Env files: places of mistakes, layers, and the raw format; the grammar itself is held by Compose's own vectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.compose.dotenv import read_env
from composeplat.diagnostics import Report, Source
from tests.conftest import lines


def read(
    text: str, environment: Mapping[str, str] | None = None, *, raw: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Give the variables of a file ``.env``, and the messages."""
    report = Report()
    values = read_env(Source(".env", Path(), text), (environment or {}).get, report, raw=raw)
    return values, lines(report.sorted())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param("# only a comment", {}, id="comment"),
        pytest.param("A=b", {"A": "b"}, id="pair"),
        pytest.param("A=b\r\nC=d\r\n", {"A": "b", "C": "d"}, id="windows-lines"),
        pytest.param("A: b", {"A": "b"}, id="colon"),
        pytest.param("export A=b", {"A": "b"}, id="export"),
        pytest.param("  A = b  ", {"A": "b"}, id="spaces"),
        pytest.param("A=b # c", {"A": "b"}, id="comment-after-a-value"),
        pytest.param("A=b#c", {"A": "b#c"}, id="no-comment-without-a-space"),
        pytest.param("A=#f00\nB: #f00 # c", {"A": "#f00", "B": ""}, id="a-hash-is-the-value-or-a-comment"),
        pytest.param("A='b # c'", {"A": "b # c"}, id="quoted-hash"),
        pytest.param("A='a\\\\b\\'c\\d'", {"A": "a\\\\b'c\\d"}, id="backslashes-in-single-quotes"),
        pytest.param('A="it\\\'s \\\\ \\""', {"A": "it\\'s \\ \""}, id="backslashes-in-double-quotes"),
        pytest.param("A='$B'", {"A": "$B"}, id="single-quotes-are-literal"),
        pytest.param('A="one\\ntwo"', {"A": "one\ntwo"}, id="escape"),
        pytest.param('A="one\ntwo"\nB=c', {"A": "one\ntwo", "B": "c"}, id="lines"),
        pytest.param("A=", {"A": ""}, id="empty-value"),
        pytest.param("A=b=c", {"A": "b=c"}, id="equals-sign-in-a-value"),
        pytest.param("A=1\nA=2", {"A": "2"}, id="the-last-one-holds"),
        pytest.param("A=1\nB=$A", {"A": "1", "B": "1"}, id="earlier-line"),
        pytest.param('A="\\$X"', {"A": "$X"}, id="escaped-dollar"),
    ],
)
def test_values(text: str, expected: dict[str, str]) -> None:
    """A line gives its variable."""
    assert (expected, []) == read(text)


def test_the_environment_wins_in_a_substitution() -> None:
    """A line refers to the environment's value before an earlier line's."""
    assert read("A=1\nB=$A", {"A": "shell"}) == ({"A": "1", "B": "shell"}, [])


def test_a_bare_name_takes_the_environment() -> None:
    """A bare name has the environment's value, and none where that has none."""
    assert read("A\nB", {"A": "shell"}) == ({"A": "shell"}, [])


def test_a_value_is_not_read_again() -> None:
    """What a variable holds is not substituted."""
    assert read("B=$A", {"A": "$C"}) == ({"B": "$C"}, [])


_HINT = "quote a value that holds quotes or spaces, and begin a comment with '#'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "A=1\nnot a line\nB=2",
            ".env:2:1: error: the line is not NAME=value [invalid-env-file]",
            id="no-pair",
        ),
        pytest.param(
            "A=1\n  =x\nB=2",
            ".env:2:3: error: the line is not NAME=value [invalid-env-file]",
            id="no-name",
        ),
        pytest.param(
            "A=1\nC='open\nB=2",
            ".env:2:1: error: the value of 'C' begins with a quote that is never closed [invalid-env-file]",
            id="open-quote",
        ),
        pytest.param(
            "A=1\nC='x' y\nB=2",
            ".env:2:1: error: there is text after the closing quote of the value of 'C' [invalid-env-file]",
            id="text-after-a-quote",
        ),
        pytest.param(
            "A=1\r\nwrong line\r\nB=2",
            ".env:2:1: error: the line is not NAME=value [invalid-env-file]",
            id="windows-lines",
        ),
    ],
)
def test_mistakes(text: str, expected: str) -> None:
    """A wrong line is reported with its place, and the other lines are read."""
    assert ({"A": "1", "B": "2"}, [expected]) == read(text)


def test_mistake_in_a_substitution() -> None:
    """A '${' that can't be understood names its line."""
    values, messages = read("A=1\nB=${A:-x")

    assert values == {"A": "1"}
    assert messages == [
        ".env:2:1: error: the value of 'B' can't be substituted: '${' is never closed by '}' [invalid-env-file]"
    ]


def test_unset_and_required_variables() -> None:
    """A variable that is not set is reported by the line's own name: what is unset may be the end of a password."""
    values, messages = read("A=$X\nB=${Y:?set it}")

    assert values == {"A": "", "B": ""}
    assert messages == [
        (
            ".env:1:1: warning: the value of 'A' refers to a variable that is not set; an empty string is used"
            " [unset-variable]"
        ),
        ".env:2:1: error: the variable 'Y' must be set: set it [required-variable]",
    ]


def test_a_message_never_holds_a_value() -> None:
    """A secret on a wrong line is not repeated."""
    _, messages = read("PASSWORD='hunter2' oops\nhunter2 hunter2")

    assert messages
    assert all("hunter2" not in message for message in messages)


def test_raw() -> None:
    """In the raw format a line is taken as it stands: no quotes, no comments, no substitution."""
    text = "A='b' # c\nB=$A\n# D=e\n\nC\nE = f\n"

    values, messages = read(text, {"C": "shell"}, raw=True)

    assert values == {"A": "'b' # c", "B": "$A", "C": "shell", "E": " f"}
    assert messages == []


def test_ends_of_raw_lines() -> None:
    """A line ends at a line feed alone, which a carriage return may precede: other ends of lines are in values."""
    values, messages = read("A=x\x85y\u2028z\x0bv\r\nB=a\rb\r\r\nC=c", raw=True)

    assert values == {"A": "x\x85y\u2028z\x0bv", "B": "a\rb\r", "C": "c"}
    assert messages == []


def test_other_ends_of_lines_in_values() -> None:
    """So it is in the usual format, whose values have no spaces around them."""
    values, _ = read("A=x\x85y\u2028z \nB='\u2028'\n")

    assert values == {"A": "x\x85y\u2028z", "B": "\u2028"}
