"""Files of an image, read from the layers in its registry without unpacking them.

Owns the order of layers, the marks of deleted files, and limits: a hostile registry costs time up to the deadline, and
no memory. Headers are read block by block, as :mod:`tarfile` would read an extended header of any size into memory.
Must not know registries or what is in the files.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import IO, cast

from composeplat.system.deadline import Deadline

OpenLayer = Callable[[], AbstractContextManager[io.BufferedReader]]

_BLOCK = tarfile.BLOCKSIZE
_WITHOUT_DATA = (
    tarfile.LNKTYPE,
    tarfile.SYMTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
)
_CHUNK = 1024 * 1024
_MAX_FILE_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_DELETED = ".wh."
_HIDES_ALL = ".wh..wh..opq"


def read_files(layers: Iterable[OpenLayer], wanted: Collection[str], deadline: Deadline) -> dict[str, bytes]:
    """Read files by their paths without a slash before, from the upper layers to the lower; a missing file is left out.

    Raises ValueError for a layer that can't be read, and for a path that is no plain file.
    """
    found: dict[str, bytes] = {}
    left = set(wanted)
    for open_layer in layers:
        if not left:
            break
        with open_layer() as stream:
            layer = _Layer(left, deadline)
            try:
                layer.read(_decompressed(stream))
            except (EOFError, zlib.error, tarfile.TarError) as error:
                raise ValueError(f"a layer can't be read: {error}") from error
        found |= layer.files
        left -= {*layer.files, *layer.hidden}
    return found


def _decompressed(stream: io.BufferedReader) -> IO[bytes]:
    start = stream.peek(len(_ZSTD))
    if start.startswith(_ZSTD):
        raise ValueError("a layer is compressed with zstd")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if start.startswith(_GZIP) else stream


class _Layer:
    """Reads one layer until it has the wanted files, else to its end."""

    def __init__(self, wanted: Collection[str], deadline: Deadline) -> None:
        self._wanted = frozenset(wanted)
        self._deadline = deadline
        self.files: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        """Files of lower layers that this layer deletes."""

    def read(self, stream: IO[bytes]) -> None:
        while len(self.files) < len(self._wanted):
            if not self._deadline.remaining_s:
                raise TimeoutError
            block = stream.read(_BLOCK)
            if not block.strip(b"\0"):
                return
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            size = 0 if entry.type in _WITHOUT_DATA else entry.size
            path = posixpath.normpath(entry.name).lstrip("/")
            self._mark_deleted(path)
            if entry.type == tarfile.XHDTYPE:
                _check_header(_read_small(stream, entry, path))
            elif path in self._wanted:
                self.files[path] = _read_small(stream, entry, path)
            else:
                self._skip(stream, size)
            self._skip(stream, -size % _BLOCK)

    def _mark_deleted(self, path: str) -> None:
        folder, name = posixpath.split(path)
        if name == _HIDES_ALL:
            self._hide_below(folder)
        elif name.startswith(_DELETED):
            deleted = posixpath.join(folder, name.removeprefix(_DELETED))
            self._hide_below(deleted)
            self.hidden |= {deleted} & self._wanted

    def _hide_below(self, folder: str) -> None:
        self.hidden |= {path for path in self._wanted if path.startswith(f"{folder}/")}

    def _skip(self, stream: IO[bytes], size: int) -> None:
        while size > 0:
            chunk = stream.read(min(size, _CHUNK))
            if not chunk:
                raise EOFError("it ends too early")
            size -= len(chunk)
            if not self._deadline.remaining_s:
                raise TimeoutError


def _check_header(content: bytes) -> None:
    """Refuse a size of 8 GiB and more, which the entry after its extended header does not have."""
    if b" size=" in content:
        raise ValueError("a layer has a file of 8 GiB or more")


def _read_small(stream: IO[bytes], entry: tarfile.TarInfo, path: str) -> bytes:
    if entry.type in _WITHOUT_DATA or not 0 <= entry.size <= _MAX_FILE_BYTES:
        raise ValueError(f"{path} is no plain file, or a large one")
    content = stream.read(entry.size)
    if len(content) < entry.size:
        raise EOFError("it ends too early")
    return content
