"""The images in the registry's folder: which of them nothing uses, and deleting those.

Owns the layout of that folder. The registry keeps nothing of it in memory, so images can be deleted while it runs; its
API deletes nothing. Must not know who uses an image: that is given.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from composeplat.system.records import record

#: What is younger may belong to a push that has not ended.
_MIN_AGE_S = 600.0
#: The same for layers that no image has: a push sends its manifest last, and may take long.
_MIN_LAYER_AGE_S = 86_400.0


@record
class UnusedImages:
    """Manifests of one repository that nothing uses, and the blobs that only they need; or blobs of no repository."""

    repository: str
    """Empty for blobs that no manifest names."""
    count: int
    size: int
    folders: tuple[Path, ...] = field(repr=False)


class RegistryStorage:
    def __init__(self, folder: Path) -> None:
        root = folder / "docker" / "registry" / "v2"
        self.blobs, self.repositories = root / "blobs" / "sha256", root / "repositories"
        self.newest = time.time() - _MIN_AGE_S

    def unused(self, used: set[tuple[str, str]], *, with_tags: bool) -> list[UnusedImages]:
        """List the images that are not among those used: pairs of a repository and a tag or digest.

        Images with a tag count as used, unless those are asked for too.
        """
        needed: dict[str, set[str]] = {}
        for name in self._names():
            tags = self._tags(name)
            roots = {digest for tag, digest in tags.items() if not with_tags or (name, tag) in used}
            roots |= {folder.name for folder in self._revisions(name) if not self._is_old(folder)}
            needed[name] = self._closure(roots | {version for repository, version in used if repository == name})
        taken = {digest for name in needed for digest in self._with_layers(needed[name])}
        found = []
        for name, digests in needed.items():
            unused = self._unused_of(name, digests, taken)
            taken |= {folder.name for folder in unused.folders}
            found.append(unused)
        return [unused for unused in (*found, self._unnamed(taken)) if unused.count]

    def delete(self, unused: UnusedImages) -> None:
        """Delete listed images, except what a push since then needs again: it finds old layers, and leaves them."""
        recent = {folder.name for name in self._names() for folder in self._revisions(name) if not self._is_old(folder)}
        needed = self._with_layers(self._closure(recent))
        for folder in unused.folders:
            if _digest_of(folder) not in needed:
                shutil.rmtree(folder, ignore_errors=True)

    def _unused_of(self, name: str, needed: set[str], taken: set[str]) -> UnusedImages:
        """Find the unused manifests of a repository; a blob of several is that of the first."""
        manifests = [folder for folder in self._revisions(name) if folder.name not in needed]
        tags = self.repositories / name / "_manifests" / "tags"
        gone = {folder.name for folder in manifests}
        old_tags = [tags / tag for tag, digest in self._tags(name).items() if digest in gone]
        blobs = [self._blob(digest).parent for digest in sorted(self._with_layers(gone) - taken)]
        blobs = [blob for blob in blobs if blob.exists() and self._is_old(blob)]
        links = [self.repositories / name / "_layers" / "sha256" / blob.name for blob in blobs]
        return UnusedImages(name, len(manifests), _size(blobs), (*old_tags, *manifests, *links, *blobs))

    def _unnamed(self, taken: set[str]) -> UnusedImages:
        """Find the blobs that no manifest names: a push that broke off leaves them, and a deletion that was killed."""
        newest = time.time() - _MIN_LAYER_AGE_S
        found = [blob for blob in self.blobs.glob("*/*") if blob.name not in taken and blob.stat().st_mtime < newest]
        return UnusedImages("", len(found), _size(found), tuple(found))

    def _names(self) -> list[str]:
        found = self.repositories.glob("**/_manifests")
        return sorted(folder.parent.relative_to(self.repositories).as_posix() for folder in found)

    def _revisions(self, name: str) -> Iterator[Path]:
        yield from (self.repositories / name / "_manifests" / "revisions" / "sha256").glob("*")

    def _tags(self, name: str) -> dict[str, str]:
        """The tags of a repository -> their digests."""
        links = (self.repositories / name / "_manifests" / "tags").glob("*/current/link")
        return {link.parent.parent.name: _hex(link.read_text(encoding="utf-8")) for link in links}

    def _closure(self, digests: set[str]) -> set[str]:
        """Add the manifests of the platforms that an index names."""
        found = {_hex(digest) for digest in digests}
        return found | {_hex(entry["digest"]) for digest in found for entry in self._manifest(digest, "manifests")}

    def _with_layers(self, digests: set[str]) -> set[str]:
        layers = {_hex(entry["digest"]) for digest in digests for entry in self._manifest(digest, "layers", "config")}
        return digests | layers

    def _manifest(self, digest: str, *keys: str) -> Iterator[dict[str, Any]]:
        """Yield what a manifest names; nothing where there is none."""
        try:
            manifest = json.loads(self._blob(digest).read_bytes())
        except (OSError, ValueError):
            return
        for key in keys:
            found = manifest.get(key) or []
            yield from found if isinstance(found, list) else [found]

    def _blob(self, digest: str) -> Path:
        return self.blobs / digest[:2] / digest / "data"

    def _is_old(self, folder: Path) -> bool:
        """Whether a blob, or the link to a manifest, was not written just now; a push writes an old link again."""
        return max(path.stat().st_mtime for path in (folder, *folder.glob("link"))) < self.newest


def _size(blobs: Iterable[Path]) -> int:
    return sum(path.stat().st_size for blob in blobs for path in blob.glob("data"))


def _digest_of(folder: Path) -> str:
    """Return the digest of a manifest, link or blob by its folder, or the one that a tag has now."""
    try:
        return _hex((folder / "current" / "link").read_text(encoding="utf-8"))
    except OSError:
        return folder.name


def _hex(digest: str) -> str:
    return digest.strip().removeprefix("sha256:")
