"""``make test``'s runs of pytest, without a cluster and with one, and a second try for a file or two.

Owns which files run again: at most two of each run, whole, alone on the machine, and named at the end. Clocks on a busy
machine differ from run to run; a defect fails both times. ``make endurance`` gives no second try.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

_MOST = 2
_PYTEST = (sys.executable, "-m", "pytest")
#: Collecting all other tests takes longer than some of these.
FOLDERS = ("tests/deploy", "tests/local")
_TESTS_FAILED = 1


class Run(NamedTuple):
    """What pytest selects, and how it shares that between processes."""

    selection: tuple[str, ...]
    parallel: tuple[str, ...]
    folders: tuple[str, ...] = ()


RUNS = {
    "pure": Run(("-m", "not cluster", "--durations", "15"), ("-n", "2")),
    "cluster": Run(
        ("-m", "cluster and not real and not vm", "--durations", "40"),
        ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"),
        FOLDERS,
    ),
}


def main(name: str) -> int:
    run = RUNS[name]
    with tempfile.TemporaryDirectory() as cache:
        command = [*_PYTEST, *run.selection, *run.parallel, "-o", f"cache_dir={cache}", *run.folders]
        status = subprocess.run(command, check=False).returncode
        failed = read_failed(Path(cache)) if status == _TESTS_FAILED else []
    again = files_to_repeat(failed)
    if not again:
        return status
    print(f"second try of {' and '.join(again)}, which failed", file=sys.stderr, flush=True)
    status = subprocess.run([*_PYTEST, *run.selection, *again], check=False).returncode
    if status == 0:
        print("passed at the second try only: " + ", ".join(failed), file=sys.stderr)
    return status


def read_failed(cache: Path) -> list[str]:
    """Return the tests that failed, as pytest's cache has them."""
    try:
        return sorted(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    except FileNotFoundError:
        return []


def files_to_repeat(failed: list[str]) -> list[str]:
    """Return the files of the tests that failed; none if they are too many for a matter of time."""
    files = sorted({test.partition("::")[0] for test in failed})
    return files if len(files) <= _MOST else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
