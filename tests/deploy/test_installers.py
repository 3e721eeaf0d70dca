"""``uvx composeplat`` and ``pipx`` install the wheel beside nothing else, and what they start is the whole command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat import __version__
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment
from tests.deploy.release import WHEEL, build, find_python, run, write_constraints

BIN = Path(sys.executable).parent
WEB = f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0s}}}}"
pytestmark = pytest.mark.build


@dataclass(frozen=True, slots=True)
class Installers:
    """The wheel, and folders in which uv and pipx find nothing that was there before."""

    wheel: Path
    constraints: Path
    folder: Path

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        return {
            **variables,
            "UV_CACHE_DIR": str(self.folder / "uv"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_CONSTRAINT": str(self.constraints),
            "PIPX_HOME": str(self.folder / "pipx"),
            "PIPX_BIN_DIR": str(self.folder / "bin"),
        }

    def uvx(self, python: str | Path = sys.executable) -> tuple[str | Path, ...]:
        return BIN / "uvx", "--quiet", "--python", python, "--from", self.wheel, "composeplat"

    def pipx(self, command: str, *args: str | Path) -> tuple[str | Path, ...]:
        return BIN / "pipx", command, "--quiet", "--pip-args", f"--constraint {self.constraints}", *args


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Installers:
    folder = tmp_path_factory.mktemp("installers")
    build(ROOT, folder, "wheel")
    return Installers(folder / WHEEL, write_constraints(folder / "constraints"), folder)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_uvx_with_each_python(installers: Installers, environment: Environment, version: str) -> None:
    """With each version of Python, ``uvx composeplat`` reads a Compose file, and prints what it becomes."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    environment.write(WEB)
    uvx, variables = installers.uvx(python), installers.variables(environment.variables)

    assert run(*uvx, "--version", folder=environment.folder, variables=variables) == f"{__version__}\n"
    assert "kind: Deployment" in run(*uvx, "render", folder=environment.folder, variables=variables)


def test_uvx_deploys(installers: Installers, environment: Environment) -> None:
    """``uvx composeplat deploy`` deploys, and ``uvx composeplat status`` shows it."""
    environment.write(WEB)
    variables = installers.variables(environment.variables)
    _, *deploy = environment.command_line("deploy")
    _, *status = environment.command_line("status")

    run(*installers.uvx(), *deploy, folder=environment.folder, variables=variables)

    assert environment.pods("web")
    assert "web" in run(*installers.uvx(), *status, folder=environment.folder, variables=variables)


def test_uv_tool(installers: Installers, environment: Environment) -> None:
    """``uv tool install`` gives the command under both names."""
    tools = {
        "UV_TOOL_DIR": str(installers.folder / "tools"),
        "UV_TOOL_BIN_DIR": str(installers.folder / "tools" / "bin"),
    }
    variables = {**installers.variables(environment.variables), **tools}

    run(BIN / "uv", "tool", "install", "--quiet", "--python", sys.executable, installers.wheel, variables=variables)

    for name in ("platform", "composeplat"):
        assert run(installers.folder / "tools" / "bin" / name, "--version", variables=variables) == f"{__version__}\n"


def test_pipx(installers: Installers, environment: Environment) -> None:
    """``pipx install`` gives the command under both names, and it previews; ``pipx run`` finds the package's name."""
    environment.write(WEB)
    variables = installers.variables(environment.variables)
    _, *preview = environment.command_line("preview")

    run(*installers.pipx("install", installers.wheel), variables=variables)
    for name in ("platform", "composeplat"):
        assert run(installers.folder / "bin" / name, "--version", variables=variables) == f"{__version__}\n"
    shown = run(installers.folder / "bin" / "platform", *preview, folder=environment.folder, variables=variables)
    assert "create Deployment web" in shown

    version = run(*installers.pipx("run", "--spec", installers.wheel, "composeplat", "--version"), variables=variables)
    assert version == f"{__version__}\n"
