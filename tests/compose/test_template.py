"""The substitution grammar beyond Compose's own vectors: places of mistakes, what is noted, and what is never done."""

from __future__ import annotations

import pytest

from composeplat.compose.template import MAX_NESTING, BadTemplate, Outcome, Variable, evaluate, parse_template

VALUES = {"A": "one", "EMPTY": "", "DOLLAR": "$A ${A}", "NAME": "A"}


def substituted(text: str) -> str:
    return evaluate(parse_template(text), VALUES.get, Outcome())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$A", "one", id="bare"),
        pytest.param("${A}", "one", id="braced"),
        pytest.param("$A$A", "oneone", id="twice"),
        pytest.param("$$A", "$A", id="escaped"),
        pytest.param("$$$A", "$one", id="escaped-then-bare"),
        pytest.param("$$$$", "$$", id="two-dollars"),
        pytest.param("$", "$", id="dollar-at-the-end"),
        pytest.param("$5", "$5", id="dollar-and-digit"),
        pytest.param("$(A)", "$(A)", id="parenthesis"),
        pytest.param("$-A", "$-A", id="dollar-and-dash"),
        pytest.param("${X:-d}", "d", id="default"),
        pytest.param("${EMPTY:-d}", "d", id="default-for-empty"),
        pytest.param("${EMPTY-d}", "", id="no-default-for-empty"),
        pytest.param("${X-d}", "d", id="default-for-unset"),
        pytest.param("${A:+d}", "d", id="alternative"),
        pytest.param("${EMPTY:+d}", "", id="no-alternative-for-empty"),
        pytest.param("${EMPTY+d}", "d", id="alternative-for-empty"),
        pytest.param("${X+d}", "", id="no-alternative-for-unset"),
        pytest.param("${X:-${Y:-$A}}", "one", id="nested"),
        pytest.param('${X:-{"a": {"b": 1}}}', '{"a": {"b": 1}}', id="braces-in-a-default"),
        pytest.param("${X:-$$A}", "$A", id="escaped-in-a-default"),
        pytest.param("${X:-}", "", id="empty-default"),
        pytest.param("${X:-a:-b}", "a:-b", id="operator-in-a-default"),
        pytest.param("{}", "{}", id="no-dollar"),
        pytest.param("é$A", "éone", id="foreign-letters"),
        pytest.param("$Aé", "oneé", id="a-name-is-ascii"),
    ],
)
def test_substitution(text: str, expected: str) -> None:
    """Every form gives what Compose gives."""
    assert expected == substituted(text)


def test_a_value_is_never_read_again() -> None:
    """A value that holds a dollar sign stays as it is."""
    assert substituted("${DOLLAR}") == "$A ${A}"


def test_a_name_is_never_made_of_a_value() -> None:
    """A variable can't name another one."""
    assert substituted("$$$NAME") == "$A"


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        pytest.param("a ${", 2, "'${' must be followed by a variable's name and '}'", id="end"),
        pytest.param("${}", 0, "'${' must be followed by a variable's name and '}'", id="no-name"),
        pytest.param("${1A}", 0, "'${' must be followed by a variable's name and '}'", id="digit"),
        pytest.param("${ A}", 0, "'${' must be followed by a variable's name and '}'", id="space"),
        pytest.param("x${A!}", 1, "the name in '${…}' must be followed by '}' or one of :- - :+ + :? ?", id="operator"),
        pytest.param("${A:-b", 0, "'${' is never closed by '}'", id="open"),
        pytest.param("${A:-${B}", 0, "'${' is never closed by '}'", id="open-around-a-closed-one"),
        pytest.param("${A:-{}", 0, "'${' is never closed by '}'", id="brace-of-the-default"),
    ],
)
def test_mistakes(text: str, offset: int, message: str) -> None:
    """A mistake names its place in the text."""
    with pytest.raises(BadTemplate) as caught:
        parse_template(text)

    assert (offset, message) == (caught.value.offset, str(caught.value))


def test_nesting_ends() -> None:
    """Defaults in defaults end at a depth no definition needs."""
    deep = "${A:-" * (MAX_NESTING + 1) + "}" * (MAX_NESTING + 1)

    with pytest.raises(BadTemplate, match="is nested deeper than 32 levels"):
        parse_template(deep)


def test_deepest_nesting() -> None:
    """Up to that depth they are read."""
    assert substituted("${X:-" * MAX_NESTING + "d" + "}" * MAX_NESTING) == "d"


def test_a_default_that_is_not_used_is_not_looked_into() -> None:
    """Variables in a default count only where the default does."""
    outcome = Outcome()

    evaluate(parse_template("${A:-$MISSING}"), VALUES.get, outcome)

    assert outcome.unset == []
    assert [(v.name, v.operator, v.word_text) for v in outcome.used] == [("A", ":-", "$MISSING")]


def test_unset_and_required_variables_are_noted() -> None:
    """What is missing is reported by its kind; an empty variable is set."""
    outcome = Outcome()

    text = evaluate(parse_template("$X ${Y?} ${EMPTY:?say $A} ${EMPTY} ${EMPTY?}"), VALUES.get, outcome)

    assert text == "    "
    assert outcome.unset == ["X"]
    assert [(v.name, v.word_text) for v in outcome.required] == [("Y", ""), ("EMPTY", "say $A")]


def test_parts() -> None:
    """A template is texts and variables in turn."""
    assert ("a$b ", Variable("A"), " c") == parse_template("a$$b $A c")
