"""Volumes whose size holds: each is a file with a file system of that size, mounted in the cluster's namespaces.

Owns these files and mounts; the mounts end with the cluster, so a start makes them again before any pod runs.
Must not know claims. Kernels and file systems with project quotas are rare, and loop devices are everywhere.
The file has all its blocks from the beginning: a file system in a file with holes breaks when the disk is full.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

from composeplat.system.processes import python_module

_FILE, _MOUNT = "disk", "mount"
_SUPERBLOCK = 1024
_TIMEOUT_S = 120.0
#: ext4 makes no file system in less.
_MIN_BYTES = 1024 * 1024


def data_folder(folder: Path) -> Path:
    """The folder that pods see: without the mount it is not there, so no pod ever writes beside its data.

    It has no ``lost+found``, which some programs take for data.
    """
    return folder / _MOUNT / "data"


def make(folder: Path, size: int) -> None:
    """Make and mount a volume; one that is there already stays as it is."""
    disk = folder / _FILE
    if not disk.exists():
        folder.mkdir(parents=True, exist_ok=True)
        staged = folder / f"{_FILE}.new"
        _allocate(staged, max(size, _MIN_BYTES))
        # It writes nothing later that would make holes, and holes that it makes now are filled.
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0", str(staged))
        _allocate(staged, staged.stat().st_size)
        staged.rename(disk)
    _mount(folder)
    data = data_folder(folder)
    data.mkdir(exist_ok=True)
    data.chmod(0o755)


def grow(folder: Path, size: int) -> None:
    """Grow a volume: under running pods where the kernel lets this user do so, else while no pod has it."""
    disk = folder / _FILE
    _allocate(disk, size)
    device = _loop_device(disk)
    _run("losetup", "--set-capacity", device)
    try:
        _run("resize2fs", device)
    except OSError:
        _grow_unmounted(folder)


def _grow_unmounted(folder: Path) -> None:
    """Two mounts of one file by different devices would destroy it, so nothing may be left of the first."""
    disk, place = folder / _FILE, folder / _MOUNT
    if _count_mounts(place) > 1:
        raise OSError("it can grow when no pod uses it: stop its pods, or the cluster")
    _run("umount", str(place))
    try:
        if _loop_device(disk):
            raise OSError("it is still in use")
        _fit(disk)
    finally:
        _mount(folder)


def _fit(disk: Path) -> None:
    """Check the file system of a file, and make it as large as the file."""
    _run("e2fsck", "-f", "-p", str(disk), allowed=(0, 1))
    _run("resize2fs", str(disk))


def _is_shorter(disk: Path) -> bool:
    """Return whether a file has grown, and its file system has not: its superblock has the number of blocks."""
    with disk.open("rb") as stream:
        stream.seek(_SUPERBLOCK)
        head = stream.read(28)
    blocks, power = (int.from_bytes(head[start : start + 4], "little") for start in (4, 24))
    return disk.stat().st_size >= (blocks + 1) * (1024 << power)


def _loop_device(disk: Path) -> str:
    """The device of a file that is mounted somewhere; empty if there is none."""
    return _run("losetup", "--noheadings", "--output", "NAME", "--associated", str(disk)).strip()


def _count_mounts(place: Path) -> int:
    """Count the mounts of a file system in this namespace: each pod has one more."""
    device = place.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return sum(line.split()[2] == number for line in lines)


def remove(folder: Path) -> None:
    if os.path.ismount(folder / _MOUNT):
        _run("umount", "--lazy", str(folder / _MOUNT))
    shutil.rmtree(folder, ignore_errors=True)


def mount_commands(volumes: Path, python: str) -> list[list[str]]:
    """Return the command that mounts all volumes, if there are any, before the parts start."""
    command = [*python_module(python, "composeplat.local.sized_volumes"), str(volumes)]
    return [command] if any(volumes.glob(f"*/{_FILE}")) else []


def mount_all(volumes: Path) -> list[str]:
    """Mount all volumes, and return the failures: the pods of such a volume don't start, and those of others do."""
    problems = []
    for disk in sorted(volumes.glob(f"*/{_FILE}")):
        if os.path.ismount(disk.parent / _MOUNT):
            continue
        try:
            if _is_shorter(disk):
                _fit(disk)
            else:
                _run("e2fsck", "-p", str(disk), allowed=(0, 1))
            _mount(disk.parent)
        except OSError as error:
            problems.append(f"{disk.parent.name} can't be mounted: {error}")
    return problems


def _mount(folder: Path) -> None:
    place = folder / _MOUNT
    if not os.path.ismount(place):
        place.mkdir(exist_ok=True)
        _run("mount", "-t", "ext4", "-o", "loop", str(folder / _FILE), str(place))


def _allocate(path: Path, size: int) -> None:
    """Give a file all its blocks; without the space for them it keeps the size that it had."""
    before = path.stat().st_size if path.exists() else 0
    if size - before > shutil.disk_usage(path.parent).free:
        # The kernel would fill the disk before it says so.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError:
        os.ftruncate(descriptor, before)
        raise
    finally:
        os.close(descriptor)


def _run(*args: str, allowed: tuple[int, ...] = (0,)) -> str:
    """Run a program, and return its output; an error is an OSError, as that of a file is."""
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise OSError(f"{args[0]} is needed: install the package e2fsprogs") from error
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{args[0]} did not end") from error
    if done.returncode not in allowed:
        raise OSError(f"{args[0]} failed: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout


def main() -> None:
    for problem in mount_all(Path(sys.argv[1])):
        sys.stderr.write(f"{problem}\n")


if __name__ == "__main__":
    main()
