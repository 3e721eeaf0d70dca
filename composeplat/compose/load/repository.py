"""Find the git repository of a folder: its work tree, its remote and its commit.

Owns reading git's own files.
Must not run git: it may not be installed, and refuses repositories of other users, as when root deploys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from composeplat.system import files
from composeplat.system.records import record

_MAX_BYTES = 1024 * 1024
#: A repository may have a hundred thousand branches and tags.
_MAX_PACKED_BYTES = 32 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCHES = "refs/heads/"
_SECTION = re.compile(r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_PROGRAMS = re.compile(rb"\[\s*(?:filter|include)", re.IGNORECASE)
_URL = re.compile(r"\s*url\s*=\s*(.*)", re.IGNORECASE)


@record
class Repository:
    work_tree: Path
    remote: str = ""
    """The URL of the remote ``origin``, else of the first remote by name; empty without remotes."""


@record
class Commit:
    hash: str
    branch: str = ""
    """Empty if no branch is checked out."""


def find_repository(folder: Path) -> Repository | None:
    """Return the repository of a folder, with links resolved."""
    try:
        start = Path(files.real_path(folder))
    except files.Unreadable:
        return None
    for parent in (start, *start.parents):
        folders = _git_folders(parent)
        if folders is not None:
            remotes = parse_remotes(_read(folders.shared / "config"))
            name = "origin" if "origin" in remotes else min(remotes, default="")
            return Repository(parent, remotes.get(name, ""))
    return None


def find_commit(work_tree: Path) -> Commit | None:
    """Return the commit that is checked out in a work tree; none before the first one, or if it can't be read."""
    folders = _git_folders(work_tree)
    head = _read(folders.own / "HEAD").strip() if folders else ""
    if folders is None or not head.startswith("ref: refs/"):
        return Commit(head) if _HASH.fullmatch(head) else None
    name = head.removeprefix("ref: ")
    found = "" if ".." in name else _resolve(name, folders)
    return Commit(found, name.removeprefix(_BRANCHES)) if found else None


def may_name_programs(work_tree: Path) -> bool:
    """Return whether git's configuration of a work tree may name programs that git runs when it reads files.

    These are filters; an included file may have them too.
    """
    folders = _git_folders(work_tree)
    paths = (folders.shared / "config", folders.own / "config.worktree") if folders else ()
    return any(_may_name_programs(path) for path in paths)


def _may_name_programs(config: Path) -> bool:
    try:
        return _PROGRAMS.search(files.read_bytes(config, limit=_MAX_BYTES)) is not None
    except files.Unreadable as error:
        return not error.missing


def _resolve(name: str, folders: _GitFolders) -> str:
    """Return the hash that a reference names; empty if there is none."""
    for folder in (folders.own, folders.shared):
        found = _read(folder / name).strip()
        if _HASH.fullmatch(found):
            return found
    for line in _read(folders.shared / "packed-refs", _MAX_PACKED_BYTES).splitlines():
        found, _, packed = line.partition(" ")
        if packed == name and _HASH.fullmatch(found):
            return found
    return ""


@record
class _GitFolders:
    own: Path
    """What is checked out."""
    shared: Path
    """What all work trees of the repository share."""


def _git_folders(work_tree: Path) -> _GitFolders | None:
    """Return the git folders of a work tree; a linked work tree or submodule names its own in a file."""
    entry = work_tree / ".git"
    if entry.is_dir():
        return _GitFolders(entry, entry) if files.exists(entry / "HEAD") else None
    link = re.match(r"gitdir: (.+)", _read(entry))
    if link is None:
        return None
    own = Path(os.path.normpath(work_tree / link[1].strip()))
    shared = _read(own / "commondir").strip()
    return _GitFolders(own, Path(os.path.normpath(own / shared)) if shared else own)


def _read(path: Path, limit: int = _MAX_BYTES) -> str:
    try:
        return files.read_bytes(path, limit=limit).decode("utf-8", "replace")
    except files.Unreadable:
        return ""


def parse_remotes(text: str) -> dict[str, str]:
    """The first URL of each remote of git's configuration."""
    remotes: dict[str, str] = {}
    remote = ""
    for line in _lines(text):
        if line.lstrip().startswith("["):
            section = _SECTION.match(line.lstrip())
            remote = re.sub(r"\\(.)", r"\1", section[1]) if section else ""
        url = _URL.fullmatch(line)
        if remote and url:
            remotes.setdefault(remote, _value(url[1]))
    return remotes


def _lines(text: str) -> Iterator[str]:
    yield from text.replace("\r\n", "\n").replace("\\\n", "").split("\n")


def _value(text: str) -> str:
    """A value without its quotes and without the comment behind it."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([^"#;]+)|([#;].*)', text)
    found = ""
    for quoted, plain, comment in parts:
        if comment:
            break
        found += re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
    return found.strip()
