"""The program that watches folders: its events, and both ways in which it can end."""

from __future__ import annotations

import os
import queue
from pathlib import Path

from composeplat.compose.watch_model import WatchAction, WatchRule
from composeplat.dev.folder_watch import (
    FolderChange,
    FolderProblem,
    Found,
    make_configuration,
    read_event,
    watching_folders,
)
from composeplat.dev.watch_rules import WatchedFolder

RULE = WatchRule(action=WatchAction.SYNC, path="/src", target="/app", initial_sync=True)
FOLDER = WatchedFolder(service="web", rule=RULE, local="/src", within="/", ignores=("a",), includes=("b",))


def program(folder: Path, text: str) -> Path:
    path = folder / "link"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_configuration() -> None:
    """The program gets patterns and places, and lists all files only for a sync at the start."""
    expected = {"local": "/src", "within": "/", "ignores": ["a"], "includes": ["b"], "lists": True}

    assert make_configuration([FOLDER], "/state") == {"state": "/state", "folders": [expected]}


def test_events() -> None:
    """Changes and problems are read, what is solved adds nothing, and a failure is an error."""
    changed = {"event": "changed", "folder": 1, "first": True, "changed": ["a"], "deleted": [], "modes": True}
    problem = {"event": "problem", "folder": 1, "side": "local", "path": "a", "reason": "why"}

    assert read_event(changed) == FolderChange(1, ("a",), (), is_first=True)
    assert read_event({**changed, "modes": False}) == FolderChange(1, ("a",), (), is_first=True, keeps_modes=False)
    assert read_event(problem) == FolderProblem(1, "a", "why")
    assert read_event({"event": "resolved"}) is None
    assert str(read_event({"event": "failed", "reason": "why"})) == "why"


def test_it_ends_with_its_input(tmp_path: Path) -> None:
    """The program ends with the block, and says nothing more."""
    found: queue.Queue[Found] = queue.Queue()
    line = '{"event": "problem", "folder": 0, "path": "", "reason": "why"}'
    with watching_folders(program(tmp_path, f"echo '{line}'; cat >/dev/null"), [FOLDER], os.environ, found.put):
        assert found.get(timeout=60) == FolderProblem(0, "", "why")

    assert found.empty()


def test_it_ends_by_itself(tmp_path: Path) -> None:
    """A program that was killed is an error: nothing would be copied, and nobody would know."""
    found: queue.Queue[Found] = queue.Queue()
    with watching_folders(program(tmp_path, "exit 1"), [FOLDER], os.environ, found.put):
        assert str(found.get(timeout=60)) == "the program that watches files has ended"
