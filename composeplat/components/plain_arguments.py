"""The arguments of a component: which are plain values, as they decide the plan, and which may be outputs.

Owns the check of their types, by those of their defaults: an output would count as true or as a text without a value,
and so would a text such as ``"false"``, which a configuration returns for what is no text there. A setting that is an
output is checked when its value is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pulumi

from composeplat.components.late_texts import LateTexts
from composeplat.compose.options import SETTINGS, Setting, Value
from composeplat.diagnostics import quoted


def read_options(given: Mapping[str, Any], late: LateTexts) -> dict[str, Any]:
    """Return the settings that a program gives, by the names of their options."""
    rows = [row for row in SETTINGS.values() if row.argument in given]
    return {
        row.name: late.add(row.argument, given[row.argument], check=partial(check_late, row))
        if row.may_be_output
        else _setting(row, given)
        for row in rows
    }


def _setting(row: Setting, given: Mapping[str, Any]) -> Any:
    value = plain(row.argument, given[row.argument], row.default)
    # No comparison holds for "not a number".
    if row.minimum is not None and not value >= row.minimum:
        raise pulumi.RunError(f"'{row.argument}' must be at least {row.minimum:g}, not {value:g}")
    return value


def check_late(row: Setting, text: str) -> str:
    """Check the value of an output as a plain one is checked; without a value it is too late for the default."""
    value = row.normalize(text)
    if not value or not row.is_valid(value):
        # The message leaves out the value, which may be confidential.
        problem = "is empty, and " if not value else ""
        raise pulumi.RunError(f"the value of {row.argument} {problem}must be {row.requirement}")
    return value


def plain(name: str, value: Any, default: Value) -> Any:
    """Return a plain value; None, as a configuration returns for a key that it lacks, is the default."""
    _refuse_output(name, value)
    match default:
        case _ if value is None:
            return default
        case bool():
            _need(name, value, isinstance(value, bool), "True or False")
        case str():
            _need(name, value, isinstance(value, str), "a text")
        case tuple():
            return plain_list(name, value, "a text", str)
        case _:
            _need(name, value, isinstance(value, int | float) and not isinstance(value, bool), "a number")
    return value


def plain_list(name: str, value: Any, requirement: str, *kinds: type) -> tuple[Any, ...]:
    _refuse_output(name, value)
    if value is None:
        return ()
    _need(name, value, isinstance(value, Sequence) and not isinstance(value, str | bytes), "a list")
    for index, item in enumerate(value):
        _refuse_output(f"{name}[{index}]", item)
        _need(f"{name}[{index}]", item, isinstance(item, kinds), requirement)
    return tuple(value)


def plain_paths(name: str, value: Any) -> tuple[str, ...]:
    return tuple(str(path) for path in plain_list(name, value, "a path", str, Path) if path)


def plain_files(value: Any) -> tuple[str, ...]:
    """Return the paths of a definition, of which there may be one without a list."""
    listed = [value] if isinstance(value, str | Path) else value
    _refuse_output("file", listed)
    _need("file", value, listed is None or isinstance(listed, Sequence), "a path or a list of paths")
    paths = plain_paths("file", listed)
    if any("\n" in path for path in paths):
        # The message leaves out the text, which may be confidential.
        raise pulumi.RunError("'file' must be the path of a Compose file, not its text\n  hint: write it to a file")
    return paths


def plain_mapping(name: str, value: Any, *, may_have_outputs: bool = False) -> Mapping[str, Any]:
    """Return a mapping with texts as keys."""
    if may_have_outputs and isinstance(value, pulumi.Output):
        raise pulumi.RunError(f"'{name}' must be a dictionary, not an output; its values may be outputs")
    _refuse_output(name, value)
    _need(name, value, value is None or isinstance(value, Mapping), "a dictionary")
    found: Mapping[str, Any] = value or {}
    for key in found:
        if not isinstance(key, str):
            raise pulumi.RunError(f"the keys of '{name}' must be texts, not {quoted(repr(key))}")
    return found


def plain_texts(name: str, value: Any) -> dict[str, str]:
    """Return a mapping with texts as keys and values."""
    found = plain_mapping(name, value)
    for key, text in found.items():
        _refuse_output(f"{name}[{key}]", text)
        _need(f"{name}[{key}]", text, isinstance(text, str), "a text")
    return dict(found)


def check_functions(name: str, value: Any) -> None:
    """Refuse what is neither a function nor a list of functions."""
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    for item in listed:
        _need(name, item, callable(item), "a function or a list of functions")


def _refuse_output(name: str, value: Any) -> None:
    if isinstance(value, pulumi.Output):
        raise pulumi.RunError(f"'{name}' must be a plain value, not an output, as it decides the plan")


def _need(name: str, value: Any, is_right: object, requirement: str) -> None:
    if not is_right:
        found = quoted(value) if isinstance(value, str) else f"of type {type(value).__name__}"
        raise pulumi.RunError(f"'{name}' must be {requirement}, not {found}")
