"""Variables in a definition's values: the message about them, and what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.interpolate import interpolate
from composeplat.compose.nodes import to_plain
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source
from tests.conftest import lines

VARIABLES = Variables.from_layers({"A": "one", "EMPTY": "", "DOLLAR": "$A", "YAML": "{x: 1}"}, {"SECRET": "hunter2"})


def substituted(text: str) -> tuple[Any, list[str], VariableReferences]:
    report, uses = Report(), VariableReferences()
    (node,) = read_nodes(Source("compose.yaml", Path(), text), report)
    made = interpolate(node, VARIABLES, report, uses)
    return to_plain(made), lines(report.sorted()), uses


def test_values_and_not_keys() -> None:
    """Values are substituted wherever they stand; keys never."""
    seen, messages, _ = substituted("$A: $A\nb: [$A, {c: '${A}'}]\nd: |\n  $A\n")

    assert seen == {"$A": "one", "b": ["one", {"c": "one"}], "d": "one\n"}
    assert messages == []


def test_a_value_is_never_read_again() -> None:
    """A value that holds a dollar sign stays as it is."""
    assert substituted("a: $DOLLAR")[0] == {"a": "$A"}


def test_a_value_never_becomes_structure() -> None:
    """A value that looks like YAML is a text."""
    assert substituted("a: $YAML\nb: ${EMPTY}")[0] == {"a": "{x: 1}", "b": ""}


def test_an_unset_variable_is_reported_once() -> None:
    """A variable that is not set is empty, and reported once in a run, where it comes first; an empty one is set."""
    seen, messages, _ = substituted("a: $X\nb: $EMPTY\nc: $X\nd: $Y")

    assert seen == {"a": "", "b": "", "c": "", "d": ""}
    assert messages == [
        "compose.yaml:1:4: warning: the variable 'X' is not set; an empty string is used [unset-variable]",
        "compose.yaml:4:4: warning: the variable 'Y' is not set; an empty string is used [unset-variable]",
    ]


@pytest.mark.parametrize(("name", "option"), [("PLATFORM_DOMAIN", "--domain"), ("PLATFORM_NAMESPACE", "--namespace")])
def test_a_built_in_variable_without_a_value(name: str, option: str) -> None:
    """An option gives it one."""
    report = Report()
    (node,) = read_nodes(Source("compose.yaml", Path(), f"a: https://web.${{{name}}}/"), report)
    interpolate(node, VARIABLES, report, VariableReferences())

    (found,) = report.sorted()
    assert found.hint == f"give {option} or set {name}"


def test_a_dollar_sign_that_is_meant() -> None:
    """The end of a password's hash is taken for a variable: the hint says how to write a dollar sign."""
    report = Report()
    (node,) = read_nodes(Source("compose.yaml", Path(), "a: $argon2$$abc"), report)
    interpolate(node, VARIABLES, report, VariableReferences())

    (found,) = report.sorted()
    assert found.hint == "set it, or write ${argon2:-default}, or $$ for a dollar sign"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("${X:?}", "the variable 'X' must be set", id="no-reason"),
        pytest.param("${X?say why}", "the variable 'X' must be set: say why", id="reason"),
        pytest.param("${EMPTY:?fill it}", "the variable 'EMPTY' must be set: fill it", id="empty"),
    ],
)
def test_a_required_variable(text: str, expected: str) -> None:
    """A variable that must be set and is not is an error with its reason."""
    assert substituted(f"a: {text}")[1] == [f"compose.yaml:1:4: error: {expected} [required-variable]"]


def test_a_required_variable_in_two_places() -> None:
    """Each place that needs a variable is reported."""
    assert [message.partition(": ")[0] for message in substituted("a: ${X:?}\nb: ${X:?}")[1]] == [
        "compose.yaml:1:4",
        "compose.yaml:2:4",
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("a: x${", "1:5", id="plain"),
        pytest.param("a: 'x${'", "1:6", id="quoted"),
        pytest.param("a: |\n  x\n  ${\n", "1:4", id="block"),
    ],
)
def test_a_mistake(text: str, place: str) -> None:
    """A '${' that can't be understood is reported at its place, and the value stays."""
    _, (message,), _ = substituted(text)

    assert message.startswith(f"compose.yaml:{place}: error: ")
    assert message.endswith(
        "can't be substituted: '${' must be followed by a variable's name and '}' [invalid-interpolation]"
    )


def test_a_shared_value_is_reported_once() -> None:
    """An anchor with a mistake is one mistake, however often it is used."""
    assert len(substituted("a: &x ${\nb: *x\nc: *x")[1]) == 1


def test_uses() -> None:
    """Every variable that counts is noted: its default as written, and whether it must be set."""
    uses = substituted("a: ${A:-${NEVER}}\nb: ${X:-d}\nc: ${EMPTY?}\nd: ${X}")[2]

    assert [(use.name, use.default, use.required) for use in uses] == [
        ("A", "${NEVER}", False),
        ("X", "d", False),
        ("EMPTY", None, True),
    ]


def test_a_message_never_holds_a_value() -> None:
    """A mistake beside a secret does not repeat it."""
    _, (message,), _ = substituted("a: $SECRET ${")

    assert "hunter2" not in message


def test_a_mistake_behind_an_escape() -> None:
    """In a value whose text is not what is in the file the place is that of the whole value."""
    _, (message,), _ = substituted('a: "xxxxx\\n${"')

    assert message.startswith("compose.yaml:1:4: error: ")
