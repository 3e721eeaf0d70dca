"""Read sync paths from the disk: their kinds, their ignore files, and links on the way to them.

It is apart from :mod:`composeplat.dev.sync_rules`, which decides on the data alone.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from composeplat.compose.model import HOST, Service
from composeplat.dev.sync_rules import (
    DOCKERIGNORE,
    STIGNORE,
    HostKind,
    SyncPath,
    included_file,
    match_in_both_cases,
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
    texts = {DOCKERIGNORE: _read(path.local, DOCKERIGNORE) or ""}
    read: list[str] = []
    texts[STIGNORE] = _read_stignore(path.local, STIGNORE, read) or ""
    found = with_ignore_files(path, texts)
    # As .stignore itself, what it includes is not for the container to change.
    return replace(found, ignores=(*found.ignores, *map(match_in_both_cases, read[1:])))


def _read(folder: str, name: str) -> str | None:
    """Read an ignore file; None if there is none."""
    try:
        return files.read_bytes(Path(folder, name), limit=MAX_IGNORE_FILE_BYTES).decode("utf-8", "replace")
    except files.Unreadable as error:
        if error.missing:
            return None
        raise ComposeplatError(f"the ignore file '{Path(folder, name)}' {error.reason}") from error


def _read_stignore(folder: str, name: str, read: list[str]) -> str | None:
    """Read a ``.stignore`` with the files that it includes in the places of their lines; ``read`` gets their names."""
    text = _read(folder, name)
    if text is None:
        return None
    read.append(name)
    lines = text.lstrip("\ufeff").splitlines()
    return "\n".join(_include(folder, name, number, line, read) for number, line in enumerate(lines, 1))


def _include(folder: str, name: str, number: int, line: str, read: list[str]) -> str:
    """Return a line, or the text of the file that it includes, as in Syncthing: once, and by its path from here."""
    named = included_file(line)
    if named is None:
        return line
    included = posixpath.normpath(posixpath.join(posixpath.dirname(name), named.lstrip("/")))
    problem, text = "", None
    if not named or included == os.curdir or "\0" in named:
        problem = "names no file"
    elif included.split("/")[0] == os.pardir or first_link(os.path.join(folder, included), folder):
        problem = "leads out of the folder, or to a link"
    elif included in read:
        problem = "names a file that is included already"
    elif (text := _read_stignore(folder, included, read)) is None:
        problem = "names a file that does not exist"
    if text is None:
        place, shown = f"line {number} of the ignore file '{Path(folder, name)}'", quoted(printable(line.strip()))
        raise ComposeplatError(f"{place} {problem}: {shown}", "correct it, or delete the line")
    return text
