"""The package as others get it: built, installed into an empty environment, and used from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from composeplat import __version__
from tests.conftest import ROOT
from tests.debian_root import inside, needs_debian, root_archive
from tests.deploy.conftest import SLEEP, Environment, fetch, until
from tests.deploy.release import SDIST, WHEEL, Release, build, content, find_python, install, run

INFO = f"composeplat-{__version__}.dist-info"
pytestmark = pytest.mark.build


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Both distributions; the wheel is installed, and its requirements as they are locked."""
    folder = tmp_path_factory.mktemp("release")
    build(ROOT, folder, "sdist", "wheel")
    return Release(folder, install(sys.executable, folder / WHEEL, folder / "venv"))


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


def test_a_project_is_deployed(release: Release, environment: Environment) -> None:
    """The command that was installed builds and deploys a project, and its address answers."""
    environment.write("services: {web: {build: ., command: httpd -f -p 8080 -h /www, ports: ['80:8080']}}\n")
    (environment.folder / "Dockerfile").write_text("FROM busybox:1.37\nRUN mkdir /www && echo built >/www/index.html\n")
    variables = {**environment.variables, "PLATFORM_NAMESPACE": environment.namespace}
    path = os.pathsep.join(
        part for part in variables["PATH"].split(os.pathsep) if Path(part) != Path(sys.executable).parent
    )
    done = subprocess.run(
        [str(release.platform), "deploy"], cwd=environment.folder, env={**variables, "PATH": path},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    (url,) = done.stdout.split()
    assert until(lambda: fetch(environment, url)) == "built\n"


def test_the_page_of_an_installation(release: Release, environment: Environment) -> None:
    """Without its extra, the installed command exports the page, and says what a served one needs."""
    environment.write("services: {web: {image: busybox}}\n")
    _, *args = environment.command_line("ui")

    run(release.platform, *args, "--export", "page", folder=environment.folder, variables=environment.variables)
    served = subprocess.run(
        [str(release.platform), *args], cwd=environment.folder, env=environment.variables,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert 'id="data"' in (environment.folder / "page" / "index.html").read_text()
    assert served.returncode == 4
    assert "starlette, uvicorn" in served.stderr
    assert "pip install 'composeplat[ui]'" in served.stderr


@pytest.mark.endurance
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_versions_of_python(release: Release, environment: Environment, version: str, tmp_path: Path) -> None:
    """The wheel deploys with each version of Python that this machine has, from an environment of its own."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")

    deploy_from(environment, install(python, release.folder / WHEEL, tmp_path / "venv"))


@needs_debian
@pytest.mark.endurance
def test_the_python_of_debian_testing(release: Release, environment: Environment, tmp_path: Path) -> None:
    """The wheel deploys with Python 3.14, in a root file system that has nothing else: Debian's next release has it."""
    archive = root_archive("forky", ("python3", "python3-venv", "ca-certificates"))
    folders = {ROOT, release.folder.parents[1], tmp_path, Path(environment.variables["COMPOSEPLAT_CACHE"])}
    there = inside(archive, tmp_path.parent / f"{tmp_path.name}-root", sorted(folders))
    try:
        assert run(*there, "python3", "--version").startswith("Python 3.14.")
        deploy_from(environment, install("python3", release.folder / WHEEL, tmp_path / "venv", there), there)
    finally:
        shutil.rmtree(tmp_path.parent / f"{tmp_path.name}-root")


def deploy_from(environment: Environment, platform: Path, there: Sequence[str] = ()) -> None:
    """Deploy a service with an installed command; a warning of Python about this package fails."""
    environment.write(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0s}}}}")
    variables = {**environment.variables, "PYTHONWARNINGS": "error:::composeplat"}
    _, *args = environment.command_line("deploy")

    run(*there, platform, *args, folder=environment.folder, variables=variables)

    assert environment.pods("web")
