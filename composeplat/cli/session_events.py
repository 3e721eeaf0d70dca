"""The events of a session of ``platform up``, as messages on the terminal.

Owns the message of each event of the link, and which of them are shown. Must not know how a session runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from composeplat import progress
from composeplat.dev.link import Event
from composeplat.dev.sync_rules import SyncPath
from composeplat.diagnostics import printable

_FIRST_WAIT_S = 2.0
_WAIT_S = 3.0
_MAX_WAIT_S = 30.0


class SessionReporter:
    """Emits the events of a session."""

    def __init__(self, paths: Sequence[SyncPath] = ()) -> None:
        self._paths = paths
        self._is_disconnected = False
        self._paces: dict[tuple[object, ...], _Pace] = {}

    def emit(self, event: Event) -> None:
        """Emit an event; of several failed tries to connect again people see the first."""
        was_disconnected, self._is_disconnected = self._is_disconnected, event.get("event") == "disconnected"
        is_hidden = (was_disconnected and self._is_disconnected) or not self._is_due(event)
        message = "" if is_hidden else printable(session_message(self._with_local_path(event)))
        progress.emit(progress.SessionEvent(event, message, event.get("event") in _IMPORTANT))

    def _is_due(self, event: Event) -> bool:
        """Return whether people see an event: of those on the progress of a transfer, they see few."""
        transfer = (event.get("folder"), event.get("path"))
        match event.get("event"):
            case "syncing":
                return self._paces.setdefault(transfer, _Pace(_FIRST_WAIT_S)).is_due()
            case "transferring":
                return self._paces.setdefault(transfer, _Pace(0)).is_due()
            case "transferred" | "synced":
                self._paces.pop(transfer, None)
        return True

    def _with_local_path(self, event: Event) -> Event:
        """Return an event with the path on this machine: its own is relative to one of several folders."""
        folder = event.get("folder")
        if "path" not in event or not isinstance(folder, int) or not 0 <= folder < len(self._paths):
            return event
        return {**event, "path": _shown_path(os.path.join(self._paths[folder].local, event["path"]))}


def _shown_path(path: str) -> str:
    """Return a path from the current folder, which may be deleted during the session."""
    try:
        return os.path.relpath(path)
    except FileNotFoundError:
        return os.path.normpath(path)


class _Pace:
    """When the next message of a transfer is shown: the longer it takes, the fewer."""

    def __init__(self, first_wait: float) -> None:
        self._next = time.monotonic() + first_wait
        self._wait = _WAIT_S

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next, self._wait = now + self._wait, min(2 * self._wait, _MAX_WAIT_S)
        return True


_IMPORTANT = ("conflict", "sync-stopped", "failed", "problem", "replaced")

_MESSAGES = {
    "reconnected": "connected again, to {pod}",
    "restarted": "connected again, to {pod}; its program was restarted",
    "disconnected": "lost the connection ({reason}); trying again, Ctrl-C ends it",
    "forwarding": "{listen} is forwarded to port {port}",
    "port-taken": "{requested} is in use on this machine; {listen} is used instead",
    "first-sync": "synced: {to_container} to the container, {to_local} from it, {seconds:.1f} s",
    "syncing": "syncing: {done} of {files} files, {sent_size} sent",
    "transferring-container": "{path}: {percent} % of {size} sent",
    "transferring-local": "{path}: {percent} % of {size} received",
    "transferred-container": "{path}: {size} sent in {duration}",
    "transferred-local": "{path}: {size} received in {duration}",
    "conflict": "changed on both sides: {path}; the container's is kept as {kept_as}",
    "more-conflict": "changed on both sides: {more} more files; the container's are kept as {kept_as}",
    "replaced": "{files} files of the container, which were not from this folder, differed and were replaced by this"
    " machine's; they are kept in {kept_as}",
    "skipped": "a file on one side and a folder on the other, left alone: {path}",
    "more-skipped": "a file on one side and a folder on the other, left alone: {more} more paths",
    "sync-stopped": "the container has deleted {deletions} of {total} files: nothing was deleted here, and"
    " this folder is not synced any more; start 'platform up' again when it is right",
    "problem": "can't sync {path} ({side}): {reason}",
    "port-problem": "{reason}",
    "failed": "{reason}",
}


def session_message(event: Event) -> str:
    """Return the message of an event of the link; empty for events that people need not see."""
    match event.get("event"):
        case "connected":
            again = "restarted" if event.get("session") == "new" else "reconnected"
            kind = again if event.get("reconnected") else ""
        case "synced":
            kind = "first-sync" if event.get("first") else ""
        case "conflict":
            kind = "conflict" if event.get("kept_as") else "skipped"
            kind = f"more-{kind}" if event.get("more") else kind
        case "problem":
            kind = "problem" if event.get("folder") != -1 else "port-problem"
        case "transferring" | "transferred" as part:
            kind = f"{part}-{event.get('to')}"
        case other:
            kind = str(other)
    try:
        return _MESSAGES.get(kind, "").format_map({**event, **_sizes(event)})
    except (KeyError, ValueError):
        return ""


_FORMS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "bytes": ("size", progress.format_bytes),
    "sent": ("sent_size", progress.format_bytes),
    "seconds": ("duration", progress.format_seconds),
}


def _sizes(event: Event) -> dict[str, object]:
    """Return the sizes and times of a transfer as texts."""
    texts: dict[str, object] = {
        name: form(event[key]) for key, (name, form) in _FORMS.items() if isinstance(event.get(key), int | float)
    }
    if event.get("bytes") and "done" in event:
        texts["percent"] = 100 * event["done"] // event["bytes"]
    return texts
