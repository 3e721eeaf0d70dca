"""No test touches the data folder of anyone who runs the tests: logs of runs lay there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from composeplat.cli.run_log import LogFile, log_folder
from composeplat.system.folders import data_folder
from tests.conftest import VARIABLES
from tests.own_data import USER_DATA, UserDataTouched


def test_programs_of_tests_have_another_folder() -> None:
    """The variables of this process, which most programs inherit, and those of ``run`` lead elsewhere."""
    assert str(data_folder(os.environ)) != USER_DATA
    assert data_folder(VARIABLES) == data_folder(os.environ)


def test_a_log_is_written_elsewhere() -> None:
    """A log of this process goes to the folder of this run."""
    file = LogFile(log_folder(os.environ) / "own.log")

    file.write("line")
    file.close()

    assert file.exists
    assert not file.path.is_relative_to(USER_DATA)


def test_the_guard_sees_a_file() -> None:
    """A log in the user's folder would end the test, although a log that can't be written ends no run."""
    with pytest.raises(UserDataTouched):
        LogFile(Path(USER_DATA) / "logs" / "a.log").write("line")


@pytest.mark.parametrize(
    "variables", [pytest.param({}, id="none"), pytest.param({"PATH": "/bin", "LANG": "C"}, id="of-its-own")]
)
def test_the_guard_sees_a_program(variables: dict[str, str]) -> None:
    """A program with variables of its own that lead to the user's folder is not started."""
    home = {"HOME": os.environ["HOME"]} if "HOME" in os.environ else {}

    with pytest.raises(UserDataTouched):
        subprocess.run([sys.executable, "-c", ""], env={**variables, **home}, check=True)
