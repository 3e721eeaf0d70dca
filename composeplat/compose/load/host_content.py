"""Read the content of host volumes: files with their modes.

Owns the limits of a host volume, and which links and file types are refused.
Must not know how the content is deployed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES, HostContent, HostFile
from composeplat.system.files import Outside, Unreadable, check_inside, is_system_path, read_bytes, real_path, reason_of
from composeplat.system.project_root import ProjectRoot


def read_host_content(path: Path, root: ProjectRoot, left_out: frozenset[str] = frozenset()) -> HostContent:
    """Read a host volume's files with their modes, up to the limits of a Secret.

    A link may lead anywhere within the project. What is ``left_out`` of a folder may be anything.
    """
    if is_system_path(Path(real_path(path))):
        raise Unreadable("leads to a system path")
    check_inside(path, root)
    try:
        info = os.stat(path)
    except OSError as error:
        raise Unreadable(reason_of(error), missing=isinstance(error, FileNotFoundError)) from error
    if stat.S_ISDIR(info.st_mode):
        return _read_folder(path, root, left_out)
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("is a socket, pipe or device, not a file")
    if info.st_size > MAX_HOST_BYTES:
        return HostContent(is_folder=False, files=None, count=1, size=info.st_size)
    content = read_bytes(path, limit=2 * MAX_HOST_BYTES, root=root)
    file = HostFile(path="", mode=info.st_mode & 0o777, content=content)
    return HostContent(is_folder=False, files=(file,), count=1, size=len(content))


def _read_folder(top: Path, root: ProjectRoot, left_out: frozenset[str]) -> HostContent:
    """Read a folder's files, sorted; above the limits, check all files, but keep only their number and size."""
    found: list[tuple[str, int]] = []
    total = 0
    pending = [top]
    while pending:
        folder = pending.pop()
        try:
            entries = _scan(folder, top, left_out)
        except OSError as error:
            raise Unreadable(f"holds '{folder.relative_to(top)}', which {reason_of(error)}") from error
        for entry in entries:
            name = os.path.relpath(entry.path, top)
            if not _is_text(name):
                raise Unreadable("holds a file whose name is not UTF-8 text")
            if entry.is_symlink():
                _check_link(entry.path, name, root)
            try:
                info = entry.stat()
            except OSError as error:
                raise Unreadable(f"holds '{name}', a broken or cyclic link") from error
            if stat.S_ISDIR(info.st_mode):
                if not entry.is_symlink():
                    pending.append(Path(entry.path))
                else:
                    raise Unreadable(f"holds '{name}', a link to a folder; mount that folder by its own path")
            elif stat.S_ISREG(info.st_mode):
                found.append((name, info.st_mode & 0o777))
                total += info.st_size
            else:
                raise Unreadable(f"holds '{name}', a socket, pipe or device")
    if total > MAX_HOST_BYTES or len(found) > MAX_HOST_FILES:
        return HostContent(is_folder=True, files=None, count=len(found), size=total, left_out=left_out)
    files = (
        HostFile(path=name, mode=mode, content=read_bytes(top / name, limit=2 * MAX_HOST_BYTES, root=root))
        for name, mode in sorted(found)
    )
    return HostContent(is_folder=True, files=tuple(files), count=len(found), size=total, left_out=left_out)


def _scan(folder: Path, top: Path, left_out: frozenset[str]) -> list[os.DirEntry[str]]:
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    return [entry for entry in entries if os.path.relpath(entry.path, top) not in left_out] if left_out else entries


def _check_link(path: str, name: str, root: ProjectRoot) -> None:
    if not root.allows(path):
        raise Outside(root, f"holds '{name}', a link to a file outside the project")
    if is_system_path(Path(os.path.realpath(path))):
        raise Unreadable(f"holds '{name}', a link to a system path")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
