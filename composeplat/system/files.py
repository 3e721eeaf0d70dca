"""Files that the user or a definition names: reading them with a cap, and refusing what is no plain file.

Owns opening them, the paths that are never read, and the folder of an output.
Must not know what the bytes mean.
It is apart because a pipe, a device or a file of ``/proc`` must be refused everywhere: nothing hangs, and nothing of
the machine leaks. The pipe of a shell, which only the command line can name, is read. A refusal is an
:class:`Unreadable`, whose reason a caller puts behind a position.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TextIO
from weakref import WeakKeyDictionary

from composeplat.system.atomic import write_files
from composeplat.system.project_root import ProjectRoot, is_inside, resolve

SYSTEM_PATHS = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    # The sockets of the display.
    os.path.join(os.sep, "tmp", ".X11-unix"),
    "/usr",
    "/var/lib",
    "/var/log",
    "/var/run",
)
_NEVER_READ = ("/proc", "/sys", "/dev")
#: Ordinary files in memory, in which secrets are kept that must be on no disk.
_IN_MEMORY = (os.path.join("/dev", "shm"),)
_SHELL_PIPE = re.compile(r"(?:/dev|/proc/self)/fd/[0-9]+")
_standard_inputs: WeakKeyDictionary[TextIO, bytes] = WeakKeyDictionary()
_shell_pipes: dict[tuple[str, int], bytes] = {}
"""What pipes of the shell had, by their paths and inodes: a command may read a definition several times."""


class Unreadable(Exception):
    """A file can't be read, or must not be; ``reason`` continues a sentence that names the path."""

    code = ""
    """The diagnostic code, if the reason has one; otherwise the caller knows it."""
    hint = ""

    def __init__(self, reason: str, *, missing: bool = False, within: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing
        self.within = within
        """The path of the refused file in a folder, relative to it; empty if that is the folder or file itself."""


class Outside(Unreadable):
    """A file of the definition lies outside the project."""

    code = "outside-project"

    def __init__(self, root: ProjectRoot, reason: str = "is outside the project", within: str = "") -> None:
        super().__init__(reason, within=within)
        self.hint = root.fix


def read_bytes(path: Path, *, limit: int, root: ProjectRoot | None = None) -> bytes:
    """Read an ordinary file of at most ``limit`` bytes; never waits for a pipe.

    With a ``root``, a file outside it is not opened; without, the user has named the file.
    """
    real = real_path(path)
    if _is_never_read(real):
        raise Unreadable("is a file of the system, not of a project")
    check_inside(path, root)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(reason_of(error), missing=isinstance(error, FileNotFoundError)) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise Unreadable("is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise Unreadable("is not an ordinary file")
        _check_opened(descriptor, path, root)
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return capped(stream.read(limit + 1), limit)
    except OSError as error:
        raise Unreadable(reason_of(error)) from error
    finally:
        os.close(descriptor)


def check_inside(path: str | os.PathLike[str], root: ProjectRoot | None) -> None:
    """Refuse a path outside the project, before anyone looks whether something is there."""
    if root is not None and not root.allows(path):
        raise Outside(root)


def _check_opened(descriptor: int, path: Path, root: ProjectRoot | None) -> None:
    """Refuse a file that was put in the place of the one that was checked, by a link that came in between."""
    if root is None or root.allow_outside:
        return
    real = real_path(path)
    if not is_inside(root.path, real) or not os.path.samestat(os.lstat(real), os.fstat(descriptor)):
        raise Outside(root)


def real_path(path: str | os.PathLike[str]) -> str:
    """Follow every link; a text that can be no path at all is refused."""
    try:
        return os.path.realpath(path)
    except ValueError as error:
        raise Unreadable("is not a possible path", missing=True) from error


def read_standard_input(*, limit: int) -> bytes:
    """Read standard input. It gives its content once, so a later call in the same process returns the same content."""
    if sys.stdin is None:
        raise Unreadable("is closed")
    try:
        content = _standard_inputs.get(sys.stdin)
        if content is None:
            content = _standard_inputs[sys.stdin] = sys.stdin.buffer.read(limit + 1)
        return capped(content, limit)
    except OSError as error:
        raise Unreadable(reason_of(error)) from error


def is_shell_pipe(path: str) -> bool:
    """Whether a path can be that of a pipe that a shell makes."""
    return _SHELL_PIPE.fullmatch(path) is not None


def read_shell_pipe(path: str, *, limit: int) -> bytes | None:
    """Read the pipe that a shell makes for ``<(command)``, which gives its content once; None for any other path."""
    if not is_shell_pipe(path):
        return None
    try:
        with open(path, "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISFIFO(found.st_mode):
                return None
            pipe = path, found.st_ino
            if pipe not in _shell_pipes:
                _shell_pipes[pipe] = stream.read(limit + 1)
            return _shell_pipes[pipe]
    except OSError:
        return None


def capped(content: bytes, limit: int) -> bytes:
    """Refuse content of more than ``limit`` bytes."""
    if len(content) > limit:
        raise Unreadable(f"is larger than {limit // 1024 // 1024} MiB")
    return content


def reason_of(error: OSError) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "does not exist"
        case PermissionError():
            return "may not be read by this user"
        case IsADirectoryError():
            return "is a folder, not a file"
        case OSError(errno=errno.ENXIO):
            return "is not an ordinary file"
        case _:
            return f"can't be read ({os.strerror(error.errno or 0).lower()})"


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


_MAX_NAMES = 1000


def names_beside(path: Path) -> list[str]:
    """The files of a path's kind, by their endings, that lie where it would; none where that can't be looked at."""
    endings = (".yaml", ".yml") if path.suffix in (".yaml", ".yml") else (path.suffix,)
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MAX_NAMES) if entry.name.endswith(endings)]
    except (OSError, ValueError):
        return []
    return sorted(names) if path.suffix else []


# host volumes ---------------------------------------------------------------------------------------------------------


def is_system_path(path: Path, project: Iterable[str] = ()) -> bool:
    """Return whether a path is one of this machine, and not of a project in such a folder, as Jenkins has them.

    ``project`` has the folders of the project, without links.
    """
    text = str(path)
    return text == "/" or (_is_below(text, SYSTEM_PATHS) and not any(_is_in_project(text, top) for top in project))


def _is_in_project(path: str, top: str) -> bool:
    is_of_machine = top in ("/", *SYSTEM_PATHS) or _is_never_read(top)
    return not is_of_machine and is_inside(top, resolve(path))


def _is_never_read(text: str) -> bool:
    return _is_below(text, _NEVER_READ) and not _is_below(text, _IN_MEMORY)


def _is_below(text: str, folders: tuple[str, ...]) -> bool:
    return any(text == folder or text.startswith(folder + "/") for folder in folders)


# output ---------------------------------------------------------------------------------------------------------------


def write_folder(folder: Path, texts: Mapping[str, str], *, mark: str, is_all: bool = True) -> None:
    """Write files into a folder, each whole or not at all; if these are all, remove earlier files of ours.

    A file is ours when its first line is ``mark``: nothing else in the folder is touched, nor replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in texts:
        path = folder / name
        # A folder can't be replaced anyway, which is the error then.
        is_folder = path.is_dir() and not path.is_symlink()
        if os.path.lexists(path) and not is_folder and not _is_marked(path, mark):
            raise FileExistsError(errno.EEXIST, f"it has another '{name}', which would be lost", str(path))
    write_files({folder / name: f"{mark}\n{text}" for name, text in texts.items()}, errors="backslashreplace")
    for path in sorted(folder.glob("*.yaml")):
        if is_all and path.name not in texts and _is_marked(path, mark):
            path.unlink()


def _is_marked(path: Path, mark: str) -> bool:
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as stream:
        return stream.readline().rstrip("\n") == mark
