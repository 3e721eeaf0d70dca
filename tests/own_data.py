"""The data folder of anyone who runs the tests stays untouched: everything that tests run has another one.

Owns that other folder, and a guard: this process opens nothing in the user's, and starts no program that would.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from composeplat.system.folders import data_folder

_NAMED = "COMPOSEPLAT_TESTS_USER_DATA"
#: What other processes of the same run found before they set their own.
USER_DATA = os.environ.setdefault(_NAMED, str(data_folder(os.environ)))
DATA_HOME = tempfile.mkdtemp(prefix="composeplat-tests-")
_HOME = os.path.expanduser("~")


class UserDataTouched(BaseException):
    """A test would read or write what the user has; not an error that the code under test may handle."""


def protect() -> None:
    """Give this process and those it starts a data folder that ends with it, and guard the user's."""
    os.environ.pop("COMPOSEPLAT_DATA", None)
    os.environ["XDG_DATA_HOME"] = DATA_HOME
    atexit.register(shutil.rmtree, DATA_HOME, ignore_errors=True)
    sys.addaudithook(_check)


def _check(event: str, args: tuple[Any, ...]) -> None:
    if event in ("open", "os.mkdir"):
        path = args[0]
        if isinstance(path, str) and (path == USER_DATA or path.startswith(f"{USER_DATA}/")):
            raise UserDataTouched(path)
    elif event == "subprocess.Popen":
        _check_program([args[0], *args[1]], args[3])
    elif event == "os.exec":
        _check_program(args[1], args[2])


def _check_program(command: Sequence[Any], environment: Mapping[Any, Any] | None) -> None:
    """Refuse to start Python or ``platform`` with an environment from which the user's data folder follows."""
    if environment is None or not any(os.fspath(word) in _PROGRAMS for word in command[:2] if word):
        return
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    has_another = variables.get("COMPOSEPLAT_DATA") or variables.get("XDG_DATA_HOME")
    if not has_another and variables.get("HOME", _HOME) == _HOME:
        raise UserDataTouched(f"{command} has no data folder of its own: give it VARIABLES of tests.conftest")


_PROGRAMS = (sys.executable, os.path.join(os.path.dirname(sys.executable), "platform"))
