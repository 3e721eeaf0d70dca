"""The substitution grammar: ``$V``, ``${V}``, ``:-``, ``-``, ``:+``, ``+``, ``:?``, ``?``, nesting, ``$$``.

Owns the grammar and its evaluation.
Must not know where variables come from, nor YAML: its input is a text and a lookup, its output a text.
Substituted text is not substituted again, so a value with ``$`` stays as it is, and cycles are impossible.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

from composeplat.system.records import mutable, record

MAX_NESTING = 32
MAX_TEXT = 1024 * 1024
"""Of one substituted text; a few variables that contain each other twice would fill any memory."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OPERATORS = (":-", ":+", ":?", "-", "+", "?")


class BadTemplate(ValueError):
    """A ``$…`` that can't be parsed; ``offset`` is its place in the text."""

    def __init__(self, offset: int, expected: str) -> None:
        super().__init__(expected)
        self.offset = offset


@record
class Variable:
    name: str
    operator: str = ""
    word: tuple[Part, ...] = ()
    word_text: str = ""


Part = str | Variable
Lookup = Callable[[str], str | None]


@mutable
class Outcome:
    """The variables that evaluating a template used, and those it missed."""

    unset: list[str] = field(default_factory=list)
    required: list[Variable] = field(default_factory=list)
    used: list[Variable] = field(default_factory=list)
    length: int = 0
    """Of all substituted values."""

    @property
    def is_too_long(self) -> bool:
        return self.length > MAX_TEXT


def parse_template(text: str) -> tuple[Part, ...]:
    parts, _ = _parse(text, 0, depth=0)
    return parts


def variable_names(text: str) -> tuple[str, ...]:
    """Return the variables of a text that have no default, or an empty one; none if the text can't be parsed."""
    try:
        parts = parse_template(text)
    except BadTemplate:
        return ()
    variables = (part for part in parts if isinstance(part, Variable))
    can_be_empty = (v.name for v in variables if not v.operator or (v.operator in (":-", "-") and not v.word))
    return tuple(dict.fromkeys(can_be_empty))


def _parse(text: str, start: int, *, depth: int) -> tuple[tuple[Part, ...], int]:
    """Parse up to the end, or, inside braces, up to the closing brace."""
    if depth > MAX_NESTING:
        raise BadTemplate(start, f"is nested deeper than {MAX_NESTING} levels")
    parts: list[Part] = []
    literal: list[str] = []
    position, braces = start, 0
    while position < len(text):
        char = text[position]
        if char == "$":
            part, position = _parse_dollar(text, position, depth)
            if isinstance(part, Variable):
                parts += ["".join(literal), part] if literal else [part]
                literal = []
            else:
                literal.append(part)
            continue
        if depth and char == "{":
            braces += 1
        elif depth and char == "}":
            if braces == 0:
                break
            braces -= 1
        literal.append(char)
        position += 1
    if literal:
        parts.append("".join(literal))
    return tuple(parts), position


def _parse_dollar(text: str, position: int, depth: int) -> tuple[Part, int]:
    following = text[position + 1 : position + 2]
    if following == "$":
        return "$", position + 2
    if following == "{":
        return _parse_braced(text, position, depth)
    name = _NAME.match(text, position + 1)
    if name:
        return Variable(name[0]), name.end()
    return "$", position + 1


def _parse_braced(text: str, position: int, depth: int) -> tuple[Variable, int]:
    name = _NAME.match(text, position + 2)
    if not name:
        raise BadTemplate(position, "'${' must be followed by a variable's name and '}'")
    after = name.end()
    if text[after : after + 1] == "}":
        return Variable(name[0]), after + 1
    operator = next((op for op in _OPERATORS if text.startswith(op, after)), "")
    if not operator:
        raise BadTemplate(position, "the name in '${…}' must be followed by '}' or one of :- - :+ + :? ?")
    word_start = after + len(operator)
    word, end = _parse(text, word_start, depth=depth + 1)
    if text[end : end + 1] != "}":
        raise BadTemplate(position, "'${' is never closed by '}'")
    return Variable(name[0], operator, word, text[word_start:end]), end + 1


def evaluate(parts: tuple[Part, ...], lookup: Lookup, outcome: Outcome) -> str:
    """Substitute values; evaluate a default only where it is used, and cut a result that is too long."""
    texts: list[str] = []
    for part in parts:
        text = part if isinstance(part, str) else _evaluate_variable(part, lookup, outcome)
        outcome.length += 0 if text is part else len(text)
        if outcome.is_too_long:
            break
        texts.append(text)
    return "".join(texts)


def _evaluate_variable(variable: Variable, lookup: Lookup, outcome: Outcome) -> str:
    outcome.used.append(variable)
    value = lookup(variable.name)
    operator = variable.operator
    is_present = value is not None and not (operator.startswith(":") and value == "")
    if operator.endswith("+"):
        return evaluate(variable.word, lookup, outcome) if is_present else ""
    if is_present:
        return value or ""
    if operator.endswith("-"):
        return evaluate(variable.word, lookup, outcome)
    if operator.endswith("?"):
        outcome.required.append(variable)
    elif value is None:
        outcome.unset.append(variable.name)
    return ""
