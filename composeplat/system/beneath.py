"""Writing and reading files below a folder, whatever lies there and is named.

Owns how a path is followed: step by step from a descriptor of the folder, and through no link. So a name with ``..``
or a link that was planted leads nowhere else.
Must not know where the names come from.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o777
_OWNERS = 0o700


class Escape(ValueError):
    """A name that does not lead below the folder."""


def split_name(name: str) -> tuple[str, ...]:
    """Split a name into its steps; :class:`Escape` for one that is absolute or has ``..``."""
    steps = tuple(step for step in name.split("/") if step not in ("", "."))
    if name.startswith("/") or ".." in steps or "\0" in name:
        raise Escape(name)
    return steps


@contextlib.contextmanager
def open_parent(folder: Path, steps: tuple[str, ...]) -> Iterator[int]:
    """Open the folder that holds a path below another folder, through no link; that folder's own path is trusted."""
    with _descended(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), steps[:-1]) as parent:
        yield parent


@contextlib.contextmanager
def _descended(current: int, steps: tuple[str, ...], *, makes: bool = False) -> Iterator[int]:
    """Open a folder below an open one, which is closed, step by step; create what is missing, if that is wanted."""
    try:
        for step in steps:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(step, dir_fd=current)
            following = os.open(step, _FOLDER, dir_fd=current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def _finish(descriptor: int, mode: int, modified: float) -> None:
    # A time that no file can have is left out.
    with contextlib.suppress(OSError, OverflowError, ValueError):
        os.utime(descriptor, (modified, modified))
    os.fchmod(descriptor, mode & _PERMISSIONS)


class FolderWriter:
    """A folder that files are written below."""

    def __init__(self, folder: Path) -> None:
        # The user named it: links in its own path are followed.
        self._top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._top)

    def make_folder(self, steps: tuple[str, ...], mode: int) -> bool:
        """Create a folder, which stays writable; returns whether it was not there."""
        *folders, name = steps
        with self._opened(tuple(folders)) as parent:
            try:
                os.mkdir(name, mode & _PERMISSIONS | _OWNERS, dir_fd=parent)
            except FileExistsError:
                os.close(os.open(name, _FOLDER, dir_fd=parent))
                return False
        return True

    def finish_folder(self, steps: tuple[str, ...], mode: int, modified: float) -> None:
        """Give a folder its mode and its time, once all below it is written."""
        with self._opened(steps) as folder:
            _finish(folder, mode, modified)

    def write_file(self, steps: tuple[str, ...], content: IO[bytes], mode: int, modified: float) -> None:
        """Write a file whole, or not at all; a link in its place is replaced, and not followed."""
        *folders, name = steps
        with self._opened(tuple(folders)) as parent:
            aside = f".platform-{secrets.token_hex(6)}"
            made = os.open(aside, _NEW_FILE, 0o600, dir_fd=parent)
            try:
                with os.fdopen(made, "wb") as file:
                    shutil.copyfileobj(content, file)
                    file.flush()
                    _finish(file.fileno(), mode, modified)
                os.replace(aside, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside, dir_fd=parent)
                raise

    def open_file(self, steps: tuple[str, ...]) -> IO[bytes]:
        """Open a file that was written before."""
        *folders, name = steps
        with self._opened(tuple(folders)) as parent:
            return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent), "rb")

    @contextlib.contextmanager
    def _opened(self, steps: tuple[str, ...]) -> Iterator[int]:
        """Open a folder below this one, and create what is missing."""
        with _descended(os.dup(self._top), steps, makes=True) as folder:
            yield folder
