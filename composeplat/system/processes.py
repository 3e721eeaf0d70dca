"""Processes: which one was noted, whether it has ended, and ending it with all that it started.

Owns the identity of a process across runs, and sessions of processes. Must not know what the processes are for.
It is apart because several rooms note processes in files, and none may take a process of another machine or container,
or one that got the same number, for its own.

A process id means something only within one boot of one machine and one PID namespace: cloned machines share host
names, and containers share the machine's boot. So a note has all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from composeplat.system.deadline import Deadline, poll
from composeplat.system.machine import machine_id
from composeplat.system.process_status import process_table
from composeplat.system.records import record

_POLL_INTERVAL_S = 0.05
_TABLE = process_table()


def python_module(python: str, module: str) -> tuple[str, ...]:
    """Return the arguments that run a module; without -P, Python would look for each import in the current folder."""
    return python, "-P", "-m", module


@record(kw_only=True)
class ProcessId:
    """Names one process for good: the place where its number is valid, the number, and its start time."""

    machine: str
    boot: str
    pid_namespace: str
    pid: int
    started: str | None

    @classmethod
    def from_pid(cls, pid: int) -> Self:
        """The identity of a process of this machine."""
        return cls(
            machine=machine_id(),
            boot=_TABLE.boot_id(),
            pid_namespace=_TABLE.pid_namespace(),
            pid=pid,
            started=start_time(pid),
        )

    @classmethod
    def from_data(cls, data: object) -> Self | None:
        """Read what :meth:`to_data` wrote; None if it is something else, as from an older version."""
        if not isinstance(data, Mapping):
            return None
        pid, started = data.get("pid"), data.get("started")
        places = [data.get(name) for name in ("machine", "boot", "pid_namespace")]
        machine, boot, pid_namespace = (place if isinstance(place, str) else None for place in places)
        if machine is None or boot is None or pid_namespace is None or type(pid) is not int:
            return None
        known = started if isinstance(started, str) else None
        return cls(machine=machine, boot=boot, pid_namespace=pid_namespace, pid=pid, started=known)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_on_this_machine(self) -> bool:
        return bool(self.machine) and self.machine == machine_id()

    @property
    def is_visible(self) -> bool:
        """Whether its number means the same here: the machine, the boot and the PID namespace are ours."""
        current = ProcessId.from_pid(os.getpid())
        places = [(process.machine, process.boot, process.pid_namespace) for process in (self, current)]
        return places[0] == places[1] and all(places[0])

    @property
    def has_ended(self) -> bool:
        """Whether it is certain that it has ended. A process that can't be seen from here may be running."""
        return self.is_visible and (self.started is None or start_time(self.pid) != self.started)

    @property
    def is_running(self) -> bool:
        """Whether it is certain that it runs, and can be asked to end."""
        return self.is_visible and self.started is not None and start_time(self.pid) == self.started

    @property
    def is_current(self) -> bool:
        """Whether it is the process that asks."""
        return self.pid == os.getpid() and self.is_running

    @property
    def was_before_reboot(self) -> bool:
        """Whether this machine has booted again since. Copies of a machine may share its id: see who asks."""
        boot = _TABLE.boot_id()
        return self.is_on_this_machine and bool(boot) and bool(self.boot) and boot != self.boot

    def terminate(self, *, grace_s: float) -> bool:
        """Send SIGTERM if it runs, and wait until it has ended; return whether it has."""
        if not self.is_running:
            return True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGTERM)
        return poll(lambda: not self.is_running, Deadline(grace_s), interval_s=_POLL_INTERVAL_S)

    def kill(self) -> None:
        """Send SIGKILL if it runs."""
        if self.is_running:
            _kill(self.pid)


def start_time(pid: int) -> str | None:
    """When a process started, to be compared only; None if it has ended."""
    return _TABLE.start_time(pid)


def session_members(session: int) -> list[int]:
    """The running processes of a session, which has the number of the process that began it."""
    return _TABLE.session_members(session)


def may_descend(pid: int, ancestor: ProcessId, program: str) -> bool:
    """Return whether a running process is of a program, by the start of its name, and not older than another process.

    The other may have ended: its session has its number still, and may be one of a later process with that number.
    """
    started = _TABLE.start_time(pid)
    if started is None or not _TABLE.name(pid).startswith(program):
        return False
    try:
        return ancestor.started is None or _TABLE.order(started) >= _TABLE.order(ancestor.started)
    except ValueError:  # of another version
        return False


def kill_session(session: int) -> None:
    """End every process of a session: a child in a group of its own outlives a kill of the parent's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for pid in session_members(session):
        _kill(pid)


def wait_for_end(session: int, deadline: Deadline) -> bool:
    """Wait until a session has no processes; return whether that is so."""
    return poll(lambda: not session_members(session), deadline, interval_s=_POLL_INTERVAL_S)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
