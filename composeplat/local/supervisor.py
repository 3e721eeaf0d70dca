"""Process 1 of the cluster's namespaces: starts the parts, starts again what ends, and takes all down with itself.

Owns the running processes, nothing else: what they are stands in the plan it is given.

It is started by ``unshare`` as the first process of a process namespace, so that when it ends the kernel ends every
other process in it, pods included.
The machine's own network stays within reach through a descriptor opened before: parts that must listen on the machine's
loopback are started with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.system.atomic import write_file
from composeplat.system.deadline import Deadline, poll

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_STEADY = 30.0
_GRACE_S = 10.0
_POLL_INTERVAL_S = 0.05
_TICK = 0.2


@dataclass(slots=True)
class Running:
    """One part, as it runs."""

    part: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    next_start: float = 0.0
    pause: float = _FIRST_PAUSE
    starts: int = 0
    ready: bool = False
    last_exit: int | None = None

    @property
    def name(self) -> str:
        return str(self.part["name"])

    def state(self) -> dict[str, Any]:
        return {
            "pid": self.process.pid if self.process else None,
            "running": self.process is not None,
            "ready": self.ready,
            "starts": self.starts,
            "last_exit": self.last_exit,
        }


@dataclass(slots=True)
class Supervisor:
    plan: dict[str, Any]
    running: dict[str, Running] = field(default_factory=dict)
    ending: bool = False
    _written: str = ""

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        for part in self.plan["parts"]:
            self.running[part["name"]] = Running(part)
        while not self.ending:
            self._reap()
            for one in self.running.values():
                self._tend(one)
            self._write_states()
            select.select([], [], [], _TICK)
        self._stop_all()

    def _end(self, *_: object) -> None:
        self.ending = True

    def _tend(self, one: Running) -> None:
        now = time.monotonic()
        if one.process is None:
            needed = [self.running[name] for name in one.part.get("needs", [])]
            if now >= one.next_start and all(need.ready for need in needed):
                self._start(one, now)
        elif not one.ready:
            one.ready = answers(one.part.get("ready", ""))
        elif now - one.started > _STEADY:
            one.pause = _FIRST_PAUSE

    def _start(self, one: Running, now: float) -> None:
        words = list(one.part["words"])
        if one.part.get("place") == "outside network" and self.plan.get("network_fd") is not None:
            words = ["nsenter", f"--net=/proc/self/fd/{self.plan['network_fd']}", "--", *words]
        if os.getpid() != 1:
            # Without a process namespace nothing else ends a part when this process is killed.
            words = ["setpriv", "--pdeathsig", "KILL", "--", *words]
        log = Path(self.plan["logs"]) / f"{one.name}.log"
        _keep_small(log)
        with log.open("ab") as stream:
            try:
                one.process = subprocess.Popen(
                    words,
                    env=one.part.get("environment") or self.plan["environment"],
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                    pass_fds=[self.plan["network_fd"]] if self.plan.get("network_fd") is not None else [],
                )
            except OSError as error:
                stream.write(f"can't start {words[0]}: {error}\n".encode())
                one.next_start = now + _LONGEST_PAUSE
                return
        one.started, one.starts = now, one.starts + 1
        one.ready = not one.part.get("ready")

    def _reap(self) -> None:
        """Take note of what has ended, and reap what was left to process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for one in self.running.values():
                if one.process is not None and one.process.pid == pid:
                    self._ended(one, os.waitstatus_to_exitcode(status))

    def _ended(self, one: Running, status: int) -> None:
        if one.process is not None:
            one.process.returncode = status
        one.process, one.ready, one.last_exit = None, False, status
        one.next_start = time.monotonic() + one.pause
        one.pause = min(one.pause * 2, _LONGEST_PAUSE)

    def _write_states(self) -> None:
        text = json.dumps({name: one.state() for name, one in self.running.items()})
        if text != self._written:
            write_file(Path(self.plan["states"]), text)
            self._written = text

    def _stop_all(self) -> None:
        """End at once what keeps nothing itself, or would start others; then everything, pods too, kindly at first."""
        for one in self.running.values():
            if one.process and not one.part.get("keeps_data"):
                one.process.kill()
        if os.getpid() == 1:
            os.kill(-1, signal.SIGTERM)
        else:
            for one in self.running.values():
                if one.process:
                    one.process.terminate()
        if poll(_reap_all, Deadline(_GRACE_S), interval_s=_POLL_INTERVAL_S):
            return
        for one in self.running.values():
            if one.process:
                one.process.kill()


def _reap_all() -> bool:
    """Reap children that have ended; return whether none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def answers(address: str) -> bool:
    """Say whether something accepts connections at ``unix:PATH`` or ``tcp:HOST:PORT``; no address always does."""
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


def _keep_small(log: Path, limit: int = 8 * 1024 * 1024) -> None:
    try:
        if log.stat().st_size > limit:
            log.replace(log.with_suffix(".log.1"))
    except FileNotFoundError:
        pass


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for words in plan.get("before", []):
        subprocess.run(words, check=False, stdin=subprocess.DEVNULL)
    Supervisor(plan).run()


if __name__ == "__main__":
    main()
