"""What the local cluster takes on the disk of this machine, by what it is for.

Owns which folder of the cluster is for what. Must not know what of it is unused: that is the question of ``prune``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from composeplat.local.layout import Layout
from composeplat.system.records import record

#: The folders of each purpose, by the name that people read.
_PURPOSES = {
    "volumes": ("volumes",),
    "images in the registry": ("registry",),
    "images on the node": ("containerd",),
    "images of other registries": ("mirror",),
    "layers of builds": ("builder",),
    "objects": ("etcd",),
    "logs": ("logs", "pod-logs"),
}
#: What can be pulled or built again.
IMAGE_PURPOSES = (
    "images in the registry",
    "images on the node",
    "images of other registries",
    "layers of builds",
)
_MAX_RESERVE_BYTES = 5 * 1024**3
_REST = "other files"
_BLOCK_SIZE = 512


def disk_use(layout: Layout) -> dict[str, int]:
    """Return how many bytes each purpose takes; nothing while there is no cluster."""
    if not layout.folder.is_dir():
        return {}
    found = {purpose: sum(folder_size(layout.folder / name) for name in names) for purpose, names in _PURPOSES.items()}
    known = {name for names in _PURPOSES.values() for name in names}
    found[_REST] = sum(folder_size(path) for path in layout.folder.iterdir() if path.name not in known)
    return found


@record
class Disk:
    """The file system where the cluster's folder is, or will be."""

    size: int
    free: int

    @property
    def reserve(self) -> int:
        """How many bytes should be free: more than the 1 % below which the kubelet ends pods."""
        return max(self.size // 50, min(self.size // 20, _MAX_RESERVE_BYTES))

    @property
    def is_nearly_full(self) -> bool:
        return self.free < self.reserve


def read_disk(layout: Layout) -> Disk:
    folder = next(path for path in (layout.folder, *layout.folder.parents) if path.exists())
    found = shutil.disk_usage(folder)
    return Disk(found.total, found.free)


def image_use(layout: Layout) -> int:
    """Return how many bytes all images and caches take, which the limit is for."""
    return sum(folder_size(layout.folder / folder) for purpose in IMAGE_PURPOSES for folder in _PURPOSES[purpose])


def folder_size(path: Path) -> int:
    """Count what a folder has on disk: a file with several names once, and nothing of another file system."""
    try:
        start = path.lstat()
    except OSError:
        return 0
    sizes = {(start.st_dev, start.st_ino): start.st_blocks}
    for found in _below(path):
        if found.st_dev == start.st_dev:
            sizes[found.st_dev, found.st_ino] = found.st_blocks
    return sum(sizes.values()) * _BLOCK_SIZE


def _below(folder: Path) -> Iterator[os.stat_result]:
    """Yield what is below a folder, through no link; what is deleted in between is left out."""
    pending = [folder]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                yield entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
