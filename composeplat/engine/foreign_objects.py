"""Objects that the state has, and that are someone else's now: deleted behind the state, and created by another tool.

Owns how they are found, and that the state forgets them: Pulumi would delete them by their names. Of this,
:func:`forget_foreign` alone is not pure: it has :mod:`~composeplat.engine.workspace` write the state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from composeplat.engine.preflight import Key, LiveState, belongs_to, objects_of
from composeplat.engine.stack import Stack
from composeplat.engine.state_references import without_resources


def find_foreign(state: Mapping[str, Any], live_state: LiveState, environment: str) -> dict[str, Key]:
    """Return the objects by URN. One with the recorded uid is the same, whatever its labels are now."""
    found: dict[str, Key] = {}
    for key, resource in objects_of(state):
        head = live_state.object_metadata.get(key)
        recorded = ((resource.get("outputs") or {}).get("metadata") or {}).get("uid")
        if head is not None and not belongs_to(head, environment) and head["metadata"].get("uid") != recorded:
            found[str(resource["urn"])] = key
    return found


def forget_foreign(stack: Stack, live_state: LiveState) -> None:
    """Remove the objects from the state before a run that would delete them."""
    found = find_foreign(stack.state, live_state, stack.environment_name)
    if found:
        stack.workspace.change_state(lambda state: without_resources(state, found))
    for note in foreign_notes(found.values()):
        stack.note(note)


def foreign_notes(keys: Collection[Key]) -> list[str]:
    return [
        f"{kind}/{name} stays: someone else has created it since this environment's own was deleted"
        for kind, name in keys
    ]
