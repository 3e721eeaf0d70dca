"""The clients of the builder and of the container runtime: a command that runs to its end.

Owns its time limit and its errors. Must not know what the commands do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from composeplat.diagnostics import ComposeplatError

_TIMEOUT_S = 300.0
_MAX_ERROR_CHARS = 300


def run_client(command: Sequence[str], shown: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the output of a command, which errors show as ``shown``."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ComposeplatError(f"{shown} did not end within {_TIMEOUT_S:.0f} s") from error
    if done.returncode:
        raise ComposeplatError(f"{shown} failed: {done.stderr.strip()[-_MAX_ERROR_CHARS:]}")
    return done.stdout
