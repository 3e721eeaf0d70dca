"""The cgroup that holds the cluster's pods: made before the kubelet starts, removed after all has ended.

Both layouts are known: one tree for all controllers (cgroup version 2), and one tree for each (version 1).
A machine whose init mounts neither, such as Debian's sysvinit, gets version 2.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from functools import partial
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.system.deadline import Deadline, poll

ROOT = Path("/sys/fs/cgroup")
_REMOVE_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.05
_CONTROLLERS = "+cpuset +cpu +io +memory +hugetlb +pids"
_REQUIRED_CONTROLLERS = ("cpu", "memory", "pids")


def check_cgroups(root: Path = ROOT) -> None:
    """Raise an error if the cgroup can't be made in a unified tree; others may have a root that is read-only."""
    if not (root / "cgroup.controllers").exists():
        return
    if not os.access(root, os.W_OK):
        raise MissingPiece(
            f"the local cluster makes a cgroup, and can't write to {root}",
            "in a container, run it privileged, with the cgroups of its host",
        )
    _find_controllers(root)


def make_cgroups(name: str, root: Path = ROOT, search_path: str = os.defpath) -> None:
    try:
        if not any(root.iterdir()):
            _mount_unified(root, search_path)
        if (root / "cgroup.controllers").exists():
            _make_unified(root, name)
        else:
            _make_per_controller(root, name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MissingPiece(f"can't make a cgroup for the local cluster below {root}: {reason}") from error


def _mount_unified(root: Path, search_path: str) -> None:
    command = ["mount", "-t", "cgroup2", "cgroup2", str(root)]
    done = subprocess.run(
        command, env={"PATH": search_path}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingPiece(f"no cgroups are mounted at {root}, and mounting them failed: {done.stderr.strip()}")


def _find_controllers(root: Path) -> list[str]:
    """Return the controllers of a unified tree, or raise an error if one of ours is missing."""
    available = (root / "cgroup.controllers").read_text(encoding="utf-8").split()
    missing = [controller for controller in _REQUIRED_CONTROLLERS if controller not in available]
    if missing:
        raise MissingPiece(
            f"the local cluster needs cgroup controllers that are missing in {root}: {', '.join(missing)}",
            "enable them on the kernel's command line, for example with cgroup_enable=memory; "
            "in a container, give it the cgroups of its host",
        )
    return available


def _make_unified(root: Path, name: str) -> None:
    available = _find_controllers(root)
    folder = root / name
    folder.mkdir(exist_ok=True)
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
