"""Ask BuildKit's history for a failed build.

It is apart, as it runs a program: Pulumi's provider reports the error of a build, and rarely its last log lines.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from composeplat.engine.build_failures import matches

_TIMEOUT_S = 10.0
_MAX_BUILDS = 20


def find_record(
    buildx: Path, builder: str, variables: Mapping[str, str], text: str, context: str
) -> Mapping[str, Any] | None:
    """Find the newest failed build of a context with this error; none where the builder can't be asked."""
    for reference in _failed(buildx, builder, variables):
        written = _ask(buildx, variables, "inspect", "--format", "json", *_of(builder), reference)
        try:
            record = json.loads(written)
        except ValueError:
            continue
        if isinstance(record, dict) and matches(record, text, context):
            return record
    return None


def _failed(buildx: Path, builder: str, variables: Mapping[str, str]) -> Iterator[str]:
    lines = _ask(buildx, variables, "ls", "--no-trunc", "--format", "json", *_of(builder)).splitlines()
    for line in lines[:_MAX_BUILDS]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if str(row.get("status")) == "Error":
            yield str(row.get("ref")).rpartition("/")[2]


def _of(builder: str) -> list[str]:
    return ["--builder", builder] if builder else []


def _ask(buildx: Path, variables: Mapping[str, str], *args: str) -> str:
    try:
        done = subprocess.run(
            [str(buildx), "history", *args],
            env=dict(variables),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            # Its output has paths relative to the current folder.
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
