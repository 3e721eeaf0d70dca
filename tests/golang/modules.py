"""The Go modules of this project, and Go for them with the settings of their builds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.golang import FLAGS, need_go
from composeplat.toolchain.tools import FRONTDOOR, LINK, MIRROR

MODULES = (LINK.module, FRONTDOOR.module, MIRROR.module)


def go(module: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Go in a module, with the versions that are pinned there."""
    return run_with_go(module, "go", *args, **variables)


def run_with_go(module: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose PATH has the project's Go."""
    program = need_go(os.environ, Cache(cache_folder(os.environ))).path
    path = os.pathsep.join((str(program.parent), os.environ.get("PATH", "")))
    settings = {"GOFLAGS": FLAGS, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", **variables}
    environment = {**os.environ, "PATH": path, **settings}
    # Found by the PATH that it is given, and not by that of this process.
    found = shutil.which(command[0], path=path) or command[0]
    return subprocess.run(
        [found, *command[1:]], cwd=module, env=environment, capture_output=True, text=True, check=False
    )
