"""Read the files that new pods get from the cluster, for rules that replace pods after a sync.

A container in a cluster that starts again has the files of its image, so that a program would not see what was copied
into the one before. So these files are mounted into the new pods, as the files of a host volume are.
Owns the limits of these files; must not know how they are mounted: :mod:`composeplat.plan.storage` does.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable

from composeplat.compose.file_model import MAX_FILE_BYTES
from composeplat.compose.model import MAX_HOST_FILES, HostFile
from composeplat.dev.container_sync import local_steps
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.diagnostics import ComposeplatError
from composeplat.system.beneath import open_parent

_PERMISSIONS = 0o777


def read_mounted_files(
    paths: Iterable[tuple[WatchedFolder, str]],
) -> tuple[tuple[HostFile, ...], list[tuple[str, str]]]:
    """Read files; return those that are not mounted too, each with the reason. Missing ones are left out."""
    files: dict[str, HostFile] = {}
    left_out: list[tuple[str, str]] = []
    size = 0
    for folder, path in paths:
        target = folder.in_container(path)
        if ":" in target:
            left_out.append((target, "a path with ':', which no pod can mount"))
            continue
        try:
            file = _read(folder, path, target)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if file is None:
            left_out.append((target, "a link or folder, which is not put into new pods"))
            continue
        size += len(file.content)
        files[target] = file
    if len(files) > MAX_HOST_FILES or size > MAX_FILE_BYTES:
        message = f"{len(files)} files of {size // 1000} kB changed, and new pods get at most"
        message += f" {MAX_HOST_FILES} files of {MAX_FILE_BYTES // 1000} kB"
        raise ComposeplatError(message, "write action: rebuild, or action: sync")
    return tuple(files[target] for target in sorted(files)), left_out


def _read(folder: WatchedFolder, path: str, target: str) -> HostFile | None:
    """Read a file, up to a byte over the limit."""
    name = posixpath.basename(path)
    with open_parent(*local_steps(folder, path)) as parent:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as content:
            return HostFile(path=target, mode=mode & _PERMISSIONS, content=content.read(MAX_FILE_BYTES + 1))
