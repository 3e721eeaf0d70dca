"""Files and folders that appear whole or not at all, whenever the process is killed.

Owns writing beside the target and renaming over it, and the modes of files that only their owner may read.
Must not know what is written: what goes wrong is an ``OSError``, and the caller explains it.
It is apart because state, certificates, notes and caches all need the same care.

The temporary file has a random name and is never one that exists: two processes can't write into the same one, even
where containers share a folder, and a link that somebody left there is not followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_FILE = 0o666
_FOLDER = 0o777
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MAX_NAME_CHARS = 40
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_private(path: Path, text: str) -> None:
    """Replace a file with one that its owner alone can read, and that is on the disk before it takes the name."""
    with _staged_file(path, text, _PRIVATE_FILE) as staged:
        staged.replace(path)


def create_private(path: Path, text: str) -> bool:
    """Write a private file unless the path exists; return whether it was written."""
    with _staged_file(path, text, _PRIVATE_FILE) as staged:
        try:
            os.link(staged, path)
        except FileExistsError:
            return False
        except OSError:
            # Such as FAT and folders shared with a virtual machine, which have no hard links: the name is taken first.
            try:
                os.close(os.open(path, _NEW_FILE, _PRIVATE_FILE))
            except FileExistsError:
                return False
            staged.replace(path)
    return True


def open_private(path: Path, content: bytes) -> int:
    """Replace a file with a private one, and return its descriptor, which appends. It is not forced to the disk."""
    staged = _beside(path)
    descriptor = os.open(staged, _NEW_FILE | os.O_APPEND, _PRIVATE_FILE)
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(content)
        staged.replace(path)
    except BaseException:
        os.close(descriptor)
        staged.unlink(missing_ok=True)
        raise
    return descriptor


def write_file(path: Path, text: str, *, errors: str = "strict") -> None:
    """Replace a file with one of its mode; a new one may be read by others, as the umask allows.

    It is not forced to the disk.
    """
    write_files({path: text}, errors=errors)


def write_files(texts: Mapping[Path, str], *, errors: str = "strict") -> None:
    """Replace several files, none of them before all are written: a full disk leaves every old one."""
    with contextlib.ExitStack() as stack:
        files = {path: stack.enter_context(_staged_file(path, text, _FILE, errors)) for path, text in texts.items()}
        for path, staged in files.items():
            staged.replace(path)


def replace_link(link: Path, target: Path) -> None:
    """Point a symbolic link to a target, whatever it pointed to before."""
    staged = _beside(link)
    try:
        staged.symlink_to(target)
        staged.replace(link)
    finally:
        staged.unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter; an existing folder keeps its mode."""
    folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)


class WritableByOthers(PermissionError):
    """Other users can write in a folder, so its files may be theirs."""


class OfAnotherUser(PermissionError):
    """Another user may have made a folder to see, or to replace, what is written there."""


def refuse_planted(folder: Path) -> None:
    """Refuse a folder of another user in a folder where all users can make one, such as /tmp."""
    with contextlib.suppress(FileNotFoundError):
        if folder.stat().st_uid not in (0, os.geteuid()) and folder.parent.stat().st_mode & stat.S_IWOTH:
            raise OfAnotherUser(errno.EPERM, "it belongs to another user", str(folder))


def make_protected_folder(folder: Path) -> None:
    """Make a private folder, or refuse an existing one if other users can write in it, or may have made it."""
    make_private_folder(folder)
    refuse_planted(folder)
    if folder.stat().st_mode & _WRITABLE_BY_OTHERS:
        raise WritableByOthers(errno.EPERM, "other users can write in it", str(folder))


@contextlib.contextmanager
def replace_folder(folder: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield an empty folder that takes the place of ``folder`` when the block ends without an error.

    A folder can't be renamed over one that has files, so for a moment there is none.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = _beside(folder)
    staged.mkdir(mode=_PRIVATE_FOLDER if private else _FOLDER)
    try:
        yield staged
        remove_tree(folder)
        staged.replace(folder)
    finally:
        remove_tree(staged)


def force_to_disk(path: Path) -> None:
    """Wait until the contents of a file are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers of a folder left beside it; for a caller that holds the lock of the folder."""
    for leftover in folder.parent.glob(f"{_prefix(folder)}*"):
        remove_tree(leftover)


def remove_tree(folder: Path) -> None:
    """Remove a folder as far as possible, also what lies in closed folders: those of a user may be read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    for top, names, _ in os.walk(folder):
        for path in (os.path.join(top, name) for name in names):
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, _PRIVATE_FOLDER)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _staged_file(path: Path, text: str, mode: int, errors: str = "strict") -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = _beside(path)
    descriptor = os.open(staged, _NEW_FILE, mode)
    try:
        with open(descriptor, "w", encoding="utf-8", errors=errors) as stream:
            stream.write(text)
            if mode == _PRIVATE_FILE:
                stream.flush()
                os.fsync(stream.fileno())
            else:
                _copy_mode(path, stream.fileno())
        yield staged
    finally:
        staged.unlink(missing_ok=True)


def _copy_mode(path: Path, descriptor: int) -> None:
    """Give a file the mode of the ordinary file that it will replace: that may be closed to others."""
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat().st_mode
        if stat.S_ISREG(found):
            os.fchmod(descriptor, stat.S_IMODE(found))


def _beside(path: Path) -> Path:
    return path.with_name(f"{_prefix(path)}{os.urandom(6).hex()}.new")


def _prefix(path: Path) -> str:
    return f".{path.name[:_MAX_NAME_CHARS]}."
