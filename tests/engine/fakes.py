"""A program that is in for Pulumi's command line, and does what a test shows it to."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_HEAD = """\
#!{python} -IS
import json, os, signal, subprocess, sys, time

args = sys.argv[1:]
log = args[args.index("--event-log") + 1] if "--event-log" in args else ""

def write(text):
    with open(log, "a") as stream:
        stream.write(text)

def tell(**event):
    write(json.dumps(event) + "\\n")

def wait_for(name):
    for _ in range(1500):
        if os.path.exists(name):
            return
        time.sleep(0.02)
    os._exit(99)

"""


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let every file that would be put in place find no room."""

    def refuse(path: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        yield


def fake(path: Path, body: str) -> Path:
    """Make a program of a few lines of Python, which may ``show`` events and ``wait_for`` files of its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_HEAD.format(python=sys.executable) + textwrap.dedent(body))
    path.chmod(0o755)
    return path


def comes_true(condition: Callable[[], object], seconds: float = 20) -> bool:
    """Return whether a condition comes true soon."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
