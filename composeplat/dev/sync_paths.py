"""Read sync paths from the disk: their kinds, their ignore files, and links on the way to them.

It is apart from :mod:`composeplat.dev.sync_rules`, which decides on the data alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from composeplat.compose.model import HOST, Service
from composeplat.dev.sync_rules import (
    DOCKERIGNORE,
    STIGNORE,
    HostKind,
    SyncPath,
    find_include,
    plan_sync,
    with_ignore_files,
)
from composeplat.diagnostics import ComposeplatError, printable, quoted
from composeplat.system import files

MAX_IGNORE_FILE_BYTES = 1024 * 1024


def sync_paths(service: Service, project: Collection[str] = ()) -> tuple[SyncPath, ...]:
    """Return the sync paths of a service on this disk, without sockets and other system paths."""
    kinds = {mount.source: _kind(Path(mount.source), project) for mount in service.mounts if mount.kind == HOST}
    return tuple(_with_ignores(path) for path in plan_sync(service, kinds, project))


def find_link(path: SyncPath) -> str:
    """Find the first link on the way to a sync path that a container may have created; empty if there is none."""
    return first_link(path.local, path.within) if path.within else ""


def first_link(path: str, folder: str) -> str:
    """Find the first link on the way from a folder to a path below it; empty if there is none."""
    below = os.path.relpath(path, folder).split(os.sep)
    if below[0] == os.pardir:
        return ""
    steps = (os.path.join(folder, *below[:length]) for length in range(1, len(below) + 1))
    return next((step for step in steps if os.path.normpath(step) != folder and os.path.islink(step)), "")


def _kind(path: Path, project: Collection[str]) -> HostKind | None:
    if files.is_system_path(path, project):
        return None
    return HostKind.FOLDER if path.is_dir() else HostKind.FILE if path.is_file() else None


def _with_ignores(path: SyncPath) -> SyncPath:
    if path.is_file:
        return path
    texts = {}
    for name in (DOCKERIGNORE, STIGNORE):
        try:
            texts[name] = files.read_bytes(Path(path.local) / name, limit=MAX_IGNORE_FILE_BYTES).decode(
                "utf-8", "replace"
            )
        except files.Unreadable as error:
            if not error.missing:
                raise ComposeplatError(f"the ignore file '{Path(path.local) / name}' {error.reason}") from error
    number, line = find_include(texts.get(STIGNORE, ""))
    if number:
        raise ComposeplatError(
            f"line {number} of the ignore file '{Path(path.local) / STIGNORE}' includes another file, "
            f"which is not read: {quoted(printable(line))}",
            f"copy the patterns of that file into {STIGNORE}",
        )
    return with_ignore_files(path, texts)
