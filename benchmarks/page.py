"""Measure how soon `platform ui` shows an environment, beside `platform status`, on a real local cluster.

Owns the environment, and the moments that are timed: the address is printed, the definition and the status have come.
Both commands take turns, so that other work of the machine slows down both. How smooth the page stays in a browser is
measured by `tests/ui/test_smoothness.py`.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import failures

SERVICES = 10
RUNS = 7
LIMIT_S = 1.0
NAMESPACE = "bench"
_PLATFORM = str(Path(sys.executable).with_name("platform"))
_SHOWN = {"definition", "status"}


@dataclass(frozen=True)
class Figures:
    """Seconds, as medians."""

    address: float
    """Until the address is printed."""
    shown: float
    """Until the page has the definition and the status."""
    status: float
    """All of `platform status --json`."""


def time_page(folder: Path, variables: dict[str, str]) -> tuple[float, float]:
    args = [_PLATFORM, "ui", "--no-browser", "--name", "bench", "--namespace", NAMESPACE]
    began = time.monotonic()
    with subprocess.Popen(
        args, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        url, code = ((process.stdout.readline() if process.stdout else "").partition(":")[2].strip() for _ in range(2))
        address = time.monotonic() - began
        topics: set[str] = set()
        path = f"{url}api/environments/{NAMESPACE}/bench/stream"
        with urllib.request.urlopen(
            urllib.request.Request(path, headers={"Authorization": f"Bearer {code}"})
        ) as stream:
            while not topics >= _SHOWN:
                topics.add(json.loads(stream.readline())["topic"])
        shown = time.monotonic() - began
        process.send_signal(signal.SIGINT)
    return address, shown


def time_status(folder: Path, variables: dict[str, str]) -> float:
    args = [_PLATFORM, "status", "--json", "--name", "bench", "--namespace", NAMESPACE]
    began = time.monotonic()
    subprocess.run(args, cwd=folder, env=variables, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def measure(folder: Path, variables: dict[str, str]) -> Figures:
    services = {f"web{number}": {"image": "busybox:1.37", "command": "sleep 100000"} for number in range(SERVICES)}
    (folder / "compose.yaml").write_text(json.dumps({"services": services}))
    deploy = [_PLATFORM, "deploy", "--name", "bench", "--namespace", NAMESPACE]
    subprocess.run(deploy, cwd=folder, env=variables, capture_output=True, check=True)
    rows = [(*time_page(folder, variables), time_status(folder, variables)) for _ in range(RUNS)]
    return Figures(*(statistics.median(column) for column in zip(*rows, strict=True)))


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if the page is shown within the limit, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as name:
        found = failures.on_a_cluster(Path(name), lambda _, variables: measure(Path(name), variables))
    print(f"address after {found.address:.2f} s, shown after {found.shown:.2f} s; platform status {found.status:.2f} s")
    print(f"shown within {LIMIT_S:.0f} s: {'yes' if found.shown <= LIMIT_S else 'NO'}")
    if options.json:
        Path(options.json).write_text(json.dumps(asdict(found), indent=2) + "\n")
    return int(found.shown > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
