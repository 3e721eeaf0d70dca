"""Write a plan as text: YAML documents, or one JSON list.

Owns the format of objects as text.
Must not decide their order or content: the plan does.

The writer is our own because manifests are plain trees of a few types, and the YAML library takes ten times as long.
A string is written without quotes only if every parser of YAML 1.1 and 1.2 reads it as that string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from composeplat.plan.desired import DesiredObject, Plan
from composeplat.render.json_text import printable_json

FILE_MARK = "# Rendered by composeplat; changes are lost when it is rendered again."

_UNQUOTED = re.compile(r"(?:[A-Za-z/_]|[.]/)(?:[A-Za-z0-9_./@+=-]|:(?=[^\s])|[ ](?=[A-Za-z0-9_./@+=-]))*\Z", re.ASCII)
#: Parsers reject a longer key, unless a '?' is before it.
_MAX_SIMPLE_KEY_LENGTH = 1000
_QUANTITY = re.compile(r"[1-9][0-9]*(?:m|s|h|ms|[KMGTP]i)\Z", re.ASCII)
_RESERVED = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}
#: A list of the unsafe characters: the complement of the safe ones takes 5 ms to compile.
_BLOCK_UNSAFE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def render_yaml(plan: Plan) -> str:
    """Write every object as a YAML document."""
    return render_documents(plan.objects)


def render_documents(objects: Iterable[DesiredObject]) -> str:
    return "".join(f"---\n{to_yaml(desired.manifest)}" for desired in objects)


def render_json(plan: Plan) -> str:
    items = [desired.manifest for desired in plan.objects]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    return printable_json(json.dumps(listed, indent=2, default=str, ensure_ascii=False)) + "\n"


def render_files(plan: Plan) -> dict[str, str]:
    """Write the objects by group: file name -> text."""
    return {f"{name}.yaml": render_documents(objects) for name, objects in plan.groups.items()}


def to_yaml(value: Any) -> str:
    lines: list[str] = []
    if isinstance(value, dict) and value:
        _mapping(value, "", lines)
    elif isinstance(value, list) and value:
        _list(value, "", lines)
    else:
        lines.append(_scalar(value, ""))
    return "\n".join(lines) + "\n"


def _mapping(value: dict[str, Any], indent: str, lines: list[str], first: str = "") -> None:
    """Write a mapping; ``first`` is the prefix of its first key if it is an item of a list."""
    lead = first or indent
    for key, item in value.items():
        name = _key(key)
        is_long = len(name) > _MAX_SIMPLE_KEY_LENGTH
        if is_long:
            lines.append(f"{lead}? {name}")
            lead, name = indent, ""
        if isinstance(item, dict) and item:
            lines.append(f"{lead}{name}:")
            _mapping(item, f"{indent}  ", lines)
        elif isinstance(item, list) and item:
            lines.append(f"{lead}{name}:")
            _list(item, f"{indent}  " if is_long else indent, lines)
        else:
            lines.append(f"{lead}{name}: {_scalar(item, indent + '  ')}")
        lead = indent


def _list(value: list[Any], indent: str, lines: list[str], first: str = "") -> None:
    lead = first or indent
    for item in value:
        if isinstance(item, dict) and item:
            _mapping(item, f"{indent}  ", lines, first=f"{lead}- ")
        elif isinstance(item, list) and item:
            _list(item, f"{indent}  ", lines, first=f"{lead}- ")
        else:
            lines.append(f"{lead}- {_scalar(item, indent + '  ')}")
        lead = indent


def _scalar(value: Any, indent: str) -> str:
    match value:
        case str():
            return _text(value, indent)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int() | float():
            return repr(value)
        case dict():
            return "{}"
        case list():
            return "[]"
        case _:
            return _text(str(value), indent)


def _text(text: str, indent: str) -> str:
    if _UNQUOTED.match(text):
        if text.lower() not in _RESERVED:
            return text
    elif _QUANTITY.match(text):
        return text
    elif "\n" in text and indent and _fits_block(text):
        return _block(text, indent)
    return _quoted(text)


@lru_cache(maxsize=4096)
def _key(text: str) -> str:
    """Write a key; it is cached, since all objects have the same few keys."""
    return _text(text, "")


def _quoted(text: str) -> str:
    return printable_json(json.dumps(text, ensure_ascii=False))


def _fits_block(text: str) -> bool:
    """Check that a text can be a block: its first line is not indented, and at most one newline is at its end."""
    return text[0] not in " \t\n" and not text.endswith("\n\n") and not _BLOCK_UNSAFE.search(text)


def _block(text: str, indent: str) -> str:
    head, body = ("|", text[:-1]) if text.endswith("\n") else ("|-", text)
    return f"{head}\n" + "\n".join(f"{indent}{line}" if line else "" for line in body.split("\n"))
