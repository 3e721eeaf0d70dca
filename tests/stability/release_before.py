"""The release before this one: its commit, and its command in an environment of its own.

``release_before.txt`` has its version and its commit, as a clone may lack tags. A new release changes both.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT
from tests.deploy.release import RUNTIME, build, install, run


class Release(NamedTuple):
    version: str
    commit: str


BEFORE = Release(*(Path(__file__).parent / "release_before.txt").read_text(encoding="utf-8").split())


def has_history() -> bool:
    """Whether this folder has the commit: a shallow clone and a copy without Git don't."""
    args = ["git", "-C", str(ROOT), "cat-file", "-e", f"{BEFORE.commit}^{{commit}}"]
    return subprocess.run(args, capture_output=True, check=False).returncode == 0


def file_before(path: str) -> str:
    """Return a file as the release has it."""
    return run("git", "show", f"{BEFORE.commit}:{path}")


def install_release(folder: Path) -> Path:
    """Build the wheel of the release from its commit, and install it with the packages that it locks."""
    archive, sources, wheels = folder / "sources.tar", folder / "sources", folder / "wheels"
    run("git", "archive", "--output", archive, BEFORE.commit)
    with tarfile.open(archive) as packed:
        packed.extractall(sources, filter="data")
    build(sources, wheels, "wheel")
    (wheel,) = wheels.glob(f"composeplat-{BEFORE.version}-*.whl")
    locked = sources / "requirements" / "runtime.txt"
    if locked.read_bytes() == RUNTIME.read_bytes():
        return _install_beside(wheel, folder / "venv")
    return install(sys.executable, wheel, folder / "venv", requirements=locked)


def _install_beside(wheel: Path, folder: Path) -> Path:
    """Install a wheel that needs the very packages of the tests, which are there already."""
    run(sys.executable, "-m", "venv", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-index", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    # Files with this ending in a folder that such a file names are not read: not that of the present version.
    (site / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return folder / "bin" / "platform"
