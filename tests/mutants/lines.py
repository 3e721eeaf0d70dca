"""Which lines of the product run, in this process or in one that a test starts.

Must not import what takes long: every process of a run begins with it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_CALLS = 30
"""So many calls of a function are followed in one test; the lines that none of them reaches are not noted."""
_STEPS = 3000
"""So many lines of one call."""

Lines = dict[str, list[int]]


class Collector:
    """Notes lines, by file below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = f"{root}/composeplat/"
        self._found: dict[str, set[int]] = {}
        self._calls: dict[CodeType, int] = {}

    def start(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def take(self) -> Lines:
        """Give what has been found since the last time."""
        found, self._found, self._calls = self._found, {}, {}
        return {name.removeprefix(f"{self._root}/"): sorted(lines) for name, lines in found.items()}

    def _enter(self, frame: FrameType, _event: str, _value: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._prefix):
            return None
        calls = self._calls.get(code, 0)
        if calls >= _CALLS:
            return None
        self._calls[code] = calls + 1
        lines = self._found.setdefault(code.co_filename, set())
        steps = 0

        def step(frame: FrameType, event: str, _value: Any) -> Any:
            nonlocal steps
            if event == "line":
                lines.add(frame.f_lineno)
                steps += 1
                frame.f_trace_lines = steps < _STEPS
            return step

        return step


def follow_process(root: Path, folder: Path) -> None:
    """Note the lines of this process in the folder when it ends, be it in a hurry."""
    collector = Collector(root)
    leave = os._exit

    def write() -> None:
        sys.settrace(None)
        with contextlib.suppress(OSError):
            (folder / f"{os.getpid()}.new").write_text(json.dumps(collector.take()))
            (folder / f"{os.getpid()}.new").rename(folder / f"{os.getpid()}.json")

    def write_and_leave(status: int) -> None:
        write()
        leave(status)

    atexit.register(write)
    os._exit = write_and_leave  # type: ignore[assignment]
    collector.start()


def taken_from(folder: Path) -> Lines:
    """What processes have noted that have ended since the last time."""
    found: dict[str, set[int]] = {}
    for path in folder.glob("*.json"):
        for name, lines in json.loads(path.read_text()).items():
            found.setdefault(name, set()).update(lines)
        path.unlink()
    return {name: sorted(lines) for name, lines in found.items()}
