"""The states of the cluster's parts, as the supervisor writes them into a file.

Owns which parts a cluster must have to be ready. Must not know whether the supervisor still runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composeplat.system.records import record


@record(kw_only=True)
class Status:
    running: bool
    pid: int | None = None
    parts: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def broken(self) -> list[str]:
        """The parts that are not ready and without which the cluster is not either."""
        return [name for name, part in self._required.items() if not part["ready"]]

    @property
    def most_starts(self) -> int:
        """How often the part was started that was started most often."""
        return max((part["starts"] for part in self._required.values()), default=0)

    @property
    def _required(self) -> dict[str, Mapping[str, Any]]:
        return {name: part for name, part in (self.parts or {}).items() if part.get("required", True)}


def read_states(path: Path) -> dict[str, dict[str, Any]]:
    """Return the state of each part by its name; none while the supervisor has not written them."""
    try:
        states = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return states if isinstance(states, dict) else {}
