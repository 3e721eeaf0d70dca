"""The cluster's folders, which only its user may enter: programs are run, often as root, with the files in them.

Owns who may own them, what lies in them, the folders above, and their removal. Volumes are open to all users of
containers: the folder above them keeps other users of the machine out.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import ComposeplatError, printable
from composeplat.local.layout import BUILD_USER

_ELSEWHERE = "name another folder with COMPOSEPLAT_CLUSTER, in one of your own"
_ALL_USERS = 2**32 - 1
#: Quotes of configuration files, controls, and what separates the options and layers of a mount.
_IMPOSSIBLE = re.compile(r"[\"\\:,\x00-\x1f\x7f]")


def check_path(folder: Path) -> None:
    """Refuse a path that the configuration of containerd, or its mounts of layers, can't have."""
    found = _IMPOSSIBLE.search(str(folder))
    if found:
        raise _unusable(folder, f"its path has a {found[0]!r}, which containerd can't have in it")


def secure_folder(folder: Path, environment: Mapping[str, str]) -> None:
    """Make the folder, or check that this user owns it, and that nobody else can replace it or anything in it."""
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        _check_parents(folder, environment)
        make_private(folder)
        _check_entries(folder)
    except OSError as error:
        raise _unusable(folder, (error.strerror or str(error)).lower()) from error


def make_private(folder: Path) -> None:
    """Make a folder, or close one of this user, or an empty one of the builder: only its owner can enter it then."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not by its name, which could be a link by now.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _unusable(folder, (error.strerror or str(error)).lower()) from error
    try:
        owner = os.fstat(descriptor).st_uid
        if owner == BUILD_USER and not os.listdir(descriptor):
            # The builder's of the run before, emptied: what is mounted there can't be removed.
            os.fchown(descriptor, os.geteuid(), os.getegid())
        elif owner != os.geteuid():
            raise _unusable(folder, "it belongs to another user")
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def _unusable(folder: Path, reason: str, fix: str = "") -> ComposeplatError:
    hint = f"{_ELSEWHERE}; or {fix}" if fix else _ELSEWHERE
    return ComposeplatError(f"can't use '{printable(str(folder))}' for a cluster: {reason}", hint)


def _check_entries(folder: Path) -> None:
    """Another user may have left a link to anywhere here while the folder was open."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_uid not in (os.geteuid(), BUILD_USER):
                raise _unusable(
                    folder, f"'{entry.name}' in it belongs to another user", "remove it, if it is not yours"
                )


def _check_parents(folder: Path, environment: Mapping[str, str]) -> None:
    """A user who can rename folders above could replace the cluster's."""
    users, groups = _trusted(environment)
    parent = folder.parent.resolve()
    for above in (parent, *parent.parents):
        found = above.stat()
        if found.st_uid not in users and not _is_nobody_here(found.st_uid):
            raise _unusable(folder, f"the owner of '{above}' can replace it")
        if found.st_mode & stat.S_ISVTX:
            continue
        if found.st_mode & stat.S_IWOTH:
            raise _unusable(folder, f"any user can write to '{above}'", f"remove their access: chmod o-w {above}")
        if found.st_mode & stat.S_IWGRP and found.st_gid not in groups:
            raise _unusable(folder, f"a group can write to '{above}'", f"remove its access: chmod g-w {above}")


def _trusted(environment: Mapping[str, str]) -> tuple[set[int], set[int]]:
    """Return the users and groups that can change everything here anyway: root, this user, and who has used sudo."""
    users, groups = {0, os.geteuid()}, {0, os.getegid()}
    if os.geteuid() == 0:
        for known, name in ((users, "SUDO_UID"), (groups, "SUDO_GID")):
            if environment.get(name, "").isdecimal():
                known.add(int(environment[name]))
    return users, groups


def _is_nobody_here(user: int) -> bool:
    """Return whether a number stands for users outside this user namespace: none of them is in it."""
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False
    return user == overflow and sum(int(line.split()[2]) for line in lines) < _ALL_USERS


def remove_folder(folder: Path, last: str = "") -> None:
    """Remove a folder that containers may have filled; a file with the name ``last`` only once all else is gone.

    Before Python 3.13, its own function fails where a thousand folders are in one another.
    """
    # Without a last file, the folder is one of containers: it may be a link, or have more entries than a command takes.
    entries = [path for path in folder.iterdir() if path.name != last] if last and folder.is_dir() else []
    for paths in filter(None, (entries, [folder])):
        command = ["rm", "-rf", "--", *map(str, paths)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
