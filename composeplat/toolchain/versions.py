"""What a program prints of its version.

Owns running it, with an end to it: a program on PATH may be anything. Must not know what the output means.
It is apart because Go is asked before the programs that it builds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_TIMEOUT_S = 30.0


def version_output(path: Path, args: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a program that prints its version; empty if it can't be run, fails or doesn't end."""
    try:
        done = subprocess.run(
            [path, *args],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
