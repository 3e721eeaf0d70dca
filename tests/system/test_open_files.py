"""The limit of open files, in processes with limits of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from composeplat.system.open_files import is_out_of_files

RAISING = """
import os
from composeplat.system.open_files import is_out_of_files, open_file_limit, raise_open_file_limit
raise_open_file_limit()
print(open_file_limit())
opened = []
try:
    while len(opened) < 100:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(is_out_of_files(error))
"""


@pytest.mark.parametrize(
    ("limits", "printed"),
    [
        pytest.param("50:300", "300\n", id="as far as it is allowed"),
        pytest.param("50:50", "50\nTrue\n", id="not at all"),
        pytest.param("12000:15000", "12000\n", id="never lower"),
        pytest.param("50:15000", "10240\n", id="as far as macOS lets it"),
    ],
)
def test_raising_the_limit(limits: str, printed: str) -> None:
    """It is raised as far as it is useful."""
    command = ["prlimit", f"--nofile={limits}", sys.executable, "-c", RAISING]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == printed


def test_other_failures() -> None:
    """Another failure does not count as a lack of files."""
    assert not is_out_of_files(FileNotFoundError(2, "no such file"))
    assert not is_out_of_files(None)
