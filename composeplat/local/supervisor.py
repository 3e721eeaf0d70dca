"""Process 1 of the cluster's namespaces: it starts the parts, restarts those that end, and ends them all with itself.

Owns the running processes. Must not know their purpose: the plan file has their arguments.

``unshare`` starts it as the first process of a process namespace, so that the kernel ends every other process there,
also those of pods, when it ends.
It has a descriptor of the host's network, in which it starts the parts that listen on the host's loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from composeplat.system.atomic import write_file, write_private
from composeplat.system.deadline import Deadline, poll
from composeplat.system.processes import start_time

_MIN_RESTART_DELAY_S, _MAX_RESTART_DELAY_S = 0.5, 10.0
_STEADY_AFTER_S = 30.0
_GRACE_S = 10.0
_POLL_INTERVAL_S = 0.05
_CHECK_INTERVAL_S = 0.2
#: A longer log becomes the one before when its part starts.
_MAX_LOG_BYTES = 8 * 1024 * 1024


class Network(StrEnum):
    """The network namespace that a part runs in."""

    CLUSTER = "cluster"
    HOST = "host"


@dataclass(slots=True)
class PartProcess:
    """One part, as it runs."""

    spec: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    next_start: float = 0.0
    restart_delay: float = _MIN_RESTART_DELAY_S
    starts: int = 0
    ready: bool = False
    last_exit: int | None = None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    def state(self) -> dict[str, Any]:
        return {
            "pid": self.process.pid if self.process else None,
            "running": self.process is not None,
            "ready": self.ready,
            "starts": self.starts,
            "last_exit": self.last_exit,
            "required": not self.spec.get("starts_after"),
        }


@dataclass(slots=True)
class Supervisor:
    plan: dict[str, Any]
    parts: dict[str, PartProcess] = field(default_factory=dict)
    ending: bool = False
    _written: str = ""

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._request_end)
        signal.signal(signal.SIGINT, self._request_end)
        for spec in self.plan["parts"]:
            self.parts[spec["name"]] = PartProcess(spec)
        while not self.ending:
            self._reap()
            for part in self.parts.values():
                self._update(part)
            self._write_states()
            select.select([], [], [], _CHECK_INTERVAL_S)
        self._stop_all()

    def _request_end(self, *_: object) -> None:
        self.ending = True

    def _update(self, part: PartProcess) -> None:
        now = time.monotonic()
        if part.process is None:
            if now >= part.next_start and self._may_start(part):
                self._start(part, now)
        elif not part.ready:
            part.ready = is_listening(part.spec.get("ready", ""))
        elif now - part.started > _STEADY_AFTER_S:
            part.restart_delay = _MIN_RESTART_DELAY_S

    def _may_start(self, part: PartProcess) -> bool:
        needed = [self.parts[name] for name in part.spec.get("needs", [])]
        mark = part.spec.get("starts_after")
        return all(need.ready for need in needed) and (not mark or Path(mark).exists())

    def _start(self, part: PartProcess, now: float) -> None:
        args = list(part.spec["args"])
        if part.spec.get("network") == Network.HOST and self.plan.get("network_fd") is not None:
            args = ["nsenter", f"--net=/proc/self/fd/{self.plan['network_fd']}", "--", *args]
        if os.getpid() != 1:
            # Without a process namespace nothing else ends a part when this process is killed.
            args = ["setpriv", "--pdeathsig", "KILL", "--", *args]
        log = Path(self.plan["logs"]) / f"{part.name}.log"
        try:
            _rotate(log)
            with log.open("ab") as stream:
                part.process = self._spawn(part, args, stream)
        except OSError as error:
            # Also a full disk, on which no log can be made: the next try may find space.
            sys.stderr.write(f"can't start {part.name}: {error}\n")
            part.next_start = now + _MAX_RESTART_DELAY_S
            return
        part.started, part.starts = now, part.starts + 1
        part.ready = not part.spec.get("ready")

    def _spawn(self, part: PartProcess, args: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            args,
            env=part.spec.get("environment") or self.plan["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[self.plan["network_fd"]] if self.plan.get("network_fd") is not None else [],
        )

    def _reap(self) -> None:
        """Record the parts that have ended, and reap the orphans that process 1 inherits."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for part in self.parts.values():
                if part.process is not None and part.process.pid == pid:
                    self._record_exit(part, os.waitstatus_to_exitcode(status))

    def _record_exit(self, part: PartProcess, status: int) -> None:
        if part.process is not None:
            part.process.returncode = status
        part.process, part.ready, part.last_exit = None, False, status
        part.next_start = time.monotonic() + part.restart_delay
        part.restart_delay = min(part.restart_delay * 2, _MAX_RESTART_DELAY_S)

    def _write_states(self) -> None:
        text = json.dumps({name: part.state() for name, part in self.parts.items()})
        if text != self._written:
            # On a full disk a later round writes them: were this process to end, so would the whole cluster.
            with contextlib.suppress(OSError):
                write_file(Path(self.plan["states"]), text)
                self._written = text

    def _stop_all(self) -> None:
        """Kill the parts that keep no data or would start others; then end everything, pods too, with a grace time."""
        for part in self.parts.values():
            if part.process and not part.spec.get("keeps_data"):
                part.process.kill()
        if os.getpid() == 1:
            os.kill(-1, signal.SIGTERM)
        else:
            for part in self.parts.values():
                if part.process:
                    part.process.terminate()
        if poll(_reap_all, Deadline(_GRACE_S), interval_s=_POLL_INTERVAL_S):
            return
        for part in self.parts.values():
            if part.process:
                part.process.kill()


def _reap_all() -> bool:
    """Reap children that have ended; return whether none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def is_listening(address: str) -> bool:
    """Return whether something accepts connections at ``unix:PATH`` or ``tcp:HOST:PORT``; no address always does."""
    network, _, place = address.partition(":")
    try:
        if network == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(1)
                probe.connect(place)
        elif network == "tcp":
            host, _, port = place.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=1):
                pass
    except OSError:
        return False
    return True


def _rotate(log: Path) -> None:
    try:
        if log.stat().st_size > _MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    except FileNotFoundError:
        pass


def note_itself(path: str, processes_fd: int, process: Mapping[str, Any]) -> None:
    """Note this process by its number on the machine, which a folder of the machine's processes shows."""
    number = int(os.readlink("self", dir_fd=processes_fd))
    os.close(processes_fd)
    write_private(Path(path), json.dumps({**process, "pid": number, "started": start_time(os.getpid())}))


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if "note" in plan:
        note_itself(**plan["note"])
    for args in plan.get("before", []):
        subprocess.run(args, check=False, stdin=subprocess.DEVNULL)
    Supervisor(plan).run()


if __name__ == "__main__":
    main()
