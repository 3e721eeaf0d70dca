"""The events of a session of ``platform up``, as messages on the terminal.

Owns the message of each event of the link, and which of them are shown. Must not know how a session runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from composeplat import progress
from composeplat.dev.link import Event
from composeplat.dev.sync_rules import SyncPath
from composeplat.diagnostics import printable


class SessionReporter:
    """Emits the events of a session."""

    def __init__(self, paths: Sequence[SyncPath] = ()) -> None:
        self._paths = paths
        self._is_disconnected = False

    def emit(self, event: Event) -> None:
        """Emit an event; of several failed tries to connect again people see the first."""
        was_disconnected, self._is_disconnected = self._is_disconnected, event.get("event") == "disconnected"
        message = (
            ""
            if was_disconnected and self._is_disconnected
            else printable(session_message(self._with_local_path(event)))
        )
        progress.emit(progress.SessionEvent(event, message, event.get("event") in _IMPORTANT))

    def _with_local_path(self, event: Event) -> Event:
        """Return an event with the path on this machine: its own is relative to one of several folders."""
        folder = event.get("folder")
        if "path" not in event or not isinstance(folder, int) or not 0 <= folder < len(self._paths):
            return event
        return {**event, "path": os.path.relpath(os.path.join(self._paths[folder].local, event["path"]))}


_IMPORTANT = ("conflict", "sync-stopped", "failed", "problem", "replaced")

_MESSAGES = {
    "reconnected": "connected again, to {pod}",
    "restarted": "connected again, to {pod}; its program was restarted",
    "disconnected": "lost the connection ({reason}); trying again, Ctrl-C ends it",
    "forwarding": "{listen} is forwarded to port {port}",
    "port-taken": "{requested} is in use on this machine; {listen} is used instead",
    "first-sync": "synced: {to_container} to the container, {to_local} from it, {seconds:.1f} s",
    "conflict": "changed on both sides: {path}; the container's is kept as {kept_as}",
    "replaced": "{files} files of the container, which were not from this folder, differed and were replaced by this"
    " machine's; they are kept in {kept_as}",
    "skipped": "a file on one side and a folder on the other, left alone: {path}",
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
        case "problem":
            kind = "problem" if event.get("folder") != -1 else "port-problem"
        case other:
            kind = str(other)
    try:
        return _MESSAGES.get(kind, "").format_map(event)
    except (KeyError, ValueError):
        return ""
