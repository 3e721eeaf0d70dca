"""The paths of a machine that no cluster has, and what to write in place of their mounts.

Owns these hints. Must not know files or the model: paths come in, texts go out.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath

SHARED_MEMORY = os.path.join("/dev", "shm")
NO_SYSTEM_PATH = "a cluster has no path of this machine: use a named volume, or a folder of the project"
CLOCK_FILES = ("/etc/localtime", "/etc/timezone")
ENGINE_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock")
_NO_SOCKET = "there is no Docker socket in a cluster; in place of a proxy such as Traefik, use 'endpoints'"
_TIME_ZONE = "set the time zone by a variable: environment: {TZ: Europe/Berlin}"


def instead_of_system_path(source: str, target: str) -> str:
    if PurePosixPath(source).name in ENGINE_SOCKETS:
        return _NO_SOCKET
    if source == SHARED_MEMORY:
        return f"for the pod's own memory, mount {{type: tmpfs, target: {target}}}"
    return f"leave it out, and {_TIME_ZONE}" if source in CLOCK_FILES else NO_SYSTEM_PATH


def without_mount(target: object) -> str:
    """Return what to do where a mount was left out."""
    return _TIME_ZONE if target in CLOCK_FILES else "check that the service works without it"
