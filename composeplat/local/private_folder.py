"""A cluster's folder, which must be its user's alone: programs are run, often as root, with what lies in it.

Volumes are open to all users of containers; what keeps other users of the machine out is the folder above them.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from composeplat.diagnostics import ComposeplatError

_ELSEWHERE = "name another folder with COMPOSEPLAT_CLUSTER, in one of your own"


def close_folder(folder: Path) -> None:
    """Make the folder, or see that it is ours, and close it to others."""
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        _check_parents(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not by its name, which could be a link by now.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't use '{folder}' for a cluster: {reason}", _ELSEWHERE) from None
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise ComposeplatError(f"can't use '{folder}' for a cluster: it belongs to another user", _ELSEWHERE)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def _check_parents(folder: Path) -> None:
    """Whoever may rename things in a folder above could put another in the cluster's place."""
    for parent in (folder.parent.resolve(), *folder.parent.resolve().parents):
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ComposeplatError(
                f"can't use '{folder}' for a cluster: anybody can write in '{parent}'",
                f"{_ELSEWHERE}; or close that: chmod o-w {parent}",
            )
