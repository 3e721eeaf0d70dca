"""The package as others get it: built, installed into an empty environment, and used from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat import __version__
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_embedded import fetch

WHEEL, SDIST = f"composeplat-{__version__}-py3-none-any.whl", f"composeplat-{__version__}.tar.gz"
INFO = f"composeplat-{__version__}.dist-info"
pytestmark = pytest.mark.build


def run(*args: str | Path, folder: Path = ROOT) -> str:
    done = subprocess.run([str(word) for word in args], cwd=folder, capture_output=True, text=True, check=False)
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


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Both distributions; the wheel is installed, and its requirements as they are locked."""
    folder = tmp_path_factory.mktemp("release")
    build(ROOT, folder, "sdist", "wheel")
    return Release(folder, install(sys.executable, folder / WHEEL, folder / "venv"))


def install(python: str | Path, wheel: Path, folder: Path) -> Path:
    """Install the wheel into an empty environment; gives the command."""
    run(python, "-m", "venv", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    # Nothing is compiled, as most of what comes with the providers is never imported.
    run(*pip, "--no-compile", "--require-hashes", "-r", ROOT / "requirements" / "runtime.txt")
    run(*pip, "--no-deps", "--no-index", wheel)
    return folder / "bin" / "platform"


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


def test_wheel_has_the_whole_package(release: Release) -> None:
    """The wheel holds all of the package: modules, the mark of types, the Go sources and their pins; and no caches."""
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "composeplat").rglob("*") if path.is_file()}
    held = {name for name in release.wheel if not name.startswith(INFO)}

    assert {name for name in files if not name.endswith(".pyc")} == held
    assert {
        "composeplat/py.typed",
        "composeplat/dev/link/go.mod",
        "composeplat/local/frontdoor/go.mod",
        "composeplat/local/mirror/go.sum",
        "composeplat/cli/app.py",
    } <= held


def test_wheel_holds_nothing_else(release: Release) -> None:
    """Beside the package the wheel has the notes on it, and the license."""
    assert {f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")} == {
        name for name in release.wheel if not name.startswith("composeplat/")
    }


def test_sdist_gives_the_same_wheel(release: Release, tmp_path: Path) -> None:
    """From the source distribution the same wheel is built, byte for byte."""
    with tarfile.open(release.folder / SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path / "made", "wheel")

    assert release.wheel == content(tmp_path / "made" / WHEEL)


def test_version(release: Release) -> None:
    """The command that was installed knows its version."""
    assert f"{__version__}\n" == run(release.platform, "--version", folder=release.folder).rpartition(" ")[2]


def test_nothing_is_missing(release: Release) -> None:
    """What the package imports is among its requirements, in versions that go together."""
    assert run(release.folder / "venv" / "bin" / "python", "-m", "pip", "check") == "No broken requirements found.\n"


def test_an_example_is_deployed(release: Release, environment: Environment) -> None:
    """The command that was installed builds and deploys an example, and its address answers."""
    shutil.copytree(ROOT / "examples" / "shop", environment.folder, dirs_exist_ok=True)
    variables = {**environment.variables, "PLATFORM_NAMESPACE": environment.namespace}
    path = os.pathsep.join(
        part for part in variables["PATH"].split(os.pathsep) if Path(part) != Path(sys.executable).parent
    )
    done = subprocess.run(
        [str(release.platform), "deploy"], cwd=environment.folder, env={**variables, "PATH": path},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    urls = done.stdout.split()
    assert len(urls) == 2
    assert "<h1 id=" in until(lambda: fetch(environment, urls[0].rpartition(":")[0]))


@pytest.mark.parametrize("version", [pytest.param("3.12", marks=pytest.mark.endurance), "3.13", "3.14"])
def test_other_versions_of_python(release: Release, environment: Environment, version: str, tmp_path: Path) -> None:
    """The wheel deploys with each version of Python that this machine has, from an environment of its own."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    platform = install(python, release.folder / WHEEL, tmp_path / "venv")
    environment.write(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0s}}}}")
    variables = {**environment.variables, "PYTHONWARNINGS": "error:::composeplat"}
    command = [str(platform), *environment.command_line("deploy")[1:]]
    done = subprocess.run(
        command, cwd=environment.folder, env=variables, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert environment.pods("web")
