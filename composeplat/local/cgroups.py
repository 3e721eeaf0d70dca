"""The cgroup that holds the cluster's pods: made before the kubelet starts, removed after all has ended.

Both layouts are known: one tree for all controllers, and one tree for each.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.system.deadline import Deadline, poll

ROOT = Path("/sys/fs/cgroup")
_REMOVE_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.05
_CONTROLLERS = "+cpuset +cpu +io +memory +hugetlb +pids"


def make_cgroups(name: str, root: Path = ROOT) -> None:
    try:
        if (root / "cgroup.controllers").exists():
            _make_unified(root, name)
        else:
            _make_per_controller(root, name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MissingPiece(f"can't make a cgroup for the local cluster below {root}: {reason}") from error


def _make_unified(root: Path, name: str) -> None:
    folder = root / name
    folder.mkdir(exist_ok=True)
    available = (root / "cgroup.controllers").read_text(encoding="utf-8").split()
    for controller in _CONTROLLERS.split():
        if controller[1:] in available:
            for place in (root, folder):
                (place / "cgroup.subtree_control").write_text(controller, encoding="utf-8")


def _make_per_controller(root: Path, name: str) -> None:
    for tree in root.iterdir():
        if tree.is_symlink() or not tree.is_dir() or tree.name == "unified":
            continue
        folder = tree / name
        folder.mkdir(exist_ok=True)
        # A cgroup with an empty set of processors or memory nodes can't have processes.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (folder / setting).exists():
                (folder / setting).write_text((tree / setting).read_text(encoding="utf-8"), encoding="utf-8")


def remove_cgroups(name: str, root: Path = ROOT) -> None:
    """Remove a cgroup and those in it; the kernel may take a moment to let go of processes that have just ended."""
    for top in (root / name, *root.glob(f"*/{name}")):
        poll(partial(_remove, top), Deadline(_REMOVE_TIMEOUT_S), interval_s=_POLL_INTERVAL_S)


def _remove(top: Path) -> bool:
    """Remove what can be removed; return whether nothing is left."""
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not top.exists()
