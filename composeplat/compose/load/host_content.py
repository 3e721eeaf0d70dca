"""Read the content of host volumes: files with their modes.

Owns the limits of a host volume, and which links and file types are refused.
Must not know how the content is deployed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES, HostContent, HostFile
from composeplat.system.files import Outside, Unreadable, check_inside, is_system_path, read_bytes, real_path, reason_of
from composeplat.system.project_root import ProjectRoot

#: The name of a host volume within itself, if that is what can't be read.
ITSELF = "."
_MAX_LINKED_FOLDERS = 1000


def read_host_content(path: Path, root: ProjectRoot, left_out: frozenset[str] = frozenset()) -> HostContent:
    """Read a host volume's files with their modes, up to the limits of a Secret.

    A link may lead anywhere within the project. What is ``left_out`` of a folder may be anything.
    """
    if is_system_path(Path(real_path(path)), (root.path,)):
        raise Unreadable("leads to a system path")
    check_inside(path, root)
    try:
        info = os.stat(path)
    except FileNotFoundError as error:
        raise Unreadable(reason_of(error), missing=True) from error
    except OSError as error:
        raise _refused(ITSELF, reason_of(error)) from error
    if stat.S_ISDIR(info.st_mode):
        return _read_folder(path, root, left_out)
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("is a socket, pipe or device, not a file")
    if info.st_size > MAX_HOST_BYTES:
        return HostContent(is_folder=False, files=None, count=1, size=info.st_size)
    content = _read_file(path, ITSELF, root)
    file = HostFile(path="", mode=info.st_mode & 0o777, content=content)
    return HostContent(is_folder=False, files=(file,), count=1, size=len(content))


def _read_folder(top: Path, root: ProjectRoot, left_out: frozenset[str]) -> HostContent:
    """Read a folder's files, sorted; above the limits, check all files, but keep only their number and size."""
    found: list[tuple[str, int]] = []
    total = 0
    for name, info in _walk(top, root, left_out):
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable(f"holds '{name}', a socket, pipe or device", within=name)
        found.append((name, info.st_mode & 0o777))
        total += info.st_size
    if total > MAX_HOST_BYTES or len(found) > MAX_HOST_FILES:
        return HostContent(is_folder=True, files=None, count=len(found), size=total, left_out=left_out)
    files = (HostFile(path=name, mode=mode, content=_read_file(top / name, name, root)) for name, mode in sorted(found))
    hidden = any(os.path.lexists(top / name) for name in left_out)
    return HostContent(
        is_folder=True, files=tuple(files), count=len(found), size=total, left_out=left_out, has_hidden=hidden
    )


def _read_file(path: Path, name: str, root: ProjectRoot) -> bytes:
    try:
        return read_bytes(path, limit=2 * MAX_HOST_BYTES, root=root)
    except Outside:
        raise
    except Unreadable as error:
        raise _refused(name, error.reason) from error


def _refused(name: str, reason: str) -> Unreadable:
    return Unreadable(reason if name == ITSELF else f"holds '{name}', which {reason}", within=name)


def _walk(top: Path, root: ProjectRoot, left_out: frozenset[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is in a folder and is no folder itself; links are followed, with the folders they lead to."""
    # Each folder with its real path, and those of the folders that lead to it, to find cycles of links.
    pending: list[tuple[Path, str, frozenset[str]]] = [(top, os.path.realpath(top), frozenset())]
    followed = 0
    while pending:
        folder, real, route = pending.pop()
        if real in route:
            name = os.path.relpath(folder, top)
            raise Unreadable(f"holds '{name}', a broken or cyclic link", within=name)
        for entry in _scan(folder, top, left_out):
            name = os.path.relpath(entry.path, top)
            info = _status(entry, name, root)
            if not stat.S_ISDIR(info.st_mode):
                yield name, info
                continue
            followed += entry.is_symlink()
            if followed > _MAX_LINKED_FOLDERS:
                raise Unreadable(f"holds more than {_MAX_LINKED_FOLDERS} links to folders", within=name)
            target = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(real, entry.name)
            pending.append((Path(entry.path), target, route | {real}))


def _status(entry: os.DirEntry[str], name: str, root: ProjectRoot) -> os.stat_result:
    if not _is_text(name):
        raise Unreadable("holds a file whose name is not UTF-8 text")
    if entry.is_symlink():
        _check_link(entry.path, name, root)
    try:
        return entry.stat()
    except OSError as error:
        raise Unreadable(f"holds '{name}', a broken or cyclic link", within=name) from error


def _scan(folder: Path, top: Path, left_out: frozenset[str]) -> list[os.DirEntry[str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        name = os.path.relpath(folder, top)
        raise _refused(name, reason_of(error)) from error
    return [entry for entry in entries if os.path.relpath(entry.path, top) not in left_out] if left_out else entries


def _check_link(path: str, name: str, root: ProjectRoot) -> None:
    if not root.allows(path):
        raise Outside(root, f"holds '{name}', a link to a file outside the project", within=name)
    if is_system_path(Path(os.path.realpath(path)), (root.path,)):
        raise Unreadable(f"holds '{name}', a link to a system path", within=name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
