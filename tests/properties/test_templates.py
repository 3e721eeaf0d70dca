"""Substitution, env files, and words that Kubernetes must not expand."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given, strategies as st

from composeplat.compose.dotenv import read_env
from composeplat.compose.template import BadTemplate, Outcome, Part, evaluate, parse_template
from composeplat.diagnostics import Report, Source
from composeplat.plan.arguments import escape
from tests.properties.trees import args, texts

templates = st.lists(
    st.sampled_from(
        ("$", "$$", "{", "}", "${", "${A}", "$A", "A", "B", ":-", "-", ":+", "+", ":?", "?", " ", "é", "\n", "(", "1")
    ),
    max_size=12,
).map("".join)
VALUES = {"A": "$B", "B": "", "C": "c"}


def expanded(word: str, variables: dict[str, str]) -> str:
    """Expand as Kubernetes does: ``$(NAME)`` where NAME is known, ``$$`` to ``$``, all else as it stands."""
    made, position = "", 0
    while position < len(word):
        rest = word[position:]
        end = rest.find(")")
        if rest.startswith("$$"):
            made, position = made + "$", position + 2
        elif rest.startswith("$(") and end >= 0:
            name = rest[2:end]
            made, position = made + variables.get(name, f"$({name})"), position + end + 1
        else:
            made, position = made + rest[0], position + 1
    return made


@given(st.one_of(args, st.text(st.sampled_from("$(A)"), max_size=12), texts))
@example("$$(A)")
@example("$$$(A)")
@example("$(A")
def test_args_reach_the_container_unchanged(word: str) -> None:
    """What Kubernetes makes of a word that we write is the word, whatever variables there are."""
    assert word == expanded(escape(word), {"A": "changed", "": "changed", "A)": "changed"})


def test_the_expansion_expands() -> None:
    """The model above does what Kubernetes does: otherwise it would show nothing."""
    assert expanded("$(A) $$(A) $(B) $A $$ $", {"A": "a"}) == "a $(A) $(B) $A $ $"


@given(st.one_of(templates, texts))
def test_a_template_or_what_is_wrong(text: str) -> None:
    """Any text is parts, or an error with a place in it; and parts always come to a text."""
    parts: tuple[Part, ...] = ()
    offset = 0
    try:
        parts = parse_template(text)
    except BadTemplate as error:
        offset = error.offset

    assert 0 <= offset <= len(text)
    assert isinstance(evaluate(parts, VALUES.get, Outcome()), str)


@given(texts.filter(lambda text: "$" not in text))
def test_a_text_without_a_dollar_stays(text: str) -> None:
    """Without a dollar sign nothing changes."""
    assert text == evaluate(parse_template(text), VALUES.get, Outcome())


@given(st.one_of(templates, args, texts))
def test_doubled_dollars_come_back(text: str) -> None:
    """A text whose dollar signs are doubled comes to the text, and needs no variable."""
    outcome = Outcome()

    assert text == evaluate(parse_template(text.replace("$", "$$")), VALUES.get, outcome)
    assert outcome.used == []


@given(texts)
def test_values_are_not_read_again(value: str) -> None:
    """What a variable holds is there as it is, whatever it looks like."""
    for template in ("$A", "${A}", "${A-x}", "${B:-$A}", "${B:-${A}}", "${C+${A}}"):
        assert value == evaluate(parse_template(template), {"A": value, "C": "c"}.get, Outcome())


@given(st.sampled_from([":-", "-", ":+", "+", ":?", "?"]), st.sampled_from((None, "", "set")))
def test_operators(operator: str, value: str | None) -> None:
    """The colon makes empty count as unset; each operator does what its sign says."""
    outcome = Outcome()
    values = {} if value is None else {"A": value}
    made = evaluate(parse_template(f"${{A{operator}word}}"), values.get, outcome)

    present = bool(value) if operator.startswith(":") else value is not None
    expected = {"-": value if present else "word", "+": "word" if present else "", "?": value if present else ""}
    assert expected[operator[-1]] == made
    assert bool(outcome.required) == (operator.endswith("?") and not present)


# env files ------------------------------------------------------------------------------------------------------------


def read(text: str, **variables: str) -> tuple[dict[str, str], Report]:
    report = Report()
    return read_env(Source(".env", Path(), text), variables.get, report), report


@given(st.one_of(texts, st.text(st.sampled_from("AB=:'\"#$ \t\n\r\\{}é.0"), max_size=40)), st.booleans())
def test_any_env_file_is_read(text: str, raw: bool) -> None:  # noqa: FBT001 -- hypothesis gives it
    """Any text gives variables and a report, whose places are in it."""
    report = Report()
    values = read_env(Source(".env", Path(), text), VALUES.get, report, raw=raw)

    assert all(isinstance(value, str) for value in values.values())
    for diagnostic in report.sorted():
        assert 1 <= diagnostic.span.line <= len(text.splitlines()) + 1


@given(texts.filter(lambda text: not set("\r\\") & set(text)))
def test_single_quotes_hold_any_value(value: str) -> None:
    """A value in single quotes, with its quotes escaped, is read as it was; backslashes stay as they are written."""
    quoted = value.replace("'", "\\'")

    values, report = read(f"A='{quoted}'\nB=b\n")

    assert not report.errors
    assert values == {"A": value, "B": "b"}


@given(texts.filter(lambda text: "\r" not in text))
def test_double_quotes_hold_any_value(value: str) -> None:
    """A value in double quotes, with what means something escaped, is read as it was."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n")

    values, report = read(f'A="{quoted}"\nB=b\n')

    assert not report.errors
    assert values == {"A": value, "B": "b"}


@given(
    st.dictionaries(st.from_regex(r"\A[A-Z_][A-Z0-9_]{0,8}\Z"), st.from_regex(r"\A[a-z0-9/.:=@-]{0,12}\Z"), max_size=6)
)
def test_bare_values(values: dict[str, str]) -> None:
    """Plain values need no quotes, whatever the ends of lines."""
    for end in ("\n", "\r\n", "\r"):
        read_back, report = read("".join(f"{name}={value}{end}" for name, value in values.items()))
        assert not report.errors
        assert values == read_back
