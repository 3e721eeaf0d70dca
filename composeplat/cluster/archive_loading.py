"""Load an archive of an image into the nodes of another local cluster, by the command of its program.

Owns running the command, and the reasons why that fails. Must not know the programs: ``other_clusters`` has a row for
each. It is apart from the loading of built images because ``platform up``, which loads its agent, needs no Pulumi.
"""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.other_clusters import OtherCluster
from composeplat.diagnostics import ComposeplatError, MissingPiece, printable
from composeplat.system.deadline import Deadline, poll
from composeplat.system.records import record

_MAX_LOAD_S = 600.0
_POLL_INTERVAL_S = 0.1
_GRACE_PERIOD_S = 5.0
_MAX_ERROR_LINES = 3
_MAX_OUTPUT_BYTES = 64 * 1024
_TO_A_REGISTRY = "push to a registry instead: --registry"
_NODES = kind_path("v1", "Node")
_HUB = "docker.io/library/"


def need_load_program(cluster: OtherCluster, path: str | None) -> None:
    """Check that a program is there which loads images, before anything is built."""
    program = cluster.product.load[0]
    if not any(shutil.which(name, path=path) for name in cluster.product.programs):
        raise MissingPiece(
            f"the images of {cluster.title} are loaded with '{program}', which is not on PATH",
            f"install {program}, or push to a registry: --registry",
        )


def have_image(api: Api, name: str) -> bool:
    """Return whether each node says that it has an image; false where nodes may not be read."""
    nodes = _nodes(api)
    # Docker's engine names its images without their registry.
    names = {name, name.removeprefix(_HUB)}
    return bool(nodes) and all(
        any(names.intersection(image.get("names") or ()) for image in node["status"].get("images") or ())
        for node in nodes
    )


def _nodes(api: Api) -> list[dict[str, Any]]:
    try:
        return api.items(_NODES)
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return []


@record(kw_only=True)
class ArchiveLoader:
    """Loads archives into the nodes of one cluster."""

    cluster: OtherCluster
    access: Access
    environment: Mapping[str, str]
    cancelled: threading.Event = field(default_factory=threading.Event)

    def load(self, image: str, archive: Path) -> None:
        """Run the command that loads an archive into the nodes; after a failure, raise an error that says why."""
        args = self.cluster.load_command(str(archive), runs_containerd=self._runs_containerd())
        problem = f"{image} can't be loaded into {self.cluster.title}"
        with tempfile.TemporaryFile() as output:
            try:
                with self._start(args, output) as process:
                    ended = self._wait(process)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise ComposeplatError(f"{problem}: '{args[0]}' can't be started: {reason}", _TO_A_REGISTRY) from error
            if not ended:
                reason = "interrupted" if self.cancelled.is_set() else f"not done after {_MAX_LOAD_S:.0f} s"
                raise ComposeplatError(f"{problem}: {reason}")
            if process.returncode:
                raise ComposeplatError(f"{problem}: {_last_lines(output)}", f"try: {' '.join(args)}")

    def _runs_containerd(self) -> bool:
        """Check which runtime the nodes have, where the command depends on it."""
        if not self.cluster.product.load_into_containerd:
            return False
        with Api(self.access) as api:
            nodes = _nodes(api)
        runtimes = [str(node["status"]["nodeInfo"]["containerRuntimeVersion"]) for node in nodes]
        return not any(runtime.startswith("docker:") for runtime in runtimes)

    def _start(self, args: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            args,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until the command has ended by itself; return whether it has."""
        deadline = Deadline(_MAX_LOAD_S)
        poll(lambda: process.poll() is not None or self.cancelled.is_set(), deadline, interval_s=_POLL_INTERVAL_S)
        if process.poll() is not None:
            return True
        process.terminate()
        try:
            process.wait(_GRACE_PERIOD_S)
        except subprocess.TimeoutExpired:
            process.kill()
        return False


def _last_lines(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MAX_OUTPUT_BYTES))
    lines = [printable(line.strip()) for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-_MAX_ERROR_LINES:]) or "the command failed"
