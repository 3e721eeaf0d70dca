"""Programs in YAML, run by Pulumi's own engine and YAML's own language host.

The host is built from the Go proxy with the settings of the toolchain, and kept in its cache. The Kubernetes provider
that the toolchain builds has no schema, which a program in YAML needs: upstream's is in its module, and is placed
where the host looks for one that it has read before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composeplat.engine.backend import DataFolder
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBERNETES_PROVIDER, PULUMI, Tool
from tests.conftest import ROOT
from tests.golang.modules import go

YAML_HOST = Tool(
    name="pulumi-language-yaml",
    version="1.28.0",
    module=ROOT / "tests" / "languages" / "yaml_host",
    package="github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
    build_minutes=2,
)
_SCHEMA = "github.com/pulumi/pulumi-kubernetes/provider/v4/cmd/pulumi-resource-kubernetes"


@dataclass(frozen=True, slots=True)
class YamlProgram:
    """A folder with a program in YAML; its stack is new, and its state is in a folder beside it."""

    folder: Path
    state: Path
    stack: str
    command: Path
    variables: dict[str, str]

    def write(self, files: dict[str, str]) -> None:
        """Write the files of the program; the first ones make its stack."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if not any(self.state.iterdir()):
            self.expect("stack", "init")

    def pulumi(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.command), *args, "--stack", self.stack, "--non-interactive"]
        return subprocess.run(
            command, cwd=self.folder, env={**self.variables, **more}, capture_output=True, text=True,
            check=False, timeout=200,
        )  # fmt: skip

    def expect(self, *args: str, **more: str) -> str:
        done = self.pulumi(*args, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fail(self, *args: str) -> str:
        """Run a command that ends with an error, and give all it printed."""
        done = self.pulumi(*args)
        assert done.returncode != 0, done.stdout
        output = done.stdout + done.stderr
        assert "Traceback" not in output
        assert ".py" not in output
        return output

    def steps(self) -> dict[str, dict[str, Any]]:
        """What a preview would do, by URN without its common part."""
        shown = json.loads(self.expect("preview", "--json"))
        return {step["urn"].split("::", 2)[2]: step for step in shown["steps"]}


def make_program(folder: Path, place: Path, variables: dict[str, str], stack: str = "dev") -> YamlProgram:
    """Make a program in a folder, without a stack yet; everything that Pulumi writes is below ``place``."""
    toolchain = Toolchain(os.environ)
    home = DataFolder(place / "plain")
    home.prepare()
    home.place_plugin("kubernetes", KUBERNETES_PROVIDER.version, toolchain.need(KUBERNETES_PROVIDER).path)
    _place_schema(home.pulumi / "plugins")
    state = place / "plain-state"
    state.mkdir()
    programs = (str(toolchain.need(YAML_HOST).path.parent), str(Path(sys.executable).parent), variables["PATH"])
    found = {
        **variables,
        "PATH": os.pathsep.join(programs),
        "PULUMI_HOME": str(home.pulumi),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    return YamlProgram(folder, state, stack, toolchain.need(PULUMI).path, found)


def _place_schema(plugins: Path) -> None:
    # The package itself does not build, as a file that it embeds is not released: hence -e.
    folder = go(KUBERNETES_PROVIDER.module, "list", "-e", "-find", "-f", "{{.Dir}}", _SCHEMA).stdout.strip()
    name = f"schema-kubernetes-{KUBERNETES_PROVIDER.version}-.json"
    (plugins / name).write_bytes((Path(folder) / "schema.json").read_bytes())
