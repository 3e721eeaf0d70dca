"""Load built images into the nodes of a local cluster, which needs no registry.

Owns the folder of a build until its image is loaded, the name under which a node has the image, and the command.
Must not know the programs of local clusters: :mod:`composeplat.cluster.other_clusters` has a row for each.

A loaded image has a tag of its content's digest. So a changed image replaces the pods, and an unchanged one is not
loaded again: its folder is deleted once the image is loaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pulumi

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.other_clusters import OtherCluster
from composeplat.diagnostics import ComposeplatError, printable
from composeplat.registry.image_config import Ports
from composeplat.registry.image_layout import READ_ERRORS, ImageLayout
from composeplat.registry.image_reference import ImageReference
from composeplat.system.deadline import Deadline, poll
from composeplat.system.folders import cache_folder

_MAX_LOAD_S = 600.0
_POLL_INTERVAL_S = 0.1
_GRACE_PERIOD_S = 5.0
_TAG_CHARS = 20
_MAX_ERROR_LINES = 3
_MAX_OUTPUT_BYTES = 64 * 1024
_TO_A_REGISTRY = "push to a registry instead: --registry"


def export_folder(name: str) -> Path:
    """Return the folder that a built image is exported to; it never changes, because the state has it."""
    owner = f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}"
    return cache_folder(os.environ) / "images" / hashlib.sha256(owner.encode()).hexdigest()[:16]


def loaded_name(reference: str, digest: str) -> str:
    """Return the name under which nodes have an image: that of the build, tagged by its digest."""
    parsed = ImageReference.parse(reference)
    return f"{parsed.registry}/{parsed.repository}:{digest.removeprefix('sha256:')[:_TAG_CHARS]}"


@dataclass(slots=True, kw_only=True)
class ImageLoader:
    """Loads images into one cluster. After a failure, ``error`` says why."""

    cluster: OtherCluster
    access: Access
    environment: Mapping[str, str]
    cancelled: threading.Event = field(default_factory=threading.Event)
    note: Callable[[str], None] = field(default=lambda _: None)
    on_ports: Callable[[str, Ports], None] = field(default=lambda _name, _ports: None)
    """Called with the name and the exposed ports of each image that is loaded."""
    error: ComposeplatError | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def load(self, service: str, reference: str, resource: Any) -> pulumi.Output[str]:
        """Load the image of a build once it is built, and return its name; a preview loads nothing."""
        folder = export_folder(reference)

        async def load_built(digest: str) -> str:
            name, layout = loaded_name(reference, digest), ImageLayout(folder, digest)
            if not pulumi.runtime.is_dry_run() and layout.exists:
                # One at a time: each reads and writes the whole image.
                async with self._lock:
                    await asyncio.to_thread(self._load, service, layout, (name, reference))
            return name

        output: pulumi.Output[str] = resource.digest.apply(load_built)
        return output

    def _load(self, service: str, layout: ImageLayout, names: tuple[str, str]) -> None:
        try:
            self.note(f"loading the image of {service} into {self.cluster.title}")
            ports = layout.ports()
            for name in names:
                self.on_ports(name, ports)
            with tempfile.TemporaryDirectory(dir=layout.folder.parent) as folder:
                archive = Path(folder) / "image.tar"
                layout.write_archive(archive, names[0])
                self.load_archive(service, archive)
            shutil.rmtree(layout.folder, ignore_errors=True)
        except READ_ERRORS as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._fail(ComposeplatError(f"the image of service '{service}' can't be read after its build: {reason}"))
        except ComposeplatError as error:
            self._fail(error)

    def _fail(self, error: ComposeplatError) -> None:
        self.error = self.error or error
        raise pulumi.RunError(str(error)) from error

    def _runs_containerd(self) -> bool:
        """Check which runtime the nodes have, where the command depends on it."""
        if not self.cluster.product.load_into_containerd:
            return False
        with Api(self.access) as api:
            try:
                nodes = api.items(kind_path("v1", "Node"))
            except ApiError as error:
                if error.status != http.client.FORBIDDEN:
                    raise
                nodes = []
        runtimes = [str(node["status"]["nodeInfo"]["containerRuntimeVersion"]) for node in nodes]
        return not any(runtime.startswith("docker:") for runtime in runtimes)

    def load_archive(self, service: str, archive: Path) -> None:
        """Run the command that loads an archive into the nodes; after a failure, raise an error that says why."""
        args = self.cluster.load_command(str(archive), runs_containerd=self._runs_containerd())
        problem = f"the image of service '{service}' can't be loaded into {self.cluster.title}"
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
