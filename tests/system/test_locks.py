"""Locks hold out others, and go with their holder, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from composeplat.system.locks import Locked, hold_lock, try_lock, try_lock_folder, use_folder
from tests.conftest import ROOT

HOLD = """
import sys, time
from pathlib import Path
from composeplat.system import locks
path = Path(sys.argv[1])
with locks.{take}:
    print("held", flush=True)
    time.sleep(60)
"""
USE = "locks.hold_lock(path, lambda: None)"


@contextmanager
def holder(path: Path, take: str = USE) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds a lock until it is killed."""
    script = HOLD.replace("locks.{take}", take)
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_killed_holder_lets_the_next_process_in(tmp_path: Path) -> None:
    """Anyone who waits is reported once, and has the lock when the kernel takes it from a holder that was killed."""
    path = tmp_path / "deep" / "lock"
    path.parent.mkdir()
    output: list[str] = []

    with holder(path) as other:

        def on_wait() -> None:
            output.append("waiting")
            other.kill()

        with hold_lock(path, on_wait):
            assert output == ["waiting"]


def test_a_free_lock_is_had_at_once(tmp_path: Path) -> None:
    """Nobody is asked to wait for a lock that is free, be it for the first time or again after a failure."""

    def fail() -> None:
        with hold_lock(tmp_path / "deep" / "lock", lambda: pytest.fail("waited")):
            raise ValueError("failed")

    for _ in range(2):
        with pytest.raises(ValueError, match="failed"):
            fail()


def test_a_lock_that_is_removed(tmp_path: Path) -> None:
    """Anyone who waited for a file that its holder removed holds the file of that name, and keeps others out."""
    path = tmp_path / "deep" / "lock"
    with holder(path) as other:

        def on_wait() -> None:
            path.unlink()
            path.parent.rmdir()
            other.kill()

        with hold_lock(path, on_wait), pytest.raises(Locked), try_lock(path):
            pass


def test_try_lock(tmp_path: Path) -> None:
    """A second holder is refused, and reads who the first one is; a kill lets it in."""
    path = tmp_path / "lock"

    with holder(path, "locks.try_lock(path, 'the first')") as other:
        with pytest.raises(Locked), try_lock(path, "the second"):
            pass
        assert path.read_text() == "the first"
        other.kill()
        other.wait()

        with try_lock(path, "second"):
            assert path.read_text() == "second"


def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A program that the holder started does not hold the lock when the holder has let go of it."""
    path = tmp_path / "lock"
    with try_lock(path):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    try:
        # The kernel closes the child's files one after the other.
        with hold_lock(path, lambda: None):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_a_folder_in_use(tmp_path: Path) -> None:
    """A folder can be in use by several, and nobody takes it from them; a kill of the last one frees it."""
    use_folder(tmp_path)
    script = "__import__('contextlib').nullcontext(locks.use_folder(path))"
    with holder(tmp_path / ".", script), pytest.raises(Locked), try_lock_folder(tmp_path):
        pass


def test_a_folder_that_nobody_uses(tmp_path: Path) -> None:
    """A folder whose user was killed is free."""
    script = "__import__('contextlib').nullcontext(locks.use_folder(path))"
    with holder(tmp_path, script) as other:
        other.kill()
        other.wait()

        with try_lock_folder(tmp_path):
            assert os.listdir(tmp_path) == []
