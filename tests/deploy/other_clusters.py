"""Stand-ins for the programs of other local clusters, which can't be run here.

Each accepts exactly the arguments that its documentation has, and then loads the archive into the real node of the
tests' cluster, with containerd's own client: so real pods run the images.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from composeplat.compose.nodes import to_plain
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source
from composeplat.local.builder_cache import BUILDER_NAME, buildx_instance
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import CTR
from tests.deploy.conftest import Environment

_PROGRAM = """\
#!{python} -IS
import json, subprocess, sys

args, expected = sys.argv[1:], {expected!r}
archive = args[expected.index("ARCHIVE")] if len(args) == len(expected) else ""
if args != [archive if arg == "ARCHIVE" else arg for arg in expected]:
    sys.exit("unknown arguments: " + " ".join(args))
ctr = [{ctr!r}, "--address", {socket!r}, "--namespace", "k8s.io"]
done = subprocess.run([*ctr, "images", "import", archive], capture_output=True, text=True)
with open({log!r}, "a") as log:
    log.write(json.dumps(done.stdout) + "\\n")
sys.stderr.write(done.stderr)
sys.exit(done.returncode)
"""


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A stand-in, and the kubeconfig that its program writes."""

    environment: Environment
    log: Path

    @property
    def loads(self) -> int:
        """How many images it has loaded."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def install(environment: Environment, command: tuple[str, ...], cluster: str, *, provider: str = "") -> OtherProgram:
    """Put a stand-in on PATH, and give the environment a kubeconfig with a cluster of its program."""
    layout = environment.cluster.layout
    variables, home = environment.variables, Path(environment.variables["HOME"])
    log = home / "loads"
    text = _PROGRAM.format(
        python=sys.executable,
        expected=list(command[1:]),
        ctr=str(Toolchain(variables).need(CTR).path),
        socket=str(layout.containerd_socket),
        log=str(log),
    )
    program = home / "programs" / command[0]
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    variables["PATH"] = f"{program.parent}:{variables['PATH']}"
    variables["COMPOSEPLAT_CLUSTER"] = str(environment.folder.parent / "no-cluster")
    variables["BUILDX_BUILDER"] = BUILDER_NAME
    instances = home / ".docker" / "buildx" / "instances"
    instances.mkdir(parents=True)
    (instances / BUILDER_NAME).write_text(buildx_instance(layout.buildkit_socket))
    _write_kubeconfig(environment, cluster, provider)
    return OtherProgram(environment, log)


def _write_kubeconfig(environment: Environment, cluster: str, provider: str) -> None:
    """Write a kubeconfig as the program does, with the names of its cluster; the server is the tests' own."""
    path = environment.cluster.layout.kubeconfig
    config = to_plain(read_nodes(Source(str(path), path.parent, path.read_text()), Report())[0])
    assert isinstance(config, dict)
    entry, context = config["clusters"][0], config["contexts"][0]
    entry["name"] = context["context"]["cluster"] = context["name"] = config["current-context"] = cluster
    if provider:
        extension = {"last-update": "Mon, 19 May 2025 12:59:54 IST", "provider": provider, "version": "v1.35.0"}
        entry["cluster"]["extensions"] = [{"name": "cluster_info", "extension": extension}]
    own = Path(environment.variables["HOME"]) / ".kube" / "config"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps(config))
    environment.variables["KUBECONFIG"] = str(own)
