"""Run ``platform-link watch``: the program that reports what changes in folders of this machine.

Owns its configuration and its end. The program is in the Go module beside it; it changes no file, and ends with its
standard input, so also if this process is killed.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from composeplat.dev.watch_rules import WatchedFolder
from composeplat.diagnostics import ComposeplatError
from composeplat.system.atomic import write_private
from composeplat.system.records import record
from composeplat.system.threads import start_thread

_END_TIMEOUT_S = 5.0


@record
class FolderChange:
    """The paths of a folder that changed, relative to it: files, links, and new folders without content."""

    number: int
    """The number of the folder."""
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    """Those of folders end in a slash."""
    is_first: bool = False
    """At the start: the folder is watched from now on, and ``changed`` are all its files."""
    keeps_modes: bool = True
    """Whether the file system keeps permissions."""


@record
class FolderProblem:
    number: int
    path: str
    """Empty for the folder itself."""
    reason: str


Found = FolderChange | FolderProblem | Exception


@contextlib.contextmanager
def watching_folders(
    program: Path, folders: Sequence[WatchedFolder], environment: Mapping[str, str], on_found: Callable[[Found], None]
) -> Iterator[None]:
    """Watch folders until the block ends; ``on_found`` is called in another thread."""
    with tempfile.TemporaryDirectory(prefix="composeplat-") as folder:
        config = Path(folder) / "watch.json"
        write_private(config, json.dumps(make_configuration(folders, folder)))
        with subprocess.Popen(
            [str(program), "watch", "--config", str(config)],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for this process, which ends the program.
            process_group=0,
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise ComposeplatError("can't watch files: the program has no streams")
            reader, is_ending = process.stdout, threading.Event()

            def read() -> None:
                _read(reader, on_found)
                if not is_ending.is_set():
                    on_found(ComposeplatError("the program that watches files has ended", "platform bug-report"))

            thread = start_thread("watch", read, on_found)
            try:
                yield
            finally:
                is_ending.set()
                process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_TIMEOUT_S)
                process.kill()
                thread.join(_END_TIMEOUT_S)


def make_configuration(folders: Sequence[WatchedFolder], state: str) -> dict[str, Any]:
    return {
        "state": state,
        "folders": [
            {
                "local": folder.local,
                "within": folder.within,
                "ignores": list(folder.ignores),
                "includes": list(folder.includes),
                "lists": folder.rule.initial_sync and folder.rule.action.has_target,
            }
            for folder in folders
        ],
    }


def _read(stream: IO[bytes], on_found: Callable[[Found], None]) -> None:
    for line in stream:
        found = read_event(json.loads(line))
        if found is not None:
            on_found(found)


def read_event(event: Mapping[str, Any]) -> Found | None:
    """Read an event of the program; None for one that adds nothing."""
    match event["event"]:
        case "changed":
            paths = tuple(event["changed"]), tuple(event["deleted"])
            return FolderChange(event["folder"], *paths, is_first=event["first"], keeps_modes=event["modes"])
        case "problem":
            return FolderProblem(event["folder"], event["path"], event["reason"])
        case "failed":
            return ComposeplatError(event["reason"])
        case _:
            return None
