"""``python -m tests.mutants``: change the product's code, one token at a time, and say which changes no test notices.

Only code counts that tests run which need no cluster; of the rest it is reported how much there is.
Ends with status 1 where fewer are noticed than should be.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.conftest import ROOT
from tests.mutants.changes import Change, find_changes
from tests.mutants.copies import Copy, seconds_since
from tests.mutants.coverage import Coverage

KEPT = ROOT / ".mutants"
_BUDGETS = 2.0, 20.0, 90.0
"""How long the tests may take, by their own time, that are asked at once: most changes are noticed by the first."""
_MIN_TIMEOUT_S = 3.0
"""So many times as long as it takes undisturbed, and a while, may a test run before it counts as hanging."""


def main() -> None:
    options = _options()
    # The tests run in processes of their own, which are to end with this one however it is asked to.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        coverage = _coverage(copy, keep=options.keep_map)
        candidates, beyond = _candidates(copy, coverage)
        print(f"mutants: {len(candidates)} changes in code that tests run; {beyond} where only a cluster's tests may")
        chosen = Random(options.seed).sample(candidates, min(options.count, len(candidates)))  # noqa: S311 -- the same each time
        survivors = _run(copy, coverage, chosen)
    killed = len(chosen) - survivors
    share = 100 * killed / max(1, len(chosen))
    print(f"mutants: {killed} of {len(chosen)} noticed ({share:.0f} %), with seed {options.seed}")
    sys.exit(share < options.least)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--count", type=int, default=200, help="how many changes")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--least", type=float, default=90, help="how many of a hundred should be noticed")
    parser.add_argument("--keep-map", action="store_true", help="take the map of tests as it is, though it is old")
    return parser.parse_args()


def _coverage(copy: Copy, *, keep: bool) -> Coverage:
    """The map of tests and lines, recreated where the project is another."""
    path, key, current = KEPT / "map.json", KEPT / "key", copy.key
    if not path.exists() or not (keep or (key.exists() and key.read_text() == current)):
        print("mutants: running the tests once, to see which lines each of them runs", flush=True)
        KEPT.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        begun = time.monotonic()
        copy.make_map(path)
        if not path.exists():
            sys.exit(f"mutants: the tests did not run:\n{copy.last_lines()}")
        key.write_text(current)
        failed = json.loads(path.read_text())["failed"]
        print(f"mutants: that took {seconds_since(begun):.0f} s; not used, as they failed or skipped: {len(failed)}")
    return Coverage.read(path)


def _candidates(copy: Copy, coverage: Coverage) -> tuple[list[tuple[str, Change]], int]:
    """Every change in a statement that some test runs; and how many there are elsewhere."""
    found, beyond = [], 0
    for path in sorted((copy.root / "composeplat").rglob("*.py")):
        name = path.relative_to(copy.root).as_posix()
        for change in find_changes(path.read_text()):
            if coverage.is_imported_only(name, change):
                beyond += 1
            else:
                found.append((name, change))
    return found, beyond


def _run(copy: Copy, coverage: Coverage, chosen: list[tuple[str, Change]]) -> int:
    survivors, begun = 0, time.monotonic()
    for number, (name, change) in enumerate(chosen, start=1):
        if not _is_noticed(copy, coverage, name, change):
            survivors += 1
            print(f"survived: {_described(copy, name, change)}", flush=True)
        if number % 10 == 0:
            print(f"mutants: {number - survivors} of {number} noticed, {seconds_since(begun):.0f} s", flush=True)
    return survivors


def _is_noticed(copy: Copy, coverage: Coverage, name: str, change: Change) -> bool:
    tests = coverage.tests_of(name, change)
    with copy.changed(name, change):
        for budget in _BUDGETS:
            asked, tests = _take(coverage, tests, budget)
            longest = 15 + _MIN_TIMEOUT_S * max((coverage.seconds[index] for index in asked), default=0)
            limit = 60 + longest + _MIN_TIMEOUT_S * sum(coverage.seconds[index] for index in asked)
            names = [coverage.names[index] for index in asked]
            if asked and copy.is_noticed(names, longest, limit):
                return True
    return False


def _take(coverage: Coverage, tests: list[int], budget: float) -> tuple[list[int], list[int]]:
    """Take tests off the front until they fill the time."""
    seconds, count = 0.0, 0
    while count < len(tests) and (seconds < budget or not count):
        seconds += coverage.seconds[tests[count]]
        count += 1
    return tests[:count], tests[count:]


def _described(copy: Copy, name: str, change: Change) -> str:
    text = (copy.root / name).read_text()
    before = text[change.start : change.end].split("\n")[0]
    line = text.splitlines()[change.line - 1].strip()
    return f"{name}:{change.line}: {before!r} -> {change.new!r}: {line}"


if __name__ == "__main__":
    main()
