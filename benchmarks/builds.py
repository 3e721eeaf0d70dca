"""Measure builds beside `buildx bake` on the same services, builder and registry.

Owns the builds, and the limits of the figures.
Both tools build and push, in turns; each run is a process of its own. Three cases: 20 services whose every step is
known already, one service with a context of 50,000 files, and the same after a change of one of these files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from failures import PORTS, Failed, on_a_cluster

from composeplat.cluster.api import Api
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX

SERVICES = 20
LARGE = 50_000
FILES_IN_A_FOLDER = 500
RUNS = 5
WARM_UP = 3
"""The runs until a build and a deploy have found nothing to do."""
PEER = "buildx bake"


@dataclass(frozen=True)
class Case:
    name: str
    folder: Path
    at_most: float
    """Times the time of buildx."""
    judged: tuple[str, ...] = ("platform build", "platform deploy")
    change: Callable[[], None] | None = None
    """Called before each run."""


Times = Mapping[str, Sequence[float]]


def write_services(folder: Path) -> None:
    """A Compose file and the same builds for bake, each of a folder with some files."""
    for number in range(SERVICES):
        source = folder / f"app{number}" / "src"
        source.mkdir(parents=True)
        for part in range(20):
            (source / f"part{part}.txt").write_text(f"{number} {part}\n" * 200)
    write_builds(folder, [f"app{number}" for number in range(SERVICES)], "RUN cat /src/* >/all\n")


def write_large_context(folder: Path) -> None:
    """The same of one service with very many small files."""
    for number in range(LARGE):
        path = folder / "large" / "src" / f"d{number // FILES_IN_A_FOLDER}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    write_builds(folder, ["large"], "")


def write_builds(folder: Path, names: Sequence[str], last_step: str) -> None:
    targets = {}
    lines = ["services:"]
    for name in names:
        (folder / name / "Dockerfile").write_text(f"FROM busybox:1.37\nCOPY src /src\n{last_step}")
        lines += [f"  {name}:", f"    build: ./{name}", "    command: sleep 1000"]
        tags = [f"localhost:{PORTS['registry']}/bake-{name}"]
        targets[name] = {"context": str(folder / name), "tags": tags, "output": ["type=registry"]}
    (folder / "compose.yaml").write_text("\n".join(lines) + "\n")
    bake = {"group": {"default": {"targets": list(targets)}}, "target": targets}
    (folder / "bake.json").write_text(json.dumps(bake))


def change_file(path: Path) -> None:
    path.write_text(f"{time.time_ns()}\n")


def find_cases(folder: Path) -> list[Case]:
    small, large = folder / "services", folder / "files"
    write_services(small)
    write_large_context(large)
    change = partial(change_file, large / "large" / "src" / "d0" / "f0.txt")
    return [
        Case(f"{SERVICES} services, nothing to do", small, 0.5),
        Case(f"{LARGE:,} files, nothing to do", large, 0.5),
        Case(f"{LARGE:,} files, one changed", large, 1.2, ("platform build",), change),
    ]


def time_once(command: Sequence[str], folder: Path, variables: dict[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        list(command), cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr[-500:]}")
    return seconds


def measure(case: Case, variables: dict[str, str], runs: int) -> Times:
    """The seconds of each tool; the namespace has the name of the folder."""
    platform = str(Path(sys.executable).with_name("platform"))
    rest = ["--name", "bench", "--namespace", case.folder.name]
    builder = {**variables, "BUILDX_CONFIG": f"{variables['COMPOSEPLAT_DATA']}/buildx", "BUILDX_BUILDER": "composeplat"}
    buildx = str(Toolchain(variables).need(BUILDX).path)
    commands = {
        "platform build": ([platform, "build", *rest], variables),
        "platform deploy": ([platform, "deploy", *rest], variables),
        PEER: ([buildx, "bake", "--file", "bake.json"], builder),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-WARM_UP, runs):
        for name, (command, environment) in commands.items():
            if case.change:
                case.change()
            seconds = time_once(command, case.folder, environment)
            if number >= 0:
                taken[name].append(seconds)
    return taken


def report(case: Case, taken: Times) -> bool:
    """Print the figures of a case; give whether its limit is met."""
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"| {case.name} | median (min-max) | / {PEER} |\n|---|---|---|")
    for name, times in taken.items():
        spread = f"{medians[name]:.2f} s ({min(times):.2f}-{max(times):.2f})"
        print(f"| {name} | {spread} | {medians[name] / medians[PEER]:.2f} |")
    is_met = max(medians[name] for name in case.judged) <= case.at_most * medians[PEER]
    print(
        f"{' and '.join(case.judged)} at most {case.at_most:g} times {PEER}: {'yes' if is_met else 'NO'}\n", flush=True
    )
    return is_met


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if the limits are met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each tool after some to warm up")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    met: list[bool] = []

    with tempfile.TemporaryDirectory() as name:
        cases = find_cases(Path(name))

        def use(_api: Api, variables: dict[str, str]) -> dict[str, dict[str, object]]:
            found: dict[str, dict[str, object]] = {}
            for case in cases:
                taken = measure(case, variables, options.runs)
                met.append(report(case, taken))
                found[case.name] = {"seconds": taken, "peer": PEER, "at_most": case.at_most, "judged": case.judged}
            return found

        found = on_a_cluster(Path(name), use)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")
    return int(not all(met))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
