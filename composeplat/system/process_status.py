"""What the system says of processes: when one started, its session and its name, and which boot this is.

Owns reading it: from ``/proc`` on Linux, and from ``ps`` and ``sysctl`` on other systems, which have no such files.
Must not know why a process is looked at, nor end one.
It is apart because every other module must work the same on Linux and macOS.
"""

from __future__ import annotations

import calendar
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from composeplat.system.machine import printed_by, read_id
from composeplat.system.records import record

_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
#: Fields of ``/proc/PID/stat`` after the name of the program.
_STATE, _SESSION, _START_TIME = 0, 3, 19
_ZOMBIE = "Z"
#: The start of a process as ``ps`` prints it in UTC.
_PS_TIME = "%a %b %d %H:%M:%S %Y"


class ProcessTable(Protocol):
    """The processes of this system; one that has ended, and waits only for its parent, is not among them."""

    def boot_id(self) -> str:
        """Read the id of this boot; empty if the system has none."""

    def pid_namespace(self) -> str:
        """Read the name of the space in which process ids mean the same; empty if it can't be known."""

    def start_time(self, pid: int) -> str | None:
        """Read when a process started, to be compared only; None if it has ended."""

    def order(self, start_time: str) -> float:
        """Convert a start time to a number: of two processes the younger has the higher one, or the same."""

    def name(self, pid: int) -> str:
        """Read the name of a process's program; empty if it has ended."""

    def session_members(self, session: int) -> list[int]:
        """List the processes of a session, which has the number of the process that began it."""


@record
class ProcFiles:
    """Linux."""

    def boot_id(self) -> str:
        return read_id(_BOOT_ID_FILE)

    def pid_namespace(self) -> str:
        with contextlib.suppress(OSError):
            return str(_PID_NAMESPACE.readlink())
        return ""

    def start_time(self, pid: int) -> str | None:
        fields = _stat(Path(f"/proc/{pid}"))
        return None if not fields or fields[_STATE] == _ZOMBIE else fields[_START_TIME]

    def order(self, start_time: str) -> float:
        return float(start_time)

    def name(self, pid: int) -> str:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        return ""

    def session_members(self, session: int) -> list[int]:
        return [
            int(folder.name)
            for folder in Path("/proc").glob("[0-9]*")
            if (fields := _stat(folder)) and fields[_STATE] != _ZOMBIE and int(fields[_SESSION]) == session
        ]


@record
class PsCommand:
    """macOS and others, by what POSIX has; ``lstart`` goes beyond it, and all of them know it."""

    def boot_id(self) -> str:
        return printed_by("sysctl", "-n", "kern.bootsessionuuid")

    def pid_namespace(self) -> str:
        return "system"

    def start_time(self, pid: int) -> str | None:
        state, _, started = printed_by("ps", "-o", "stat=,lstart=", "-p", str(pid)).partition(" ")
        return None if not started or state.startswith(_ZOMBIE) else " ".join(started.split())

    def order(self, start_time: str) -> float:
        return calendar.timegm(time.strptime(start_time, _PS_TIME))

    def name(self, pid: int) -> str:
        return Path(printed_by("ps", "-o", "comm=", "-p", str(pid))).name

    def session_members(self, session: int) -> list[int]:
        return [pid for pid in _running_pids() if _session(pid) == session]


def process_table(system: str = sys.platform) -> ProcessTable:
    """Choose how to read the processes of a system, as Python names it."""
    return ProcFiles() if system == "linux" else PsCommand()


def _stat(folder: Path) -> list[str]:
    """The fields of a process's status after the program's name, which may have spaces; empty if it has ended."""
    try:
        return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _running_pids() -> Iterator[int]:
    for line in printed_by("ps", "-A", "-o", "pid=,stat=").splitlines():
        pid, _, state = line.strip().partition(" ")
        if not state.strip().startswith(_ZOMBIE):
            yield int(pid)


def _session(pid: int) -> int:
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return 0
