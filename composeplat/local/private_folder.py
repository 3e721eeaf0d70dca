"""The cluster's folder, which only its user may enter: programs are run, often as root, with the files in it.

Volumes are open to all users of containers; what keeps other users of the machine out is the folder above them.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from composeplat.diagnostics import ComposeplatError

_ELSEWHERE = "name another folder with COMPOSEPLAT_CLUSTER, in one of your own"


def secure_folder(folder: Path) -> None:
    """Make the folder, or check that this user owns it; only its owner can enter it then."""
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        _check_parents(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not by its name, which could be a link by now.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't use '{folder}' for a cluster: {reason}", _ELSEWHERE) from error
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise ComposeplatError(f"can't use '{folder}' for a cluster: it belongs to another user", _ELSEWHERE)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def _check_parents(folder: Path) -> None:
    """A user who can rename folders above could replace the cluster's."""
    for parent in (folder.parent.resolve(), *folder.parent.resolve().parents):
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ComposeplatError(
                f"can't use '{folder}' for a cluster: any user can write to '{parent}'",
                f"{_ELSEWHERE}; or remove their access: chmod o-w {parent}",
            )
