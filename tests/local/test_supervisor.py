"""The process that keeps the cluster's parts running: what it does with their logs, without a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

MIB = 1024**2


def test_logs_are_kept_small(tmp_path: Path) -> None:
    """A part writes on where its log ended; one of more than 8 MiB is put aside first, in place of the one before."""
    for name, size in (("small", 8 * MIB), ("large", 8 * MIB + 1), ("large.log.1", 1)):
        with (tmp_path / (name if name.endswith(".1") else f"{name}.log")).open("wb") as stream:
            stream.truncate(size)
    parts = [{"name": name, "args": ["sh", "-c", "echo said; exec sleep 60"]} for name in ("new", "small", "large")]
    states = tmp_path / "states"
    plan = {"parts": parts, "logs": str(tmp_path), "states": str(states), "environment": {"PATH": "/usr/bin:/bin"}}
    (tmp_path / "plan").write_text(json.dumps(plan))

    with subprocess.Popen([sys.executable, "-m", "composeplat.local.supervisor", str(tmp_path / "plan")]) as supervisor:
        try:
            logs = [tmp_path / f"{name}.log" for name in ("new", "small", "large")]
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and not all(log.exists() and title(log) for log in logs):
                time.sleep(0.05)
        finally:
            supervisor.terminate()

    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.log*")}
    assert sizes == {
        "new.log": 5, "small.log": 8 * MIB + 5, "large.log": 5, "large.log.1": 8 * MIB + 1,
    }  # fmt: skip


def title(log: Path) -> bool:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 5))
        return stream.read() == b"said\n"
