"""Which machine this is, and which process on it: what proves that a process noted earlier has ended.

Owns the identity of the machine and of processes. It is apart because the state, the local cluster and ``platform up``
all note processes, and each must not take a process elsewhere for one of its own that has ended.
Must not know what the processes are noted for.

A process id means something only within one boot of one machine and one PID namespace: cloned machines share host
names, and containers share the machine's boot. So a note has all of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


def system_machine_id() -> str:
    """The id that the system gave this machine, hashed as it is not to be published; empty where there is none."""
    for path in _MACHINE_ID_FILES:
        text = _read(path)
        if text:
            return _hashed(text)
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """Names one process for good: where its number means something, the number, and when it began."""

    machine: str
    boot: str
    pid_namespace: str
    pid: int
    started: str | None

    @classmethod
    def of(cls, pid: int) -> Self:
        """The identity of a process of this machine."""
        return cls(
            machine=system_machine_id() or _hashed(socket.gethostname()),
            boot=_read(_BOOT_ID_FILE),
            pid_namespace=_pid_namespace(),
            pid=pid,
            started=start_time(pid),
        )

    @classmethod
    def from_data(cls, data: object) -> Self | None:
        """Read what :meth:`to_data` wrote; none where it is something else, as from an older version."""
        if not isinstance(data, Mapping):
            return None
        pid, started = data.get("pid"), data.get("started")
        places = [data.get(name) for name in ("machine", "boot", "pid_namespace")]
        machine, boot, pid_namespace = (place if isinstance(place, str) else None for place in places)
        if machine is None or boot is None or pid_namespace is None or type(pid) is not int:
            return None
        began = started if isinstance(started, str) else None
        return cls(machine=machine, boot=boot, pid_namespace=pid_namespace, pid=pid, started=began)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_on_this_machine(self) -> bool:
        here = ProcessId.of(os.getpid())
        return bool(self.machine) and self.machine == here.machine

    @property
    def is_visible(self) -> bool:
        """Whether its number means the same here: the machine, the boot and the PID namespace are ours."""
        here = ProcessId.of(os.getpid())
        places = [(one.machine, one.boot, one.pid_namespace) for one in (self, here)]
        return places[0] == places[1] and all(places[0])

    @property
    def has_ended(self) -> bool:
        """Whether it is certain that it has ended. What can't be seen from here may be running."""
        return self.is_visible and (self.started is None or start_time(self.pid) != self.started)

    @property
    def is_running(self) -> bool:
        """Whether it is certain that it runs, and can be asked to end."""
        return self.is_visible and self.started is not None and start_time(self.pid) == self.started

    @property
    def is_this_one(self) -> bool:
        """Whether it is the process that asks."""
        return self.pid == os.getpid() and self.is_running

    @property
    def was_before_reboot(self) -> bool:
        """Whether this machine has started anew since. Copies of a machine may share its id: see who asks."""
        boot = _read(_BOOT_ID_FILE)
        return self.is_on_this_machine and bool(boot) and bool(self.boot) and boot != self.boot


def start_time(pid: int) -> str | None:
    """When a process began, in the kernel's ticks: with its number, it names the process within a boot."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    after_name = text.rpartition(")")[2].split()
    return None if after_name[0] == "Z" else after_name[19]


def _pid_namespace() -> str:
    with contextlib.suppress(OSError):
        return str(_PID_NAMESPACE.readlink())
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _hashed(text: str) -> str:
    return hashlib.sha256(f"composeplat\0{text}".encode()).hexdigest()[:32]
