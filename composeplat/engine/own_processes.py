"""The record of the Pulumi processes that this machine started on a stack: it distinguishes their locks from others'.

Owns one file in the stack's folder. It is apart from the note of the current run, since a lock may outlive that note: a
preview ignores a lock, and the next deploy meets it.
Pulumi's lock holds a user, a host name, a process id and a time. Another machine or container may have the same first
three, so a lock is ours only if a recorded process has the id and started shortly before that time. Only
:class:`~composeplat.system.processes.ProcessId` proves that the process has ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Self

from composeplat.engine.backend import writing
from composeplat.system.atomic import write_private
from composeplat.system.processes import ProcessId
from composeplat.system.records import record

#: A lock of an older process would have been met since.
_MAX_KEPT = 100
#: How long after its start a process may take the lock.
_MAX_LOCK_DELAY_S = 600.0
_CLOCK_STEP_S = 2.0


@record(kw_only=True)
class LockHolder:
    """The holder of a lock, as Pulumi reports it."""

    user: str
    host: str
    pid: int
    created_at: float
    """In seconds since 1970."""


_HOLDER = re.compile(r"created by (\S+)@(\S+) \(pid (\d+)\) at (\S+)")


def is_locked_out(output: str) -> bool:
    """Return whether Pulumi failed because the stack is locked; a webhook may say it of something else."""
    return "the stack is currently locked by" in output


def lock_holders(output: str) -> tuple[LockHolder, ...]:
    """Parse the holders of the lock that Pulumi met; empty unless all of them can be parsed."""
    found = _HOLDER.findall(output)
    if len(found) < output.count(": created by "):
        return ()
    try:
        return tuple(
            LockHolder(user=user, host=host, pid=int(pid), created_at=datetime.fromisoformat(time).timestamp())
            for user, host, pid, time in found
        )
    except ValueError:
        return ()


@record
class OwnProcess:
    process: ProcessId
    at: float
    """When it was started, in seconds since 1970."""

    @classmethod
    def from_data(cls, data: object) -> Self | None:
        """Parse the data of :meth:`to_data`; none for anything else."""
        process = ProcessId.from_data(data)
        at = data.get("at") if isinstance(data, dict) else None
        return cls(process, float(at)) if process is not None and isinstance(at, int | float) else None

    def to_data(self) -> dict[str, object]:
        return {**self.process.to_data(), "at": self.at}

    def took(self, lock: LockHolder) -> bool:
        in_time = self.at - _CLOCK_STEP_S <= lock.created_at <= self.at + _MAX_LOCK_DELAY_S
        return self.process.pid == lock.pid and in_time

    def has_ended(self, *, state_is_private: bool) -> bool:
        """Where the state is private to this machine's data, a reboot proves it too.

        Elsewhere it does not: the process may be running on the machine that this one was copied from.
        """
        return self.process.has_ended or (state_is_private and self.process.was_before_reboot)


@record
class OwnProcesses:
    folder: Path
    """The stack's."""

    @property
    def path(self) -> Path:
        return self.folder / "own-processes.json"

    def read(self) -> tuple[OwnProcess, ...]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        rows = data if isinstance(data, list) else ()
        return tuple(own for row in rows if (own := OwnProcess.from_data(row)) is not None)

    def add(self, own: OwnProcess) -> None:
        """Record a process that was started; the record outlives the process."""
        noted = self.read()
        if own not in noted:
            self._write((*noted, own))

    def remove(self, own: OwnProcess) -> None:
        """Remove a process that never held the lock: the holder may have the same process id."""
        self._write(recorded for recorded in self.read() if recorded != own)

    def _write(self, rows: Iterable[OwnProcess]) -> None:
        with writing(self.path):
            write_private(self.path, json.dumps([own.to_data() for own in rows][-_MAX_KEPT:]))

    def have_left(self, locks: Iterable[LockHolder], *, state_is_private: bool) -> bool:
        """Return whether recorded processes that have ended hold all these locks."""
        noted = self.read()
        return all(
            any(own.took(lock) and own.has_ended(state_is_private=state_is_private) for own in noted) for lock in locks
        )
