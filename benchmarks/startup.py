"""Measure how long short commands of `platform` take, beside the start of Python alone.

Owns the commands, and the limits of the figures.
Every run is a process of its own; the commands take turns, so that other work of the machine slows down all.
A run counts only if it ends with status 0 and prints the expected output.

The limits are of processor time: other work on the machine makes a run wait, which is no cost of ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import render
from verdicts import conclude

SERVICES = 10
RUNS = 11


@dataclass(frozen=True)
class Case:
    name: str
    command: tuple[str, ...]
    expected: bytes
    """Text in the output."""
    limit: float | None = None
    """Seconds of processor time."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """Seconds, as medians: of the processor, and on the clock."""

    processor: float
    clock: float


def find_cases() -> list[Case]:
    program = render.our_tool().command[0]
    completes = {"_PLATFORM_COMPLETE": "bash"}
    return [
        Case("python", (sys.executable, "-I", "-c", "print('started')"), b"started"),
        Case("--help", (program, "--help"), b"Deploy:", 0.08),
        Case("deploy --help", (program, "deploy", "--help"), b"--namespace", 0.08),
        Case("Tab", (program, "dep", "platform dep"), b"deploy", 0.08, completes),
        Case(f"render of {SERVICES}", (program, "render"), b"kind: StatefulSet", 0.10),
    ]


def time_once(case: Case, folder: Path) -> tuple[float, float]:
    """Run a command, and give its seconds of the processor and on the clock."""
    run = render.run_once(case.command, folder, {"PATH": os.defpath, **case.environment})
    if run.status != 0 or case.expected not in run.output:
        raise render.Failed(f"{case.name} ended with status {run.status}, without the expected output")
    return run.usage.ru_utime + run.usage.ru_stime, run.seconds


def measure(cases: Sequence[Case], folder: Path, runs: int) -> dict[str, Figures]:
    taken = render.in_turns({case.name: partial(time_once, case, folder) for case in cases}, runs)
    return {
        name: Figures(statistics.median(first for first, _ in found), statistics.median(second for _, second in found))
        for name, found in taken.items()
    }


def judge(cases: Sequence[Case], figures: Mapping[str, Figures]) -> dict[str, bool]:
    return {
        f"{case.name} in {case.limit:.2f} s": figures[case.name].processor <= case.limit
        for case in cases
        if case.limit is not None
    }


def table(figures: Mapping[str, Figures]) -> str:
    start = figures["python"].processor
    lines = ["command          processor  without Python's start  clock"]
    lines += [
        f"{name:<15}  {found.processor:>7.3f} s  {found.processor - start:>20.3f} s  {found.clock:.3f} s"
        for name, found in figures.items()
    ]
    return "\n".join(lines)


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if every limit is met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each command after one to warm up")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    cases = find_cases()
    with tempfile.TemporaryDirectory() as name:
        Path(name, "compose.yaml").write_text(render.definition(SERVICES))
        figures = measure(cases, Path(name), options.runs)
    load = os.getloadavg()[0]
    print(table(figures))
    print(f"load of the machine: {load:.1f}")
    rows = {case.name: {**asdict(figures[case.name]), "limit": case.limit} for case in cases}
    content = {"runs": options.runs, "load": load, "rows": rows}
    return conclude(judge(cases, figures), options.json, content)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except render.Failed as problem:
        raise SystemExit(f"platform {problem}") from None
