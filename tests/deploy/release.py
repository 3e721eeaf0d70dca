"""The distributions of the package, and ways to install them, for tests that use it as others get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from composeplat import __version__
from tests.conftest import ROOT

WHEEL, SDIST = f"composeplat-{__version__}-py3-none-any.whl", f"composeplat-{__version__}.tar.gz"
RUNTIME = ROOT / "requirements" / "runtime.txt"


def run(*args: str | Path, folder: Path = ROOT, variables: dict[str, str] | None = None) -> str:
    """Run a program that must end well; gives its standard output."""
    command = [str(word) for word in args]
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, output: Path, *targets: str) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-d", output, *(f"-t{target}" for target in targets), folder=folder)


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@dataclass(frozen=True, slots=True)
class Release:
    folder: Path
    platform: Path
    """The command, in an environment where nothing else is installed."""

    @property
    def wheel(self) -> dict[str, bytes]:
        return content(self.folder / WHEEL)


def install(
    python: str | Path, wheel: Path, folder: Path, inside: Sequence[str] = (), *, requirements: Path = RUNTIME
) -> Path:
    """Install the wheel into an empty environment, inside of another root if one is given; gives the command."""
    run(*inside, python, "-m", "venv", folder)
    pip: tuple[str | Path, ...] = (*inside, folder / "bin" / "python", "-m", "pip", "install", "--quiet")
    # Nothing is compiled, as most of what comes with the providers is never imported.
    run(*pip, "--disable-pip-version-check", "--no-compile", "--require-hashes", "-r", requirements)
    run(*pip, "--disable-pip-version-check", "--no-deps", "--no-index", wheel)
    return folder / "bin" / "platform"


def write_constraints(path: Path) -> Path:
    """Write the locked versions for installers that get the wheel by itself, which has no hash."""
    pins = re.findall(r"^([\w.\[\]-]+==\S+)", RUNTIME.read_text(), re.MULTILINE)
    assert len(pins) > 20
    path.write_text("\n".join(pins) + "\n")
    return path


def find_python(version: str) -> Path | None:
    """Find an interpreter of a version: on PATH, or among those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [Path(on_path) for on_path in [shutil.which(f"python{version}")] if on_path]
    found += sorted(pyenv.glob(f"{version}.*/bin/python"))
    return next((path for path in found if is_python(path, version)), None)


def is_python(path: Path, version: str) -> bool:
    """Whether a program is that version: pyenv has programs of names whose version is not installed."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version
