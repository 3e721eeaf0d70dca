"""Who develops a service: whether another `platform up` may still be at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from composeplat.dev.lease import may_be_running
from composeplat.system.processes import ProcessId


def holder(process: ProcessId, **other: Any) -> dict[str, Any]:
    """What a dev workload says of who develops its service."""
    return {"id": "1", "host": socket.gethostname(), "user": "me", **process.to_data(), **other}


@pytest.fixture
def dead() -> ProcessId:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = ProcessId.from_pid(process.pid)
        process.communicate(b"\n")
    return found


def test_here(dead: ProcessId) -> None:
    """A process of this machine may be at it until it has ended; this process is not another's."""
    parent = ProcessId.from_pid(os.getppid())

    assert may_be_running(holder(parent))
    assert not may_be_running(holder(dead))
    assert not may_be_running(holder(ProcessId.from_pid(os.getpid())))


@pytest.mark.parametrize("place", ["machine", "boot", "pid_namespace"])
def test_under_the_same_host_name(dead: ProcessId, place: str) -> None:
    """On a clone of this machine, or in a container of the same host name, the process may be running.

    Only the host name used to be compared, so a number that is dead here was taken for the end of it.
    """
    assert may_be_running(holder(dead, **{place: "other"}))


def test_a_holder_that_has_no_place() -> None:
    """Of a holder that names no place nothing is known."""
    assert may_be_running({"id": "1", "host": socket.gethostname(), "pid": 1})
