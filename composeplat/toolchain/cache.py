"""The folder that programs are kept in, and how one gets there whole.

Owns the layout below the user's cache folder, the lock between two setups and the memory of how long a build took.

A program is built into a folder beside its place and renamed into it: what is in place is complete, whatever was
killed when.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from composeplat.system.atomic import remove_leftovers, replace_folder, write_file
from composeplat.system.locks import hold_lock
from composeplat.toolchain.tools import Tool


@dataclass(frozen=True, slots=True)
class Cache:
    folder: Path

    def place(self, tool: Tool) -> Path:
        """Where a program of these very pins is kept."""
        return self.folder / "tools" / f"{tool.name}-{tool.version}-{tool.fingerprint}" / tool.name

    def has(self, tool: Tool) -> bool:
        return self.place(tool).is_file()

    def lock(self, name: str, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold a lock for what only one setup may do at a time."""
        return hold_lock(self.folder / "locks" / name, on_wait)

    @contextlib.contextmanager
    def aside(self, place: Path) -> Iterator[Path]:
        """A folder to make a program in, put in place when the block ends well and has put something there.

        Leftovers of killed builds go first.

        To be used under the lock of what is built.
        """
        remove_leftovers(place.parent)
        with replace_folder(place.parent) as staged:
            yield staged

    def duration(self, name: str) -> float | None:
        """How many seconds a step took the last time."""
        seconds = self._durations().get(name)
        return seconds if isinstance(seconds, int | float) else None

    def remember_duration(self, name: str, seconds: float) -> None:
        durations = {**self._durations(), name: round(seconds, 1)}
        write_file(self.folder / "durations.json", json.dumps(durations, sort_keys=True) + "\n")

    def _durations(self) -> dict[str, object]:
        try:
            read = json.loads((self.folder / "durations.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}
