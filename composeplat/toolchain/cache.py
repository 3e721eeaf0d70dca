"""The cache of programs: where each is kept, the lock between two setups, and how long a build took.

Owns the layout below the user's cache folder. Must not know how a program is made.
A program is built in a folder beside its own and renamed: a program in the cache is complete, also after a kill.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from composeplat.system.atomic import force_to_disk, remove_leftovers, replace_folder, write_file
from composeplat.system.locks import hold_lock
from composeplat.system.records import record
from composeplat.toolchain.tools import Tool


@record
class Cache:
    folder: Path

    def program_path(self, tool: Tool) -> Path:
        """The path of a program that was built from exactly these pins."""
        return self.folder / "tools" / f"{tool.name}-{tool.version}-{tool.fingerprint}" / tool.name

    def has(self, tool: Tool) -> bool:
        return self.program_path(tool).is_file()

    def lock(self, name: str, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold a lock for what only one setup may do at a time."""
        return hold_lock(self.folder / "locks" / name, on_wait)

    def parts(self, release: str) -> Path:
        """The folder of what has come of a release, until its programs are in place."""
        return self.folder / "downloads" / release

    @contextlib.contextmanager
    def staging(self, program: Path) -> Iterator[Path]:
        """Yield a folder to make a program in, which takes its place when the block ends without an error.

        The caller holds the program's lock; leftovers of killed builds are removed.
        """
        remove_leftovers(program.parent)
        with replace_folder(program.parent) as staged:
            yield staged
            # Names come to the disk before contents: after a lost power, an empty program would count as whole.
            force_to_disk(staged / program.name)

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
