"""What the local cluster takes on the disk of this machine, by what it is for.

Owns which folder of the cluster is for what. Must not know what of it is unused: that is the question of ``prune``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from composeplat.local.layout import Layout

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


def free_space(layout: Layout) -> int:
    """Return how many bytes are free where the cluster's folder is, or will be."""
    folder = next(path for path in (layout.folder, *layout.folder.parents) if path.exists())
    return shutil.disk_usage(folder).free


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
