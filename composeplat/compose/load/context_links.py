"""Links and empty folders of build contexts, and links that a build would read without end: to a pipe or a device.

Owns walking a context, without the paths that its ignore file leaves out, and reading that file.
Must not know how an image has a link. BuildKit keeps links as they are, but Pulumi's provider for builds reads the
files that they lead to, for the hash by which it knows a changed context.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from composeplat.compose.dockerignore import IgnoreRules, Matches, read_dockerignore
from composeplat.system import files

_MAX_IGNORE_BYTES = 1024 * 1024
#: They lead to another file in each process.
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")


def find_endless_link(context: str, ignore_files: Iterable[str]) -> str:
    """Return the path in a context of a link that a build would read without end; empty without one."""
    found = links_and_empty_folders(context, ignore_files)
    return next((path for path, target in found if target and _is_endless(os.path.join(context, path))), "")


def _is_endless(link: str) -> bool:
    """Check for a link to a pipe, a device or an open file of a process."""
    try:
        if _STREAM.fullmatch(os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))):
            return True
        status = os.stat(link)
    except OSError:
        return False
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev != os.stat(os.devnull).st_rdev
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISBLK(status.st_mode)


def links_and_empty_folders(folder: str, ignore_files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each link with the path in it, and each empty folder; the first ignore file that exists counts."""
    rules = IgnoreRules.parse(read_ignore_file(folder, ignore_files))
    pending: list[tuple[str, Matches]] = [("", ())]
    while pending:
        path, matches = pending.pop()
        is_empty = True
        for entry in _entries(os.path.join(folder, path)):
            if not is_empty and entry.is_file(follow_symlinks=False):
                continue
            inner = f"{path}/{entry.name}" if path else entry.name
            found = rules.match(inner, matches)
            is_ignored = rules.ignores(found)
            is_empty = is_empty and is_ignored
            if entry.is_dir(follow_symlinks=False):
                if not is_ignored or rules.has_exceptions:
                    pending.append((inner, found))
            elif entry.is_symlink() and not is_ignored:
                yield inner, os.readlink(entry.path)
        if path and is_empty and not rules.ignores(matches):
            yield path, ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List a folder; the builder reports one that it can't read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def read_ignore_file(folder: str, names: Iterable[str]) -> list[str]:
    """Return the patterns of the first ignore file that exists; the builder reports one that can't be read."""
    path = next((path for name in names if os.path.lexists(path := os.path.join(folder, name))), "")
    if path:
        with contextlib.suppress(files.Unreadable):
            text = files.read_bytes(Path(path), limit=_MAX_IGNORE_BYTES).decode(errors="replace")
            return read_dockerignore(text)
    return []
