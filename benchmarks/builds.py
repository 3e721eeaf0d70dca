"""Measure builds that have nothing to do, beside `buildx bake` on the same services, builder and registry.

Owns what is built, and the limit the figures are held to.
Both tools build and push services whose every step is known already, in turns; each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from failures import PORTS, Failed, on_a_cluster

from composeplat.cluster.api import Api
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX

SERVICES = 20
RUNS = 5
WARM_UP = 3
"""The runs until a build and a deploy have found nothing to do."""
AT_MOST = 0.5
"""Times what buildx takes."""


def copy_host_content(folder: Path) -> None:
    """A Compose file and the same builds for bake, each of a folder with some files."""
    targets = {}
    lines = ["services:"]
    for number in range(SERVICES):
        context = folder / f"app{number}"
        (context / "src").mkdir(parents=True)
        for part in range(20):
            (context / "src" / f"part{part}.txt").write_text(f"{number} {part}\n" * 200)
        (context / "Dockerfile").write_text("FROM busybox:1.37\nCOPY src /src\nRUN cat /src/* >/all\n")
        lines += [f"  app{number}:", f"    build: ./app{number}", "    command: sleep 1000"]
        tags = [f"localhost:{PORTS['registry']}/bake-app{number}"]
        targets[f"app{number}"] = {"context": str(context), "tags": tags, "output": ["type=registry"]}
    (folder / "compose.yaml").write_text("\n".join(lines) + "\n")
    bake = {"group": {"default": {"targets": list(targets)}}, "target": targets}
    (folder / "bake.json").write_text(json.dumps(bake))


def time_once(command: Sequence[str], folder: Path, variables: dict[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        list(command), cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr[-500:]}")
    return seconds


def measure(folder: Path, variables: dict[str, str], runs: int) -> dict[str, list[float]]:
    platform = str(Path(sys.executable).with_name("platform"))
    rest = ["--name", "bench", "--namespace", "bench"]
    builder = {**variables, "BUILDX_CONFIG": f"{variables['COMPOSEPLAT_DATA']}/buildx", "BUILDX_BUILDER": "composeplat"}
    buildx = str(Toolchain(variables).need(BUILDX).path)
    commands = {
        "platform build": ([platform, "build", *rest], variables),
        "platform deploy": ([platform, "deploy", *rest], variables),
        "buildx bake": ([buildx, "bake", "--file", "bake.json"], builder),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-WARM_UP, runs):
        for name, (command, environment) in commands.items():
            seconds = time_once(command, folder, environment)
            if number >= 0:
                taken[name].append(seconds)
    return taken


def main(words: Sequence[str] | None = None) -> int:
    """Give 0 where the limit is met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each tool after some to warm up")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(words)

    def use(_api: Api, variables: dict[str, str]) -> dict[str, list[float]]:
        return measure(folder, variables, options.runs)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_host_content(folder)
        taken = on_a_cluster(folder, use)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"| {SERVICES} services, nothing to do | median (min-max) | / buildx bake |\n|---|---|---|")
    for name, times in taken.items():
        ratio = medians[name] / medians["buildx bake"]
        print(f"| {name} | {medians[name]:.2f} s ({min(times):.2f}-{max(times):.2f}) | {ratio:.2f} |")
    ours = max(medians["platform build"], medians["platform deploy"])
    is_met = ours <= AT_MOST * medians["buildx bake"]
    print(f"platform build and deploy at most {AT_MOST:g} times buildx bake: {'yes' if is_met else 'NO'}")
    if options.json:
        Path(options.json).write_text(json.dumps(taken, indent=2) + "\n")
    return int(not is_met)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
