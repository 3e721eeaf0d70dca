"""The folders and files that ``platform up`` syncs: host volumes as sync paths.

Owns the choice of paths, and the grammar of ignore files.
Must not open files, nor know how they are synced: :mod:`composeplat.dev.sync_paths` reads them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from composeplat.compose.dockerignore import read_dockerignore
from composeplat.compose.model import HOST, Mount, Service
from composeplat.system.records import record

#: The history of git is large, changes often, and no program needs it; and git runs programs that its files name.
#: On some systems the case of a name does not matter.
DEFAULT_IGNORES = ("**/.[gG][iI][tT]",)
STIGNORE, DOCKERIGNORE = ".stignore", ".dockerignore"
#: Ignore files are never synced, whatever they contain: the container must not change them.
ALWAYS_IGNORED = (
    "**/.[sS][tT][iI][gG][nN][oO][rR][eE]",
    "**/.[dD][oO][cC][kK][eE][rR][iI][gG][nN][oO][rR][eE]",
)
_BRACES = re.compile(r"(?<!\\)\{([^{}]*)\}")
_MAX_BRACES = 4
_INCLUDE = "#include"
#: An escaped character, a class of characters, or any other character.
_PART = re.compile(r"\\.|\[(\^?)([^\]]*)\]|.")


class HostKind(StrEnum):
    """The kind of a host path; other kinds are not synced."""

    FOLDER = "folder"
    FILE = "file"


@record(kw_only=True)
class SyncPath:
    """A folder or file that is synced."""

    local: str
    remote: str
    is_file: bool = False
    one_way: bool = False
    """Mounted read-only: changes in the container are not synced back."""
    within: str = ""
    """No link below this folder is followed, as a container may have created it; empty if none can have."""
    ignores: tuple[str, ...] = ()
    """Patterns in the form of ``.dockerignore``; the last that matches wins."""


def plan_sync(
    service: Service, kinds: Mapping[str, HostKind | None], project: Iterable[str] = ()
) -> tuple[SyncPath, ...]:
    """Return the sync paths of a service; ``kinds`` has the kind of each host path.

    ``project`` are the folders of the project. A container may have created any file in them, or in a synced folder.

    A mount below a folder is left out of the folder: a volume there has data that the folder must not overwrite, and a
    host path there is synced by itself, unless it is that part of the folder anyway.
    """
    paths: dict[str, SyncPath] = {}
    for mount in service.mounts:
        if mount.kind == HOST and kinds.get(mount.source):
            target = posixpath.normpath(mount.target)
            is_file = kinds[mount.source] is HostKind.FILE
            paths[target] = SyncPath(local=mount.source, remote=target, is_file=is_file, one_way=mount.read_only)
    kept = [path for path in paths.values() if not any(_contains(other, path) for other in paths.values())]
    targets = {posixpath.normpath(mount.target) for mount in service.mounts if not _is_inside(mount, kept)}
    shared = (*project, *(path.local for path in paths.values() if not path.is_file))
    return tuple(
        replace(path, within=_outermost(path.local, shared), ignores=(*DEFAULT_IGNORES, *_below(path, targets)))
        for path in kept
    )


def _outermost(path: str, folders: Iterable[str]) -> str:
    """Return the shortest of the folders that contain a path or equal it."""
    return min((folder for folder in folders if path == folder or path_below(path, folder)), key=len, default="")


def _contains(outer: SyncPath, inner: SyncPath) -> bool:
    """Check whether a path is a part of another, on both sides."""
    if outer is inner or outer.is_file or outer.one_way != inner.one_way:
        return False
    below = path_below(inner.remote, outer.remote)
    return bool(below) and posixpath.join(outer.local, below) == inner.local


def _is_inside(mount: Mount, kept: Iterable[SyncPath]) -> bool:
    """Check whether a host path was left out because a folder contains it."""
    target = posixpath.normpath(mount.target)
    return mount.kind == HOST and all(path.remote != target for path in kept)


def _below(folder: SyncPath, targets: Iterable[str]) -> list[str]:
    if folder.is_file:
        return []
    below = (path_below(target, folder.remote) for target in sorted(targets))
    return [escape_pattern(path) for path in below if path]


def path_below(path: str, folder: str) -> str:
    """Return a path relative to a folder; empty if it is not below the folder."""
    prefix = folder if folder.endswith("/") else f"{folder}/"
    return path[len(prefix) :] if path.startswith(prefix) else ""


def escape_pattern(path: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", path)


# ignore files ---------------------------------------------------------------------------------------------------------


def with_ignore_files(path: SyncPath, texts: Mapping[str, str]) -> SyncPath:
    """Add the patterns of the ignore files in a folder; those of ``.stignore`` come last."""
    patterns = (*read_dockerignore(texts.get(DOCKERIGNORE, "")), *read_stignore(texts.get(STIGNORE, "")))
    return replace(path, ignores=(*path.ignores, *patterns, *ALWAYS_IGNORED))


def read_stignore(text: str) -> list[str]:
    """Convert Syncthing's patterns to Docker's.

    In Syncthing's the first match wins, in Docker's the last; without a slash in front, a name matches in every folder.
    """
    patterns: list[str] = []
    for line in text.lstrip("\ufeff").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith(("//", "#")):
            continue
        patterns.append(_translate(pattern))
    return [choice for pattern in reversed(patterns) for choice in _expand_braces(pattern)]


def included_file(line: str) -> str | None:
    """Return the file that a line of a ``.stignore`` includes, which may be empty; None if it includes none."""
    return line.strip().removeprefix(_INCLUDE).strip() if line.strip().startswith(_INCLUDE) else None


def match_in_both_cases(path: str) -> str:
    """Return the pattern of a path that also a file system which ignores case has no other name for."""
    return _PART.sub(_in_both_cases, escape_pattern(path))


def _translate(pattern: str) -> str:
    flags = set()
    while flag := re.match(r"!|\(\?[a-z]\)", pattern):
        flags.add(flag[0])
        pattern = pattern[flag.end() :]
    negated = "!" in flags
    if "(?i)" in flags:
        pattern = _PART.sub(_in_both_cases, pattern)
    anchored = pattern.startswith("/")
    pattern = pattern.strip("/")
    if not anchored and not pattern.startswith("**/"):
        pattern = f"**/{pattern}"
    return f"!{pattern}" if negated else pattern


def _in_both_cases(part: re.Match[str]) -> str:
    if part[2] is not None:
        return f"[{part[1]}{part[2]}{part[2].swapcase()}]"
    char, other = part[0], part[0].swapcase()
    return f"[{char}{other}]" if char != other and len(char) == len(other) == 1 else char


def _expand_braces(pattern: str) -> list[str]:
    """Expand ``{a,b}``, which Docker does not support."""
    match = _BRACES.search(pattern)
    if match is None or len(_BRACES.findall(pattern)) > _MAX_BRACES:
        return [pattern]
    head, tail = pattern[: match.start()], pattern[match.end() :]
    return [rest for option in match[1].split(",") for rest in _expand_braces(f"{head}{option}{tail}")]
