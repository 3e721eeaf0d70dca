"""The programs of ours that are written in Go hold their own tests."""

from __future__ import annotations

import os
import subprocess

import pytest

from composeplat.toolchain.cache import Cache, cache_folder
from composeplat.toolchain.golang import need_go
from composeplat.toolchain.steps import Steps
from composeplat.toolchain.tools import FRONTDOOR, LINK, Tool


def go(tool: Tool, *words: str) -> subprocess.CompletedProcess[str]:
    program = need_go(os.environ, Cache(cache_folder(os.environ)), Steps(os.environ)).path
    settings = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    return subprocess.run(
        [str(program), *words], cwd=tool.folder, env=settings, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(600)
def test_the_link() -> None:
    """Syncing, sessions, forwards and the lies of a container: the module's own tests pass."""
    done = go(LINK, "test", "./...")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("tool", [LINK, FRONTDOOR], ids=lambda tool: tool.name)
def test_go_vet(tool: Tool) -> None:
    """There is nothing that `go vet` objects to."""
    vetted = go(tool, "vet", "./...")
    assert vetted.returncode == 0, vetted.stderr
