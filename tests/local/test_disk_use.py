"""The disk use of a cluster: which folder counts for which purpose, and which files count once or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from composeplat.local.disk_use import Disk, disk_use, read_disk
from composeplat.local.layout import Layout

MIB = 1024 * 1024


def layout(folder: Path) -> Layout:
    return Layout(folder=folder / "cluster", run=folder / "run")


def write(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
    return path


def rounded(used: dict[str, int]) -> dict[str, int]:
    return {purpose: round(size / MIB) for purpose, size in used.items() if size >= MIB}


def test_disk_use(tmp_path: Path) -> None:
    """Each folder counts for its purpose, links are not followed, and a file with two names counts once."""
    cluster = tmp_path / "cluster"
    data = write(cluster / "volumes" / "data" / "deep" / "file", 3 * MIB)
    data.with_name("again").hardlink_to(data)
    write(cluster / "registry" / "blob", 2 * MIB)
    write(cluster / "logs" / "a.log", MIB)
    write(cluster / "pod-logs" / "pod" / "a.log", MIB)
    write(cluster / "anything", MIB)
    (cluster / "volumes" / "link").symlink_to(write(tmp_path / "elsewhere" / "file", 9 * MIB).parent)

    expected = {"volumes": 3, "images in the registry": 2, "logs": 2, "other files": 1}
    assert rounded(disk_use(layout(tmp_path))) == expected


def test_holes_take_nothing(tmp_path: Path) -> None:
    """A file takes what it has on the disk, which can be less than its length."""
    sparse = write(tmp_path / "cluster" / "volumes" / "sparse", 1)
    os.truncate(sparse, 1024 * MIB)

    assert rounded(disk_use(layout(tmp_path))) == {}


def test_without_a_cluster(tmp_path: Path) -> None:
    """Where no cluster was started, nothing is taken, and the free space is that of the disk where it would be."""
    assert disk_use(layout(tmp_path)) == {}
    assert read_disk(layout(tmp_path)).free > 0


@pytest.mark.parametrize(
    ("size", "reserve"),
    [(1000 * MIB, 50 * MIB), (200 * 1024 * MIB, 5 * 1024 * MIB), (1000 * 1024 * MIB, 20 * 1024 * MIB)],
)
def test_the_reserve(size: int, reserve: int) -> None:
    """A twentieth of the disk should be free, of a large one 5 GiB, and always more than the kubelet's 1 %."""
    assert Disk(size, reserve).reserve == reserve
    assert [Disk(size, free).is_nearly_full for free in (reserve - 1, reserve)] == [True, False]
