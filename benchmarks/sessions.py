"""Development containers for benchmarks: runs of `platform up` and other programs, with the moments of their output.

Owns how a program is followed, and how its container is found. Must not measure: :mod:`sync` does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path

NAMESPACE = "bench"


class Failed(Exception):
    """The container does not have the files."""


@dataclass
class Testbed:
    folder: Path
    variables: dict[str, str]
    kubectl: list[str]
    api: Api

    @property
    def source(self) -> Path:
        return self.folder / "src"

    def platform(self, *args: str) -> list[str]:
        return [
            str(Path(sys.executable).with_name("platform")),
            *args[:1],
            "--name",
            "bench",
            "-n",
            NAMESPACE,
            *args[1:],
        ]

    def run(self, *args: str) -> None:
        done = subprocess.run(
            self.platform(*args), cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failed(f"platform {args[0]}: {done.stderr[-800:]}")

    def in_container(self, *args: str) -> str:
        (pod,) = [name for pod in self.pods() if "platform-up" in (name := pod["metadata"]["name"])]
        done = subprocess.run([*self.kubectl, "exec", pod, "--", *args], capture_output=True, text=True, check=True)
        return done.stdout

    def running(self, service: str) -> str:
        """The service's own pod, once it runs."""
        fit = [
            pod
            for pod in self.pods()
            if pod["status"].get("phase") == "Running" and f"{service}-" in pod["metadata"]["name"]
        ]
        return str(fit[0]["metadata"]["name"]) if len(fit) == 1 else ""

    def pods(self) -> list[dict[str, Any]]:
        found = self.api.items(kind_path("v1", "Pod", NAMESPACE))
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


@dataclass
class Up:
    """A run of `platform up`, or of another program, with its events and lines of output."""

    testbed: Testbed
    command: Sequence[str]
    program: Sequence[str] = ()
    service: str = "app"
    process: subprocess.Popen[str] = field(init=False)
    began: float = field(init=False)
    events: list[tuple[float, Mapping[str, Any]]] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            self.program or self.testbed.platform("up", "--progress", "json", self.service, "--", *self.command),
            cwd=self.testbed.folder, env=self.testbed.variables, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.PIPE,
        )  # fmt: skip
        for stream, take in ((self.process.stdout, self._line), (self.process.stderr, self._event)):
            threading.Thread(target=_follow, args=(stream, take), daemon=True).start()

    def _line(self, text: str) -> None:
        self.lines.append((time.monotonic(), text))

    def _event(self, text: str) -> None:
        if text.startswith("{"):
            self.events.append((time.monotonic(), json.loads(text)))

    def at(self, name: str, **wanted: object) -> float:
        """When an event was printed first."""
        wanted = {"event": name, **wanted}
        return float(until(self._running(lambda: [t for t, e in self.events if wanted.items() <= e.items()]), 120)[0])

    def wait_for_output(self, seconds: float) -> None:
        until(self._running(lambda: self.lines), seconds)

    def _running(self, done: Callable[[], Any]) -> Callable[[], Any]:
        """The same, which fails with the errors of the program once it has ended."""

        def check() -> Any:
            ended = self.process.poll()
            found = done()
            if ended is not None and not found:
                errors = [str(event.get("message")) for _, event in self.events if event.get("severity") == "error"]
                raise Failed(f"the program ended with status {ended}: {'; '.join(errors)}")
            return found

        return check

    def times_of(self, line: str) -> list[float]:
        """When a line was printed, each time."""
        return [at for at, text in self.lines if text == line]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def _follow(stream: IO[str] | None, take: Callable[[str], None]) -> None:
    for line in stream or ():
        take(line.rstrip("\n"))


def until(done: Callable[[], Any], seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = done()
        if found:
            return found
        time.sleep(0.002)
    raise Failed("the wait timed out")
