"""Run a command in the container of a service, or of its dev workload during development.

Owns the choice of the pod.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from composeplat.cluster.snapshot import Object, is_ready, service_of
from composeplat.engine.dev_workloads import is_dev_workload
from composeplat.engine.target import Target
from composeplat.system.atomic import write_private
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    namespace: str
    pod: str
    container: str
    args: tuple[str, ...]
    terminal: bool


def choose_pod(pods: Iterable[Object], service: str) -> str:
    """Choose the pod of a service to run a command in, empty without one: a ready pod first, then the newest."""
    running = [pod for pod in pods if service_of(pod) == service and _may_run(pod)]
    found = max(
        running,
        key=lambda pod: (is_ready(pod), is_dev_workload(pod), pod["metadata"]["creationTimestamp"]),
        default=None,
    )
    return str(found["metadata"]["name"]) if found else ""


def _may_run(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def run_command(command: Command, target: Target, environment: Mapping[str, str]) -> int:
    """Run a command with the streams of this process, and return its status."""
    link = Toolchain(environment).need(LINK)
    with tempfile.TemporaryDirectory(prefix="composeplat-") as folder:
        config = Path(folder) / "exec.json"
        write_private(
            config,
            json.dumps(
                {
                    "namespace": command.namespace,
                    "pod": command.pod,
                    "container": command.container,
                    "command": list(command.args),
                    "terminal": command.terminal,
                }
            ),
        )
        done = subprocess.run(
            [str(link.path), "exec", "--config", str(config)],
            env={**environment, "KUBECONFIG": target.kubeconfig_for(Path(folder))},
            check=False,
        )
    return 128 - done.returncode if done.returncode < 0 else done.returncode
