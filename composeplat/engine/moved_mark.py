"""The marks of a state that is moved from one backend to another, for the machine that moves it.

Owns a file in the stack's folder of each backend. Without that of the old one, the next deploy with it would begin a
new state beside the moved one. That of the new one marks a state that a move has begun to write, and may write again.
"""

from __future__ import annotations

import json
from pathlib import Path

from composeplat.engine.backend import writing
from composeplat.engine.backend_url import shown_url
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


def mark_begun(folder: Path, source: str) -> None:
    """Note that a move from this URL writes the state; an operation there removes the note. No login is in it."""
    with writing(folder):
        write_private(_begun_mark(folder), json.dumps({"from": shown_url(source)}))


def is_begun(folder: Path, source: str) -> bool:
    """Return whether the state was written by a move from this URL, and used by no operation since."""
    try:
        return bool(json.loads(_begun_mark(folder).read_text(encoding="utf-8"))["from"] == shown_url(source))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def forget_begun(folder: Path) -> None:
    with writing(folder):
        _begun_mark(folder).unlink(missing_ok=True)


def _begun_mark(folder: Path) -> Path:
    return folder / "moving.json"
