"""Packages of npm that only tests use, as a ``package-lock.json`` pins them, in the cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache


def node_modules(source: Path) -> Path:
    """Install the packages of a folder, once for each state of its lock file, and run no script of any package."""
    lock = source / "package-lock.json"
    cache = Cache(cache_folder(os.environ))
    folder = cache.folder / "node" / hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    with cache.lock("node", lambda: None):
        if not folder.exists():
            staged = folder.with_name("staged")
            shutil.rmtree(staged, ignore_errors=True)
            shutil.copytree(source, staged)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=staged, check=True)
            staged.rename(folder)
    return folder / "node_modules"
