"""What commands print for programs, held against the published schemas."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "schemas"


def checked(document: Any) -> Any:
    """A document, once it has been found to be as its schema says, with no field that is not in there."""
    name = document["schema"].split("/")[1]
    Draft202012Validator(schema(name)).validate(document)
    return document


@cache
def schema(name: str) -> dict[str, Any]:
    return _closed(json.loads((FOLDER / f"{name}.json").read_text()))  # type: ignore[no-any-return]


def _closed(part: Any) -> Any:
    """Readers have to live with new fields; here each has to be documented."""
    if isinstance(part, list):
        return [_closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _closed(value) for key, value in part.items()}
    return {**closed, "additionalProperties": False} if isinstance(part.get("properties"), dict) else closed
