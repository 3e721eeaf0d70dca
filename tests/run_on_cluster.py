"""``make test``'s run of the tests that need a cluster, with a second try for a file or two.

Owns which files run again: at most two, whole, alone on the machine, and named at the end. Clocks of real pods on a
busy machine differ from run to run; a defect fails both times. ``make endurance`` gives no second try.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

_MOST = 2
_PYTEST = (sys.executable, "-m", "pytest")
#: Collecting all other tests takes longer than some of these.
FOLDERS = ("tests/deploy", "tests/local")
_SELECTION = ("-m", "cluster and not real and not vm", "--durations", "40")
_PARALLEL = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
_TESTS_FAILED = 1


def main() -> int:
    with tempfile.TemporaryDirectory() as cache:
        options = ("-o", f"cache_dir={cache}")
        status = subprocess.run([*_PYTEST, *_SELECTION, *_PARALLEL, *options, *FOLDERS], check=False).returncode
        failed = read_failed(Path(cache)) if status == _TESTS_FAILED else []
    again = files_to_repeat(failed)
    if not again:
        return status
    print(f"second try of {' and '.join(again)}, which failed", file=sys.stderr, flush=True)
    status = subprocess.run([*_PYTEST, *_SELECTION, *again], check=False).returncode
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
    sys.exit(main())
