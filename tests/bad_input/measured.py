"""Run the command and see what it took: seconds of processor time, as other tests run beside, and its most memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import VARIABLES, Folder, Outcome

MOST_SECONDS = 2.0
MOST_MEGABYTES = 200.0

#: A program that takes this long on a core that has nothing else to do.
_REFERENCE_SECONDS = 0.6
_REFERENCE = """
import time
sorted({f"k{number}": (number, str(number)) for number in range(400_000)}.items())
print(time.process_time())
"""
_CHILD = Path(__file__).with_name("measured_child.py")
_COMMAND = (sys.executable, "-c", "from composeplat.cli.app import main; main()")


@dataclass(frozen=True)
class Measured(Outcome):
    seconds: float
    megabytes: float

    def assert_refused(self, code: str) -> Measured:
        """The definition is invalid, for this reason, and saying so took little."""
        self.assert_invalid()
        assert f"[{code}]" in self.stderr
        return self.assert_took_little()

    def assert_took_little(self) -> Measured:
        assert self.seconds < MOST_SECONDS or self.seconds < MOST_SECONDS * _slowness()
        assert self.megabytes < MOST_MEGABYTES
        return self


def _slowness() -> float:
    """Return how many times as long as usual a program takes here and now: a core can be shared with other machines.

    It is two at most, so that the limit stays one on every machine.
    """
    return min(2.0, max(float(_reference()) for _ in range(4)) / _REFERENCE_SECONDS)


def _reference() -> bytes:
    command = [sys.executable, "-I", "-c", _REFERENCE]
    return subprocess.run(command, capture_output=True, timeout=100, check=True).stdout


def measured(folder: Folder, *args: str, **shell: str) -> Measured:
    """Run the command in a folder as ``folder.run`` does."""
    output, errors = folder.path.parent / "measured.out", folder.path.parent / "measured.err"
    done = subprocess.run(
        [sys.executable, "-I", str(_CHILD), str(output), str(errors), *_COMMAND, *args],
        cwd=folder.path,
        env={**VARIABLES, **folder.shell, **shell},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=True,
    )
    took = json.loads(done.stdout)
    return Measured(
        status=took["status"],
        stdout=output.read_text(),
        stderr=errors.read_text(),
        seconds=took["seconds"],
        megabytes=took["megabytes"],
    )
