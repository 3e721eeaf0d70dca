"""Measure how soon `platform deploy` reports why a service can't run, on a real local cluster.

Owns three services that can't come up, and the moments that are timed: when the cluster knew, and when the command
ended.
The events of the cluster are listed every 0.2 s while the command runs, so each moment is known to within that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster_kind import local_cluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS

PORTS = {"api": 25643, "registry": 25700, "https": 25644, "http": 25680}
POLL_INTERVAL_S = 0.2
WITHIN = 20.0
"""Seconds after the second event."""

SERVICES = {
    "image that its registry does not have": f"image: 'localhost:{PORTS['registry']}/busybox:no-such-tag'",
    "image of a registry that can't be reached": "image: 'localhost:9/busybox:1.37'",
    "crash loop": "{image: 'busybox:1.37', command: sh -c 'echo no database; exit 4'}",
    "node selector that fits no node": "{image: 'busybox:1.37', command: sleep 1000, x-node-selector: {disk: none}}",
}


class Failed(Exception):
    """A deploy did not end as it must."""


@dataclass(frozen=True)
class Row:
    case: str
    events: int
    """Events of the service in the cluster when the command ended."""
    first: float
    """Seconds from the command's start to the first."""
    second: float | None
    ended: float

    @property
    def latency(self) -> float:
        """Seconds from the second event to the end; from the first where there was no second, below 0 if none."""
        return self.ended - (self.first if self.second is None else self.second)


def moments(api: Api, namespace: str) -> list[str]:
    """List the events and ended containers that show that a service can't run, by names that don't repeat."""
    found = []
    for event in api.items(kind_path("v1", "Event", namespace)):
        if event["reason"] in ("Failed", "FailedScheduling") and "ImagePullBackOff" not in event["message"]:
            count = (event.get("series") or {}).get("count") or event.get("count") or 1
            about_pull = event["reason"] == "Failed" and "Failed to pull" in event["message"]
            if event["reason"] == "FailedScheduling" or about_pull:
                found += [f"{event['metadata']['uid']}/{number}" for number in range(count)]
    for pod in api.items(kind_path("v1", "Pod", namespace)):
        for status in pod["status"].get("containerStatuses") or []:
            ended = status["restartCount"] + (0 if "running" in status["state"] else 1)
            if "terminated" in status["state"] or "terminated" in status["lastState"]:
                found += [f"{pod['metadata']['uid']}/{number}" for number in range(ended)]
    return found


def measure(api: Api, case: str, folder: Path, namespace: str, variables: dict[str, str]) -> Row:
    written = SERVICES[case]
    text = written if written.startswith("{") else f"{{{written}}}"
    (folder / "compose.yaml").write_text(f"services:\n  app: {text}\n")
    platform = str(Path(sys.executable).with_name("platform"))
    seen: dict[str, float] = {}
    over = threading.Event()
    began = time.monotonic()

    def watch() -> None:
        while not over.is_set():
            for moment in moments(api, namespace):
                seen.setdefault(moment, time.monotonic() - began)
            over.wait(POLL_INTERVAL_S)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    done = subprocess.run(
        [platform, "deploy", "--name", "bench", "--namespace", namespace], cwd=folder, env=variables,
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    ended = time.monotonic() - began
    over.set()
    watcher.join()
    if done.returncode != 1 or "[deploy-failed]" not in done.stderr:
        raise Failed(f"{case}: ended with status {done.returncode}: {done.stderr[-500:]}")
    times = sorted(seen.values())
    if not times:
        raise Failed(f"{case}: the cluster has no event")
    return Row(case, len(times), times[0], times[1] if len(times) > 1 else None, ended)


def show(rows: Sequence[Row]) -> str:
    lines = ["| Case | First event after | Second | Ended after | From the second event (else the first) |"]
    lines.append("|---" * 5 + "|")
    for row in rows:
        second = "-" if row.second is None else f"{row.second:.1f} s"
        lines.append(f"| {row.case} | {row.first:.1f} s | {second} | {row.ended:.1f} s | {row.latency:.1f} s |")
    return "\n".join(lines)


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if every failure was reported in time, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as name:
        rows = on_a_cluster(Path(name), lambda api, variables: [
            measure(api, case, Path(name), f"bench-{number}", variables) for number, case in enumerate(SERVICES)
        ])  # fmt: skip
    print(show(rows))
    in_time = all(row.latency <= WITHIN for row in rows)
    print(f"each within {WITHIN:.0f} s: {'yes' if in_time else 'NO'}")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return int(not in_time)


def on_a_cluster(folder: Path, use: Callable[[Api, dict[str, str]], Any]) -> Any:
    """Start a local cluster for the benchmark, and delete it at the end."""
    environment = {**os.environ, "COMPOSEPLAT_CLUSTER": str(folder / "cluster")}
    toolchain = Toolchain(environment)
    toolchain.need_all(DEPLOY_TOOLS)
    cluster = local_cluster(environment, ports=PORTS)
    cluster.start()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "COMPOSE", "PLATFORM_", "KUBE"))}
    variables = {
        **clean, "KUBECONFIG": str(cluster.layout.kubeconfig), "COMPOSEPLAT_CLUSTER": str(folder / "cluster"),
        "COMPOSEPLAT_DATA": str(folder / "data"), "COMPOSEPLAT_CACHE": str(toolchain.cache.folder),
    }  # fmt: skip
    try:
        push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
        with Api(cluster.access) as api:
            return use(api, variables)
    finally:
        cluster.delete()


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
