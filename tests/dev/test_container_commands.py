"""Running the program of a command in a container, and its end."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat import progress
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cluster.access import Access
from composeplat.dev.container_commands import Command, choose_pod, run_command, run_until_interrupted
from composeplat.engine.target import Target
from composeplat.names import SERVICE_LABEL
from composeplat.toolchain.tools import LINK
from tests.cluster.objects import until

COMMAND = Command(namespace="team", pod="web-1", container="web", args=("sh",), terminal=True)
TARGET = Target(access=Access(host="127.0.0.1", port=1, plain=True), kubeconfig="", namespace="team")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that continues until it is asked to end, and then restores something, as a terminal."""
    path = tmp_path / "link"
    path.write_text(
        f"#!/bin/sh\ncd {tmp_path}\ntrap 'kill $!; touch restored; exit 143' TERM\ntouch begun\nsleep 60 & wait\n"
    )
    path.chmod(0o755)
    monkeypatch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: SimpleNamespace(path=path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_pod_of_a_command() -> None:
    """A ready pod, else the newest whose container runs: a newer one that crashes again and again was chosen."""

    def made(name: str, age: int, state: str, *, ready: bool = False) -> dict[str, Any]:
        labels = {SERVICE_LABEL: "web"}
        condition = {"type": "Ready", "status": str(ready)}
        return {
            "metadata": {"name": name, "labels": labels, "creationTimestamp": f"2026-01-01T00:00:{59 - age:02}Z"},
            "status": {"phase": "Running", "conditions": [condition],
                       "containerStatuses": [{"name": "web", "state": {state: {}}}]},
        }  # fmt: skip

    crashing, old, older = made("crashing", 0, "waiting"), made("old", 9, "running"), made("older", 20, "running")
    assert choose_pod([older, old, crashing], "web") == "old"
    assert choose_pod([older, old, made("ready", 30, "running", ready=True)], "web") == "ready"
    assert choose_pod([crashing], "web") == ""


@pytest.mark.usefixtures("program")
def test_a_command_that_is_ended(tmp_path: Path) -> None:
    """SIGTERM ends the program too, which restores the terminal first; it was killed, and the terminal stayed raw."""

    def end() -> None:
        until((tmp_path / "begun").exists)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end).start()
    with pytest.raises(SystemExit, match="143"), ended_by_signals():
        run_command(COMMAND, TARGET, os.environ)

    assert (tmp_path / "restored").exists()
    assert not [*tmp_path.glob("composeplat-*")]


@pytest.mark.usefixtures("program")
def test_a_command_that_is_interrupted(tmp_path: Path) -> None:
    """A Ctrl-C that only this process got, as from an editor, ends the program: it was ignored."""
    program = tmp_path / "link"
    program.write_text(program.read_text().replace("exit 143' TERM", "exit 130' INT"))

    def interrupt() -> None:
        until((tmp_path / "begun").exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    assert run_until_interrupted(COMMAND, TARGET, os.environ) == 130
    assert (tmp_path / "restored").exists()


def test_ctrl_c_before_the_command_runs(tmp_path: Path) -> None:
    """While the program that connects is waited for, Ctrl-C is not the command's yet: it had no effect."""
    lock = tmp_path / "locks" / LINK.name
    lock.parent.mkdir()

    def press(_: progress.Event) -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    environment = {"COMPOSEPLAT_CACHE": str(tmp_path), "PATH": str(tmp_path)}
    with lock.open("w") as held, progress.use_handler(press):
        fcntl.flock(held, fcntl.LOCK_EX)
        # The test ends also where the press has no effect.
        end = threading.Timer(5, fcntl.flock, (held, fcntl.LOCK_UN))
        end.start()
        with pytest.raises(KeyboardInterrupt):
            run_until_interrupted(COMMAND, TARGET, environment)
        end.cancel()
