"""Substitute variables in a definition's values.

Owns the walk over the nodes and the messages about variables.
Must not know Compose's keys: every value is substituted in the same way, and no key, after YAML is parsed and before
any other stage reads the text.
"""

from __future__ import annotations

from composeplat.compose.nodes import Node, Scalar, rewrite
from composeplat.compose.template import MAX_TEXT, BadTemplate, Outcome, Variable, evaluate, parse_template
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import Report, Span, quoted

MAX_TEXT_IN_ALL = 4 * MAX_TEXT
#: The options that give the built-in variables a value.
_OPTIONS = {"PLATFORM_DOMAIN": "--domain", "PLATFORM_NAMESPACE": "--namespace"}


def interpolate(node: Node, variables: Variables, report: Report, references: VariableReferences) -> Node:
    """Return the tree with every value substituted."""

    def substituted(scalar: Scalar) -> Scalar:
        return interpolate_scalar(scalar, variables, report, references)

    return rewrite(node, substituted, {})


def interpolate_scalar(scalar: Scalar, variables: Variables, report: Report, references: VariableReferences) -> Scalar:
    text = scalar.text
    if "$" not in text:
        return scalar
    try:
        parts = parse_template(text)
    except BadTemplate as error:
        span = _inside(scalar, error.offset)
        hint = "write ${NAME} or ${NAME:-default}, or $$ for a dollar sign"
        report.add("invalid-interpolation", span, (), f"{quoted(text)} can't be substituted: {error}", hint)
        return scalar
    if references.length > MAX_TEXT_IN_ALL:
        return scalar
    outcome = Outcome()
    value = evaluate(parts, variables.lookup, outcome)
    references.length += outcome.length
    if outcome.is_too_long or references.length > MAX_TEXT_IN_ALL:
        limit, place = (MAX_TEXT, "this text") if outcome.is_too_long else (MAX_TEXT_IN_ALL, "the definition")
        message = f"variables add more than {limit // 1024 // 1024} MiB to {place}"
        report.add("too-large", scalar.span, (), message, "mount large values as files")
        return scalar
    for variable in outcome.used:
        _add_reference(variable, variables, references, scalar.span)
    for name in dict.fromkeys(outcome.unset):
        _report_unset(name, scalar.span, variables, report)
    for variable in outcome.required:
        reason = f": {variable.word_text}" if variable.word_text else ""
        hint = (
            variables.hint_for(variable.name)
            or f"set {variable.name} in the shell or in the file .env beside the definition"
        )
        report.add("required-variable", scalar.span, (), f"the variable '{variable.name}' must be set{reason}", hint)
    if value == text:
        return scalar
    return Scalar(scalar.span, value, scalar.written, scalar.plain, scalar.tag, is_substituted=True)


def _add_reference(variable: Variable, variables: Variables, references: VariableReferences, span: Span) -> None:
    default = variable.word_text if variable.operator in (":-", "-") else None
    required = variable.operator in (":?", "?")
    references.add(variable.name, variables, default=default, required=required, span=span)


def _report_unset(name: str, span: Span, variables: Variables, report: Report) -> None:
    message = f"the variable '{name}' is not set; an empty string is used"
    built_in = f"give {_OPTIONS[name]} or set {name}" if name in _OPTIONS else ""
    hint = built_in or variables.hint_for(name) or f"set it, or write ${{{name}:-default}}, or $$ for a dollar sign"
    report.add("unset-variable", span, (), message, hint)


def _inside(scalar: Scalar, offset: int) -> Span:
    """Return the place of an offset within a plain or quoted scalar on one line."""
    span = scalar.span
    if "\n" in scalar.text or span.length < len(scalar.text):
        return span
    quote = span.length - len(scalar.text)
    return Span(span.source, span.line, span.column + (1 if quote else 0) + offset, 2)
