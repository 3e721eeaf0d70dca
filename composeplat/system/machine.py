"""The identity of this machine, its processor, its user, and what the system's own files and programs say.

Owns the id that the system gave the machine. Must not know what is noted with it.
It is apart because state and process notes must not be mistaken for those of another machine.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import re
import socket
import subprocess
import sys
from pathlib import Path

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
#: The hardware's id, in what macOS prints of it.
_PLATFORM_ID = re.compile(r'"IOPlatformUUID" = "([0-9A-Fa-f-]+)"')
#: So that all systems print the same of the same, and no program of the user is taken for one of the system.
_SYSTEM_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC0", "PATH": "/bin:/usr/bin:/sbin:/usr/sbin"}
_TIMEOUT_S = 10


def architecture() -> str:
    """This machine's processor, as Go names it."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(machine, machine)


def system_machine_id(system: str = sys.platform) -> str:
    """The id that the system gave this machine, hashed as it is not to be published; empty if it has none."""
    if system == "darwin":
        found = _PLATFORM_ID.search(printed_by("ioreg", "-rd1", "-c", "IOPlatformExpertDevice"))
        return _hash(found[1]) if found else ""
    for path in _MACHINE_ID_FILES:
        text = read_id(path)
        if text:
            return _hash(text)
    return ""


def machine_id() -> str:
    """The id that the system gave this machine, else one made of its host name."""
    return system_machine_id() or _hash(socket.gethostname())


def user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # The user has no entry, as in a container.
        return f"uid {os.getuid()}"


def read_id(path: Path) -> str:
    """Read an id that the system keeps in a file; empty if there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def printed_by(*command: str) -> str:
    """Run a program of the system, and return what it printed; empty if it fails."""
    try:
        done = subprocess.run(
            command, env=_SYSTEM_ENVIRONMENT, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _hash(text: str) -> str:
    return hashlib.sha256(f"composeplat\0{text}".encode()).hexdigest()[:32]
