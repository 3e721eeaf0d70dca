"""Links in build contexts that would be read without end: to a pipe, a device, or a stream of a process.

Owns finding them, and whether an ignore file leaves one out.
Must not know what an image makes of a link. BuildKit keeps links as they are, but Pulumi's provider for builds reads
what they lead to, for the hash by which it knows a changed context.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from composeplat.compose.model import Build
from composeplat.system import files

_MAX_IGNORE_BYTES = 1024 * 1024
#: What these lead to is another file in each process.
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")


def find_endless_link(build: Build, context: str) -> str:
    """Return the path in a context of a link that a build would read without end; empty without one."""
    found = _endless_links(context)
    first = next(found, "")
    if not first:
        return ""
    patterns = _ignore_patterns(build)
    return next((path for path in (first, *found) if not _is_ignored(path, patterns)), "")


def _endless_links(context: str) -> Iterator[str]:
    pending = [context]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            # The builder reports it.
            continue
        for entry in found:
            if entry.is_symlink():
                if _is_endless(entry.path):
                    yield os.path.relpath(entry.path, context)
            elif entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)


def _is_endless(link: str) -> bool:
    try:
        if _STREAM.fullmatch(os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))):
            return True
        status = os.stat(link)
    except OSError:
        return False
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev != os.stat(os.devnull).st_rdev
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISBLK(status.st_mode)


# ignore files ---------------------------------------------------------------------------------------------------------


def _ignore_patterns(build: Build) -> list[str]:
    """Return the patterns of the ignore file of the Dockerfile, else of the context's."""
    own = f"{build.dockerfile or 'Dockerfile'}.dockerignore"
    for path in (Path(build.context, own), Path(build.context, ".dockerignore")):
        try:
            text = files.read_bytes(path, limit=_MAX_IGNORE_BYTES).decode("utf-8", "replace")
        except files.Unreadable:
            continue
        lines = (line.strip() for line in text.lstrip("\ufeff").splitlines())
        return [line for line in lines if line and not line.startswith("#")]
    return []


def _is_ignored(path: str, patterns: Iterable[str]) -> bool:
    """Return whether the last pattern that matches a path, or a folder that it is in, leaves it out."""
    steps = path.split("/")
    is_ignored = False
    for pattern in patterns:
        is_exception = pattern.startswith("!")
        parts = os.path.normpath(pattern.removeprefix("!").strip()).lstrip("/").split("/")
        if is_exception == is_ignored and _matches(steps, parts):
            is_ignored = not is_exception
    return is_ignored


def _matches(steps: Sequence[str], parts: Iterable[str]) -> bool:
    """Return whether a pattern matches the first steps of a path."""
    matched = {0}
    for part in parts:
        if part == "**":
            matched = set(range(min(matched), len(steps) + 1))
        else:
            matched = {count + 1 for count in matched if count < len(steps) and fnmatchcase(steps[count], part)}
        if not matched:
            return False
    return True
