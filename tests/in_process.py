"""Run the command in the test's own process, for many small runs: a process each takes ten times as long.

Owns nothing of the command: the real application is called with words, a folder and a bare environment, and whatever it
does not catch fails the test.
A test beside the golden cases holds that a process of its own gives the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from composeplat.cli.app import app
from tests.conftest import Outcome
from tests.own_data import DATA_HOME

BUG = "Traceback (most recent call last)"


def run_here(*args: str, folder: Path, **shell: str) -> Outcome:
    """Run the command in a folder, with nothing in its environment but what is given."""
    with contextlib.chdir(folder), _environment(shell):
        result = CliRunner().invoke(app, args, catch_exceptions=False, prog_name="platform")
    if BUG in result.stderr:
        pytest.fail(result.stderr)
    return Outcome.of(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())


@contextlib.contextmanager
def _environment(shell: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(PATH=os.defpath, **{"XDG_DATA_HOME": DATA_HOME, **shell})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
