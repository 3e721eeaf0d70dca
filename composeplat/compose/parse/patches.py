"""Parse ``x-kubernetes``: patches of the Kubernetes objects of a service, volume or endpoint.

Owns that each part of a patch has its place, so that a refusal of the API server can name it.
"""

from __future__ import annotations

from typing import Any

from composeplat.compose.extension_model import DIRECTIVE, DIRECTIVES, Patch
from composeplat.compose.nodes import Mapping, Sequence, to_plain
from composeplat.compose.parse.fields import Field, Section


def parse_patches(owner: Section, pattern: str) -> tuple[Patch, ...]:
    """Read the patches of a section; ``pattern`` is that of its key ``x-kubernetes``."""
    section = owner.section("x-kubernetes", pattern)
    found = section.get("patch") if section else None
    if section is not None and found is None:
        section.whole.report("missing-key", "must have 'patch'", "write the patch by kind: patch: {Deployment: {…}}")
    patches: list[Patch] = []
    for title, place in found.members("a mapping from kinds to patches") if found else ():
        kind, _, name = title.partition("/")
        value = _read(place)
        if isinstance(value, dict):
            patches.append(Patch(kind=kind, name=name, value=value, origin=place.path))
        else:
            place.report_type("a mapping")
    return tuple(patches)


def _read(place: Field) -> Any:
    """Return a value as plain data; a key without a value is None, which deletes."""
    if isinstance(place.node, Mapping):
        values: dict[str, Any] = {}
        for key, inner in place.members():
            values[key] = _read(inner)
            if key.startswith("$"):
                _check_directive(key, inner)
        return values
    if isinstance(place.node, Sequence):
        return [_read(item) for item in place.items()]
    return to_plain(place.node)


def _check_directive(key: str, place: Field) -> None:
    if key == DIRECTIVE:
        place.choice(*DIRECTIVES)
    else:
        place.report("invalid-value", f"is not a directive of patches: only '{DIRECTIVE}' is", "leave it out")
