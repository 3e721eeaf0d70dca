"""Which folders and files `platform up` keeps the same, here and in the container: host volumes as sync paths.

Owns the choice of paths and the grammar of ignore files.
Must not know how files get there, nor open any: what lies on the disk comes in as data.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from composeplat.compose.model import HOST, Mount, Service

FOLDER, FILE = "folder", "file"
#: History is large, changes under one's hands, and is of no use to the program; git runs programs that its files name.
#: Some systems take no account of case.
DEFAULT_IGNORES = ("**/.[gG][iI][tT]",)
STIGNORE, DOCKERIGNORE = ".stignore", ".dockerignore"
#: The rules stay on this machine, and no rule changes that: the container must not have a say in them.
ALWAYS_IGNORED = (
    "**/.[sS][tT][iI][gG][nN][oO][rR][eE]",
    "**/.[dD][oO][cC][kK][eE][rR][iI][gG][nN][oO][rR][eE]",
)
_CHOICE = re.compile(r"(?<!\\)\{([^{}]*)\}")
_MOST_CHOICES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPath:
    """One folder or file that is to be the same on both sides."""

    local: str
    remote: str
    is_file: bool = False
    one_way: bool = False
    """Mounted read-only: what the container changes is not brought back."""
    within: str = ""
    """The folder below which no link is followed on the way to it; empty where no container can have put one there."""
    ignores: tuple[str, ...] = ()
    """Patterns as of ``.dockerignore``; the last that fits counts."""


def plan_sync(service: Service, kinds: Mapping[str, str], project: Iterable[str] = ()) -> tuple[SyncPath, ...]:
    """The sync paths of a service; ``kinds`` says of each host path whether it is a folder or a file.

    ``project`` are folders of the project: what lies in them, or in what is synced, a container may have made.

    What is mounted below a folder is left out of it: a volume there keeps what the folder must not overwrite, and a
    host path there is synced by itself, unless it is the same part of the folder anyway.
    """
    paths: dict[str, SyncPath] = {}
    for mount in service.mounts:
        if mount.kind == HOST and kinds.get(mount.source) in (FOLDER, FILE):
            target = posixpath.normpath(mount.target)
            is_file = kinds[mount.source] == FILE
            paths[target] = SyncPath(local=mount.source, remote=target, is_file=is_file, one_way=mount.read_only)
    kept = [path for path in paths.values() if not any(_contains(other, path) for other in paths.values())]
    targets = {posixpath.normpath(mount.target) for mount in service.mounts if not _is_inside(mount, kept)}
    shared = (*project, *(path.local for path in paths.values() if not path.is_file))
    return tuple(
        replace(path, within=_outermost(path.local, shared), ignores=(*DEFAULT_IGNORES, *_below(path, targets)))
        for path in kept
    )


def _outermost(path: str, folders: Iterable[str]) -> str:
    """The shortest of the folders that hold a path, or are it."""
    return min((folder for folder in folders if path == folder or _relative(path, folder)), key=len, default="")


def _contains(outer: SyncPath, inner: SyncPath) -> bool:
    """Say whether a path is a part of another one, here as there."""
    if outer is inner or outer.is_file or outer.one_way != inner.one_way:
        return False
    below = _relative(inner.remote, outer.remote)
    return bool(below) and posixpath.join(outer.local, below) == inner.local


def _is_inside(mount: Mount, kept: Iterable[SyncPath]) -> bool:
    """Say whether a host path was left out because a folder has it already."""
    target = posixpath.normpath(mount.target)
    return mount.kind == HOST and all(path.remote != target for path in kept)


def _below(folder: SyncPath, targets: Iterable[str]) -> list[str]:
    if folder.is_file:
        return []
    below = (_relative(target, folder.remote) for target in sorted(targets))
    return [_escape(path) for path in below if path]


def _relative(path: str, folder: str) -> str:
    """A path as seen from a folder that it is below; empty where it is not."""
    prefix = folder if folder.endswith("/") else f"{folder}/"
    return path[len(prefix) :] if path.startswith(prefix) else ""


def _escape(path: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", path)


# ignore files ---------------------------------------------------------------------------------------------------------


def with_ignore_files(path: SyncPath, texts: Mapping[str, str]) -> SyncPath:
    """Add the patterns of the ignore files in a folder; those of ``.stignore`` come last."""
    patterns = (*read_dockerignore(texts.get(DOCKERIGNORE, "")), *read_stignore(texts.get(STIGNORE, "")))
    return replace(path, ignores=(*path.ignores, *patterns, *ALWAYS_IGNORED))


def read_dockerignore(text: str) -> list[str]:
    lines = (line.strip() for line in text.lstrip("\ufeff").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def read_stignore(text: str) -> list[str]:
    """Syncthing's patterns as Docker's.

    There the first that fits counts, here the last; a name without a slash in front is meant in every folder.
    """
    patterns: list[str] = []
    for line in text.lstrip("\ufeff").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith(("//", "#")):
            continue
        patterns.append(_translate(pattern))
    return [choice for pattern in reversed(patterns) for choice in _choices(pattern)]


def _translate(pattern: str) -> str:
    negated = False
    while flag := re.match(r"!|\(\?[a-z]\)", pattern):
        negated = negated or flag[0] == "!"
        pattern = pattern[flag.end() :]
    anchored = pattern.startswith("/")
    pattern = pattern.strip("/")
    if not anchored and not pattern.startswith("**/"):
        pattern = f"**/{pattern}"
    return f"!{pattern}" if negated else pattern


def _choices(pattern: str) -> list[str]:
    """Write out ``{a,b}``, which Docker does not know."""
    match = _CHOICE.search(pattern)
    if match is None or len(_CHOICE.findall(pattern)) > _MOST_CHOICES:
        return [pattern]
    head, tail = pattern[: match.start()], pattern[match.end() :]
    return [rest for choice in match[1].split(",") for rest in _choices(f"{head}{choice}{tail}")]
