"""The documents that commands print for programs, checked against the published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "schemas"
NAMES = FOLDER / "names.txt"


def checked(document: Any) -> Any:
    """Return a document after checking it against its schema; a field that the schema lacks is an error."""
    check(document["schema"].split("/")[1], document)
    return document


def checked_event(line: str) -> Any:
    """Return a line of ``--progress json`` after checking it: an event, or a message."""
    event = json.loads(line)
    check("progress" if "event" in event else "message", event)
    return event


def check(name: str, document: Any) -> None:
    Draft202012Validator(schema(name)).validate(document)


@cache
def schema(name: str) -> dict[str, Any]:
    return _closed(published(name))  # type: ignore[no-any-return]


def published(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())  # type: ignore[no-any-return]


def _closed(part: Any) -> Any:
    """Forbid fields that are not documented: readers must accept new fields, tests must not."""
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _closed(value) for key, value in part.items()}
    return {"additionalProperties": False, **closed} if isinstance(part.get("properties"), dict) else closed


def fields(part: dict[str, Any], path: str) -> Iterator[str]:
    """List the fields of a schema with their types, one a line: ``deploy.changes[].kind: string``."""
    if "oneOf" in part:
        for event in part["oneOf"]:
            yield from _event_fields(event, path)
    elif part.get("type") == "object":
        for name, value in part.get("properties", {}).items():
            yield from fields(value, f"{path}.{name}" + ("" if name in part["required"] else "?"))
        if isinstance(part.get("additionalProperties"), dict):
            yield from fields(part["additionalProperties"], path + "{}")
    elif part.get("type") == "array":
        yield from fields(part["items"], f"{path}[]")
    else:
        yield f"{path}: {_type(part)}"


def _event_fields(event: dict[str, Any], path: str) -> Iterator[str]:
    kind = _type(event["properties"]["event"])
    target = event["properties"].get("to", {}).get("const")
    yield from fields(event, f"{path}({kind} to {target})" if target else f"{path}({kind})")


def _type(part: dict[str, Any]) -> str:
    types = part.get("type", "any")
    kinds = part.get("enum") or ([part["const"]] if "const" in part else types if isinstance(types, list) else [types])
    return " | ".join(kinds)
