"""The identity of this machine.

Owns the id that the system gave the machine. Must not know what is noted with it.
It is apart because state and process notes must not be mistaken for those of another machine.
"""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def system_machine_id() -> str:
    """The id that the system gave this machine, hashed as it is not to be published; empty if it has none."""
    for path in _MACHINE_ID_FILES:
        text = read_id(path)
        if text:
            return _hash(text)
    return ""


def machine_id() -> str:
    """The id that the system gave this machine, else one made of its host name."""
    return system_machine_id() or _hash(socket.gethostname())


def read_id(path: Path) -> str:
    """Read an id that the system keeps in a file; empty if there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _hash(text: str) -> str:
    return hashlib.sha256(f"composeplat\0{text}".encode()).hexdigest()[:32]
