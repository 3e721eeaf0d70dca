"""The images of other registries in the mirror's cache: listing them with their sizes, and deleting them.

Owns the layout of the cache, which the Go program writes: files named by digests, and for each tag a file with the
digest and the name of the image. Must not know whether the mirror runs: it pulls again what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from composeplat.system.records import record

_KINDS = ("blobs", "manifests", "partial")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: What is not part of a tagged image: images that were pulled by their digest, and transfers that were broken off.
UNTAGGED = "images without a tag"


@record
class CachedImage:
    name: str
    size: int
    files: frozenset[Path]
    """All that it has, also what other images have."""
    tag: Path | None = None

    def last_use(self) -> float:
        """When one of its files was used last: the mirror notes that in their times."""
        return max(map(_time, self.files), default=0.0)


@record
class ImageCache:
    folder: Path

    def images(self) -> list[CachedImage]:
        """List the images by name; a layer counts for the first that has it."""
        counted: set[Path] = set()
        found = []
        for tag, digest, name in self._tags():
            files = frozenset(self._image_files(digest))
            found.append(CachedImage(name, sum(map(_size, files - counted)), files, tag))
            counted |= files
        rest = frozenset(self._files()) - counted
        return [*found, CachedImage(UNTAGGED, sum(map(_size, rest)), rest)] if rest else found

    def delete(self, image: CachedImage) -> None:
        """Delete an image, with the layers that no other one has now."""
        if image.tag is not None:
            image.tag.unlink(missing_ok=True)
        kept = {path for _, digest, _ in self._tags() for path in self._image_files(digest)}
        for path in image.files - kept:
            path.unlink(missing_ok=True)

    def _tags(self) -> list[tuple[Path, str, str]]:
        rows = []
        for path in (self.folder / "tags").glob("*"):
            digest, _, name = _read(path).decode(errors="replace").strip().partition(" ")
            rows.append((path, digest, name))
        return sorted(rows, key=lambda row: row[2])

    def _files(self) -> Iterator[Path]:
        for kind in _KINDS:
            yield from sorted((self.folder / kind).glob("*"))

    def _image_files(self, digest: str) -> set[Path]:
        """The files of an image that are there: of an index, those of the platforms that were pulled."""
        # A hostile registry writes the manifests of its images: what is no digest could be the path of any file.
        if not _DIGEST.fullmatch(digest):
            return set()
        hexadecimal = digest.removeprefix("sha256:")
        manifest = self.folder / "manifests" / hexadecimal
        files = {path for kind in _KINDS if (path := self.folder / kind / hexadecimal).is_file()}
        if manifest in files:
            for entry in _entries(_read(manifest)):
                files |= self._image_files(entry)
        return files


def _entries(kept: bytes) -> list[str]:
    """Parse the digests that a manifest names; its type is on the first line."""
    try:
        document = json.loads(kept.partition(b"\n")[2])
        parts = [document.get("config") or {}, *(document.get("layers") or ()), *(document.get("manifests") or ())]
        return [str(part["digest"]) for part in parts if "digest" in part]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []


def _read(path: Path) -> bytes:
    """Return the content of a file; nothing if the mirror has just deleted it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
