"""Copying files into and out of a container, as archives that ``tar`` in the container reads and writes.

Owns which path becomes which, as for ``docker cp``, and what is taken from an archive of a container: ordinary files
and folders below the target, with their modes and times. Must not believe the archive: a container can send any.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from composeplat.diagnostics import ComposeplatError, printable, quoted
from composeplat.system.beneath import Escape, FolderWriter, split_name

#: What a broken archive, or one that is none, makes of the reader.
_BROKEN = (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError)
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_MAX_EXTENDED_BYTES = 1024 * 1024


class _Member(tarfile.TarInfo):
    """A member of an archive of a container: the library would read an extended header of any size into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > _MAX_EXTENDED_BYTES:
            raise tarfile.TarError("a header is too large")
        return found


class BrokenArchive(ComposeplatError):
    """What a container sent is no archive, or ends too early."""

    @property
    def is_cut_off(self) -> bool:
        """Whether it ended too early."""
        return isinstance(self.__cause__, tarfile.ReadError) and "unexpected end" in str(self.__cause__)


@dataclass(slots=True)
class Copied:
    files: int = 0
    size: int = 0
    omitted: list[str] = field(default_factory=list)
    """Links and devices."""


def split_place(text: str) -> tuple[str, str]:
    """Split ``SERVICE:PATH``; a path of this machine has no service, and may begin with ``.`` or ``/``."""
    service, colon, path = text.partition(":")
    is_local = not colon or not service or text.startswith((".", "/", "~")) or "/" in service
    return ("", text) if is_local else (service, path)


def absolute_in_container(path: str) -> str:
    """A path in a container is relative to its root; a final ``/`` or ``/.`` keeps its meaning."""
    return path if path.startswith("/") else f"/{path}"


# out of a container ---------------------------------------------------------------------------------------------------


def pack_args(path: str) -> tuple[str, ...]:
    """The command that writes a path as an archive; of a path that ends in ``/.`` the content."""
    if is_content(path):
        return ("tar", "-cf", "-", "-C", posixpath.normpath(path), ".")
    folder, name = posixpath.split(posixpath.normpath(path))
    return ("tar", "-cf", "-", "-C", folder, f"./{name}" if name else ".")


def is_content(path: str) -> bool:
    """Return whether a path means the content of a folder, and not the folder."""
    return path == "." or path.endswith("/.")


def unpack(archive: IO[bytes], source: str, target: str | Path) -> Copied:
    """Write an archive of a container to a path here, as ``docker cp`` names it: a final slash is that of a folder."""
    copied = Copied()
    try:
        with tarfile.open(fileobj=archive, mode="r|", tarinfo=_Member) as tar:
            first = tar.next()
            if first is None:
                return copied
            _refuse_link(first, source)
            folder, prefix = _place(first, source, target)
            writer = FolderWriter(folder)
            try:
                _write_all(tar, first, _renamer(source, prefix), writer, copied)
            finally:
                writer.close()
    except Escape as error:
        raise ComposeplatError(
            f"the container sent a file that lies outside {quoted(source)}: {quoted(str(error))}"
        ) from error
    except _BROKEN as error:
        if isinstance(error, tarfile.ReadError) and not copied.files:
            return copied
        reason = "too many headers follow each other" if isinstance(error, RecursionError) else error
        raise BrokenArchive(f"the archive that the container sent is broken: {reason}") from error
    except OSError as error:
        raise ComposeplatError(f"can't write below {quoted(str(target))}: {error.strerror or error}") from error
    return copied


def _refuse_link(first: tarfile.TarInfo, source: str) -> None:
    if first.issym() and not is_content(source):
        path = posixpath.normpath(source)
        leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(path), first.linkname))
        message = f"{quoted(printable(path))} is a link in the container, which is not copied"
        raise ComposeplatError(message, f"copy what it leads to: {quoted(printable(leads_to))}")


def _place(first: tarfile.TarInfo, source: str, given: str | Path) -> tuple[Path, tuple[str, ...]]:
    """The folder to write below, and the name there that the source gets; empty for the folder itself."""
    name, target = posixpath.basename(posixpath.normpath(source)), Path(given)
    if target.is_dir():
        return target, () if is_content(source) or not name else (name,)
    if first.isdir():
        if target.exists():
            raise ComposeplatError(f"{quoted(str(target))} is a file, and {quoted(source)} is a folder")
        return target.parent, (target.name,)
    if str(given).endswith((os.sep, f"{os.sep}.")) or not target.parent.is_dir():
        raise ComposeplatError(f"there is no folder {quoted(str(target if target.parent.is_dir() else target.parent))}")
    return target.parent, (target.name,)


def _renamer(source: str, prefix: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return the function from a name in the archive to the steps of its path."""
    name = "" if is_content(source) else posixpath.basename(posixpath.normpath(source))

    def rename(text: str) -> tuple[str, ...]:
        steps = split_name(text)
        if name and steps[:1] != (name,):
            raise Escape(text)
        return (*prefix, *(steps[1:] if name else steps))

    return rename


def _write_all(
    tar: tarfile.TarFile,
    first: tarfile.TarInfo,
    rename: Callable[[str], tuple[str, ...]],
    writer: FolderWriter,
    copied: Copied,
) -> None:
    written: set[tuple[str, ...]] = set()
    made: dict[tuple[str, ...], tarfile.TarInfo] = {}
    for member in _members(tar, first):
        steps = rename(member.name)
        if member.isdir():
            if steps and writer.make_folder(steps, member.mode):
                made[steps] = member
        elif member.isreg() and steps:
            content = tar.extractfile(member)
            if content is not None:
                _write(writer, steps, content, (member.mode, member.mtime), copied)
                written.add(steps)
        elif member.islnk() and steps and rename(member.linkname) in written:
            with writer.open_file(rename(member.linkname)) as content:
                found = os.fstat(content.fileno())
                _write(writer, steps, content, (found.st_mode, found.st_mtime), copied)
        else:
            copied.omitted.append(member.name)
    # What is written in a folder changes its time, and needs its permissions: those below others first.
    for steps in sorted(made, key=len, reverse=True):
        writer.finish_folder(steps, made[steps].mode, made[steps].mtime)


def _members(tar: tarfile.TarFile, first: tarfile.TarInfo) -> Iterator[tarfile.TarInfo]:
    yield first
    while (member := tar.next()) is not None:
        # Else the reader remembers all of them.
        tar.members = []  # type: ignore[attr-defined]  # its type has no attributes
        yield member


def _write(
    writer: FolderWriter, steps: tuple[str, ...], content: IO[bytes], attributes: tuple[int, float], copied: Copied
) -> None:
    writer.write_file(steps, content, *attributes)
    copied.files += 1
    copied.size += content.tell()


# into a container -----------------------------------------------------------------------------------------------------


def unpack_args(folder: str) -> tuple[str, ...]:
    return ("tar", "-xf", "-", "-C", folder)


def place_in_container(source: Path, target: str, *, content_only: bool, is_folder: bool) -> tuple[str, str]:
    """The folder of the container to write below, and the name there; empty for the folder itself."""
    if is_folder:
        return target, "" if content_only else Path(os.path.abspath(source)).name
    folder, name = posixpath.split(posixpath.normpath(target))
    return folder, name


def pack(source: Path, name: str, archive: IO[bytes]) -> Copied:
    """Write a file or folder of this machine as an archive; links stay links, and belong to nobody here."""
    try:
        return _pack(source, name, archive)
    except BrokenPipeError:
        raise
    except OSError as error:
        path = printable(os.fsdecode(error.filename or source))
        raise ComposeplatError(f"can't read '{path}': {error.strerror or error}") from error


def _pack(source: Path, name: str, archive: IO[bytes]) -> Copied:
    copied = Copied()
    with tarfile.open(fileobj=archive, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path, relative in _walk(Path(os.path.realpath(source))):
            # To GNU tar, a file whose name ends with a slash is a folder.
            info = tar.gettarinfo(path, arcname=posixpath.join("./", name, relative).rstrip("/"))
            if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
                copied.omitted.append(relative)
                continue
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            if not info.isreg():
                tar.addfile(info)
                continue
            with open(path, "rb") as content:
                tar.addfile(info, content)
            copied.files += 1
            copied.size += info.size
    return copied


def _walk(top: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths at and below a path, each with its name relative to it; folders first, in order."""
    pending = [("", os.fspath(top))] if stat.S_ISDIR(os.stat(top).st_mode) else []
    yield str(top), ""
    while pending:
        relative, folder = pending.pop()
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            name = posixpath.join(relative, entry.name)
            yield entry.path, name
            if entry.is_dir(follow_symlinks=False):
                pending.append((name, entry.path))
