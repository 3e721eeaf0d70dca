"""The Go modules of our own, and running Go on them as their builds do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from composeplat.toolchain.cache import Cache, cache_folder
from composeplat.toolchain.golang import need_go
from composeplat.toolchain.tools import FRONTDOOR, LINK

MODULES = (LINK.module, FRONTDOOR.module)


def go(module: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Go in a module, with the versions that are pinned there."""
    program = need_go(os.environ, Cache(cache_folder(os.environ))).path
    settings = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", **variables}
    return subprocess.run(
        [str(program), *args], cwd=module, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
