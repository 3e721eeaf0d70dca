"""Find the git repository of a folder: its work tree and its remote.

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
_SECTION = re.compile(r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_URL = re.compile(r"\s*url\s*=\s*(.*)", re.IGNORECASE)


@record
class Repository:
    work_tree: Path
    remote: str = ""
    """The URL of the remote ``origin``, else of the first remote by name; empty without remotes."""


def find_repository(folder: Path) -> Repository | None:
    """Return the repository of a folder, with links resolved."""
    try:
        start = Path(files.real_path(folder))
    except files.Unreadable:
        return None
    for parent in (start, *start.parents):
        git_folder = _git_folder(parent)
        if git_folder is not None:
            remotes = parse_remotes(_read(git_folder / "config"))
            name = "origin" if "origin" in remotes else min(remotes, default="")
            return Repository(parent, remotes.get(name, ""))
    return None


def _git_folder(work_tree: Path) -> Path | None:
    """Return the git folder of a work tree; a linked work tree or submodule names it in a file."""
    entry = work_tree / ".git"
    if entry.is_dir():
        return entry if files.exists(entry / "HEAD") else None
    link = re.match(r"gitdir: (.+)", _read(entry))
    if link is None:
        return None
    own = Path(os.path.normpath(work_tree / link[1].strip()))
    shared = _read(own / "commondir").strip()
    return Path(os.path.normpath(own / shared)) if shared else own


def _read(path: Path) -> str:
    try:
        return files.read_bytes(path, limit=_MAX_BYTES).decode("utf-8", "replace")
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
