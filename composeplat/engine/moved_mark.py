"""The mark that a state was moved from one backend to another, for the machine that moved it.

Owns the file in the stack's folder of the old backend. Without it, the next deploy with the old backend would begin a
new state beside the moved one.
"""

from __future__ import annotations

import json
from pathlib import Path

from composeplat.engine.backend import writing
from composeplat.system.atomic import write_private


def moved_mark(folder: Path) -> Path:
    return folder / "moved.json"


def mark_moved(folder: Path, to: str) -> None:
    """Note where a state is now; ``to`` is a URL without a login."""
    with writing(folder):
        write_private(moved_mark(folder), json.dumps({"to": to}))


def read_moved(folder: Path) -> str:
    """Return where a state was moved to; empty if it was not."""
    try:
        return str(json.loads(moved_mark(folder).read_text(encoding="utf-8"))["to"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def forget_moved(folder: Path) -> None:
    with writing(folder):
        moved_mark(folder).unlink(missing_ok=True)
