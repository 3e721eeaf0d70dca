"""Measure `platform render` as a whole process, beside `kompose convert` on the same file.

Owns the definitions, the way a run is timed, and the limits of the figures.
Every run is a process of its own, started as a user starts it; the two tools take turns, so that other work of the
machine slows down both. kompose is the one on PATH, else one of a pinned version (:mod:`peers`).
A tool is timed only if it ends with status 0 and prints the expected objects: a tool that fails early would win.

kompose gets its own version once for every object, by starting itself if it is on PATH, and that is most of its time.
It is measured without, at its fastest, unless ``--as-installed`` is given.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from verdicts import conclude

_T = TypeVar("_T")

SIZES = (10, 100, 500)
RUNS = 5

JUDGED_FROM = 500
"""Services from which the comparison counts: below, most of the time is the start of a process."""
OVER_KOMPOSE = 0.5
"""How many times as long as kompose at most."""
MOST_MEMORY = 150
"""MB, for the largest definition."""
LINEAR_WITHIN = 1.1
"""Time may grow by this factor more than the number of services does."""


class Failed(Exception):
    """A tool did not do its step."""


@dataclass(frozen=True)
class Tool:
    name: str
    command: tuple[str, ...]
    objects: int
    """Objects for each service of the definition."""
    path: str = os.defpath
    """Where the tool finds other programs."""


@dataclass(frozen=True)
class Figures:
    """Seconds, and MB of the run that took most memory."""

    median: float
    least: float
    most: float
    memory: float


@dataclass(frozen=True)
class Row:
    services: int
    platform: Figures
    kompose: Figures | None
    """None where it was not measured."""

    @property
    def ratio(self) -> float | None:
        """Our time over the peer's."""
        return self.platform.median / self.kompose.median if self.kompose else None


def definition(services: int) -> str:
    """A definition whose every service becomes a StatefulSet, a Service, a claim and a Secret."""
    lines = ["services:"]
    for number in range(services):
        lines += [
            f"  app{number}:",
            f"    image: registry.example.com/team/app{number}:1.4.2",
            "    command: ['serve', '--verbose']",
            "    ports: ['8080', '9000']",
            "    environment:",
            f"      APP_NAME: app{number}",
            "      LOG_LEVEL: info",
            "      DATABASE_URL: postgres://app@database:5432/app",
            "    volumes:",
            f"      - data{number}:/var/lib/app",
            "    healthcheck:",
            "      test: ['CMD', 'wget', '-q', 'http://localhost:8080/ready']",
            "      interval: 10s",
            "      timeout: 2s",
            "      retries: 3",
            "    deploy:",
            "      replicas: 1",
            "      resources:",
            "        limits: {cpus: '0.5', memory: 256M}",
            "    restart: always",
        ]
    lines.append("volumes:")
    lines += [f"  data{number}: {{}}" for number in range(services)]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Run:
    """The output of a process, and the seconds and the resources it took."""

    status: int
    output: bytes
    messages: str
    seconds: float
    usage: resource.struct_rusage


def run_once(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Run:
    """Run a command as a process with these variables and a home in its folder."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"HOME": str(folder), "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=messages,
        )
        # The peak of the child counts from before it is the tool: this script must stay smaller than the tool.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        return Run(process.returncode, output.read(), messages.read().decode(errors="replace"), seconds, usage)


def in_turns(cases: Mapping[str, Callable[[], _T]], runs: int) -> dict[str, list[_T]]:
    """Warm each case up, then run them in turns, and return the runs of each."""
    for run_case in cases.values():
        run_case()
    taken: dict[str, list[_T]] = {name: [] for name in cases}
    for _ in range(runs):
        for name, run_case in cases.items():
            taken[name].append(run_case())
    return taken


def time_once(tool: Tool, file: Path) -> tuple[float, float]:
    """Run a tool over a file, and give the seconds and MB it took."""
    command = [word.replace("{file}", file.name) for word in tool.command]
    run = run_once(command, file.parent, {"PATH": tool.path})
    _check(tool, file, run)
    return run.seconds, run.usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def _check(tool: Tool, file: Path, run: Run) -> None:
    if run.status != 0:
        lines = run.messages.strip().splitlines()
        raise Failed(f"ended with status {run.status}: {lines[-1] if lines else 'and no message'}")
    wanted = file.read_text().count("image:") * tool.objects
    found = sum(line.startswith(b"kind:") for line in run.output.splitlines())
    if found != wanted:
        raise Failed(f"ended with status 0, but gave {found} objects where {wanted} are expected")


def measure(tools: Sequence[Tool], file: Path, runs: int) -> dict[str, Figures]:
    taken = in_turns({tool.name: partial(time_once, tool, file) for tool in tools}, runs)
    return {name: _figures(results) for name, results in taken.items()}


def _figures(results: list[tuple[float, float]]) -> Figures:
    seconds = [second for second, _ in results]
    return Figures(
        median=statistics.median(seconds),
        least=min(seconds),
        most=max(seconds),
        memory=max(memory for _, memory in results),
    )


# the tools ------------------------------------------------------------------------------------------------------------


def our_tool() -> Tool:
    installed = Path(sys.executable).with_name("platform")
    if not installed.exists():
        raise Failed("`platform` is not installed beside this Python: run `make env`")
    return Tool("platform", (str(installed), "render", "-f", "{file}"), objects=4)


def find_kompose() -> str:
    """The kompose on PATH, else one that is built."""
    on_path = shutil.which("kompose")
    if on_path:
        return on_path
    build = [sys.executable, str(Path(__file__).with_name("peers.py"))]
    done = subprocess.run(build, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Failed("can't be built")
    return done.stdout.strip()


def find_peer(folder: Path, *, as_installed: bool) -> tuple[Tool | None, str]:
    """Return kompose and its version if it works; else None, and why."""
    try:
        program = find_kompose()
    except Failed as error:
        return None, f"kompose {error}"
    # It keeps variables in the workload itself: no Secret, so one object less for each service.
    path = os.environ.get("PATH", os.defpath) if as_installed else str(folder)
    peer = Tool("kompose", (program, "convert", "--stdout", "-f", "{file}"), objects=3, path=path)
    file = folder / "probe.yaml"
    file.write_text(definition(1))
    try:
        time_once(peer, file)
    except Failed as error:
        return None, f"kompose {error}"
    except OSError as error:
        return None, f"kompose can't be run: {error.strerror}"
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    return peer, version.stdout.strip() or "of unknown version"


# limits and output ----------------------------------------------------------------------------------------------------


def judge(rows: Sequence[Row]) -> dict[str, bool | None]:
    """Hold the figures to the limits; None is a limit that these figures can't judge."""
    last = rows[-1]
    growth = growth_of(rows)
    return {
        f"at most {OVER_KOMPOSE:g} times kompose": (
            last.ratio <= OVER_KOMPOSE if last.ratio is not None and last.services >= JUDGED_FROM else None
        ),
        f"below {MOST_MEMORY} MB": last.platform.memory < MOST_MEMORY,
        "linear": None if growth is None else growth[0] <= growth[1] * LINEAR_WITHIN,
    }


def growth_of(rows: Sequence[Row]) -> tuple[float, float] | None:
    """How much longer the largest takes than the one before it, and how many times more services it has."""
    if len(rows) < 2:  # noqa: PLR2004 -- two make a growth
        return None
    before, last = rows[-2], rows[-1]
    return last.platform.median / before.platform.median, last.services / before.services


def table(rows: Sequence[Row]) -> str:
    lines = [
        "services  platform: median (min-max)  peak    kompose: median (min-max)   peak    platform/kompose",
    ]
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
        peer = _cells(row.kompose) if row.kompose else f"{'-':<26}  {'-':<6}"
        lines.append(f"{row.services:>8}  {_cells(row.platform)}  {peer}  {ratio}")
    return "\n".join(lines)


def _cells(figures: Figures) -> str:
    times = f"{figures.median:.3f} s ({figures.least:.3f}-{figures.most:.3f})"
    return f"{times:<26}  {figures.memory:>3.0f} MB"


def _options(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of services, from small to large")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each tool after one to warm up")
    parser.add_argument("--alone", action="store_true", help="measure platform without kompose")
    parser.add_argument("--as-installed", action="store_true", help="let kompose find and start itself")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    return parser.parse_args(args)


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if every limit that could be judged is met, else 1."""
    options = _options(args)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer, about_peer = (
            (None, "kompose is left out") if options.alone else find_peer(folder, as_installed=options.as_installed)
        )
        print(f"kompose {about_peer}" if peer else f"not compared: {about_peer}")
        tools = [our_tool(), peer] if peer else [our_tool()]
        for size in map(int, options.sizes.split(",")):
            file = folder / f"compose-{size}.yaml"
            file.write_text(definition(size))
            figures = measure(tools, file, options.runs)
            rows.append(Row(size, figures["platform"], figures.get("kompose")))
    print(table(rows))
    growth = growth_of(rows)
    if growth:
        print(
            f"growth from {rows[-2].services} to {rows[-1].services} services: {growth[0]:.2f}, linear: {growth[1]:g}"
        )
    content = {
        "kompose": about_peer,
        "runs": options.runs,
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
        "growth": growth and growth[0],
    }
    return conclude(judge(rows), options.json, content)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(f"platform {problem}") from None
