"""Plain Pulumi continues where ``platform deploy`` left."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat.cluster.snapshot import is_ready
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment, until

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
TEXT = (
    f"{HEAD}"
    "  keeper: {<<: *app, volumes: ['data:/data'], environment: {A: '${A:-1}'}}\n"
    "  web: {<<: *app, ports: ['8080'], depends_on: [keeper]}\n"
    "volumes: {data: {}}\nendpoints: [{path: /, service: web, port: 8080}]\n"
)
OUTSIDE = f"""\
services:
  web:
    {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, env_file: ../beside/a.env}}
"""
REFUSED = "error: services.web.env_file names a file that is outside the project: '../beside/a.env' [outside-project]"


@dataclass(frozen=True, slots=True)
class Ejected:
    """An environment as a folder of plain Pulumi, and how that is run there."""

    environment: Environment
    folder: Path
    variables: dict[str, str]

    def pulumi(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        program = Toolchain(self.variables).need(PULUMI).path
        command = [str(program), *args, "--stack", self.environment.namespace, "--non-interactive"]
        return subprocess.run(
            command, cwd=self.folder, env={**self.variables, **more}, capture_output=True, text=True, check=False
        )

    @property
    def configuration(self) -> Path:
        return self.folder / f"Pulumi.{self.environment.namespace}.yaml"


def eject(environment: Environment, place: Path, *args: str) -> Ejected:
    """Eject what is deployed, and give plain Pulumi the language host that tests have."""
    folder = environment.folder / "plain"
    ejected = environment.platform("eject", "-o", str(folder), *args).expect()
    exported = dict(shlex.split(line)[1].split("=", 1) for line in ejected.stdout.splitlines())
    host = place / "bin" / "pulumi-language-python"
    host.parent.mkdir()
    host.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/plain/language_host.py "$@"\n')
    host.chmod(0o755)
    variables = {
        **environment.variables, **exported, "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": f"{environment.variables['COMPOSEPLAT_DATA']}/pulumi",
        "PATH": f"{host.parent}:{environment.variables['PATH']}",
    }  # fmt: skip
    return Ejected(environment, folder, variables)


def test_eject(environment: Environment, tmp_path: Path) -> None:
    """A plain preview after a deploy shows no change; a plain up makes one; the next deploy finds it made."""
    environment.deploy(TEXT, "--no-wait").expect()
    plain = eject(environment, tmp_path)

    shown = plain.pulumi("preview", "--expect-no-changes")
    made = plain.pulumi("up", "--yes", A="2")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert made.returncode == 0, made.stdout + made.stderr
    environment.platform("preview", "--expect-no-changes", A="2").expect()


@pytest.mark.endurance
def test_a_service_gets_another_name(environment: Environment, tmp_path: Path) -> None:
    """In two runs, as documented: without the service the claim stays, and the service of the new name has its data."""
    stateful, volumes = "{<<: *app, volumes: ['data:/data']}", "volumes: {data: {}}\n"
    environment.deploy(f"{HEAD}  keeper: {stateful}\n{volumes}").expect()
    environment.exec(environment.pods("keeper")[0]["metadata"]["name"], "sh", "-c", "echo precious > /data/file")
    plain = eject(environment, tmp_path)

    for service in ("web: *app", f"store: {stateful}"):
        environment.write(f"{HEAD}  {service}\n{volumes}")
        made = plain.pulumi("up", "--yes", PULUMI_K8S_ENABLE_PATCH_FORCE="true")
        assert made.returncode == 0, made.stdout + made.stderr

    until(lambda: any(map(is_ready, environment.pods("store"))))
    assert environment.exec(environment.pods("store")[0]["metadata"]["name"], "cat", "/data/file") == "precious\n"
    assert "StatefulSet/keeper" not in environment.names()


def test_files_outside_the_project(environment: Environment, tmp_path: Path) -> None:
    """The fix by eject is the same: a file outside the project needs leave, there and in plain Pulumi after it."""
    (environment.folder.parent / "beside").mkdir(exist_ok=True)
    (environment.folder.parent / "beside" / "a.env").write_text("KEY=do-not-publish\n")
    environment.write(OUTSIDE)

    refused = environment.platform("eject", "-o", str(environment.folder / "plain")).expect(3)
    assert f"compose.yaml:3:124: {REFUSED}" in refused.stderr
    assert "or allow it with --allow-outside" in refused.stderr
    assert not (environment.folder / "plain").exists()

    environment.platform("deploy", "--no-wait", "--allow-outside").expect()
    plain = eject(environment, tmp_path, "--allow-outside")
    allowed = plain.pulumi("preview", "--expect-no-changes")
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr

    written = json.loads(plain.configuration.read_text())
    assert written["config"].pop("composeplat:allowOutside") is True
    plain.configuration.write_text(json.dumps(written))
    forbidden = plain.pulumi("preview")
    output = forbidden.stdout + forbidden.stderr
    assert forbidden.returncode != 0
    assert f"compose.yaml:3:124: {REFUSED}" in output
    assert "in a stack's configuration: composeplat:allowOutside" in output
    assert "do-not-publish" not in output
    assert "Traceback" not in output
    allowed = plain.pulumi("preview", "--expect-no-changes", PLATFORM_ALLOW_OUTSIDE="true")
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


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
