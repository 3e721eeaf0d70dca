"""Plain Pulumi goes on where ``platform deploy`` left."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment

TEXT = (
    f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
    "  keeper: {<<: *app, volumes: ['data:/data'], environment: {A: '${A:-1}'}}\n"
    "  web: {<<: *app, ports: ['8080'], depends_on: [keeper]}\n"
    "volumes: {data: {}}\nendpoints: [{path: /, service: web, port: 8080}]\n"
)


def test_eject(environment: Environment, tmp_path: Path) -> None:
    """A plain preview after a deploy shows no change; a plain up makes one; the next deploy finds it made."""
    environment.deploy(TEXT, "--no-wait").expect()
    folder = environment.folder / "plain"
    ejected = environment.platform("eject", "-o", str(folder)).expect()
    exported = dict(shlex.split(line)[1].split("=", 1) for line in ejected.stdout.splitlines())
    host = tmp_path / "bin" / "pulumi-language-python"
    host.parent.mkdir()
    host.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/plain/language_host.py "$@"\n')
    host.chmod(0o755)
    program = Toolchain(environment.variables).need(PULUMI).path
    variables = {
        **environment.variables, **exported, "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": f"{environment.variables['COMPOSEPLAT_DATA']}/pulumi",
        "PATH": f"{host.parent}:{environment.variables['PATH']}",
    }  # fmt: skip

    def pulumi(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), *words, "--stack", environment.namespace, "--non-interactive"]
        return subprocess.run(
            command, cwd=folder, env={**variables, **more}, capture_output=True, text=True, check=False
        )

    shown = pulumi("preview", "--expect-no-changes")
    made = pulumi("up", "--yes", A="2")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert made.returncode == 0, made.stdout + made.stderr
    environment.platform("preview", "--expect-no-changes", A="2").expect()


def test_this_repository(environment: Environment) -> None:
    """The program in stacks/ is the one that eject writes, and its configuration names an example."""
    ejected = environment.deploy(TEXT, "--no-wait").expect()
    folder = environment.folder / "plain"
    environment.platform("eject", "-o", str(folder)).expect()

    assert ejected.status == 0
    assert (ROOT / "stacks" / "__main__.py").read_text().splitlines()[2:] == (
        folder / "__main__.py"
    ).read_text().splitlines()[2:]
    assert "examples/shop/compose.yaml" in (ROOT / "stacks" / "Pulumi.demo.yaml").read_text()
