"""Load built images into the nodes of a local cluster, which needs no registry.

Owns the folder of a build until its image is loaded, and the name under which a node has the image.
Must not know the command: :mod:`composeplat.cluster.archive_loading` runs it.

A loaded image has a tag of its content's digest. So a changed image replaces the pods, and an unchanged one is not
loaded again: its folder is deleted once the image is loaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi

from composeplat.cluster.access import Access
from composeplat.cluster.archive_loading import ArchiveLoader
from composeplat.cluster.other_clusters import OtherCluster
from composeplat.diagnostics import ComposeplatError
from composeplat.registry.image_config import Ports
from composeplat.registry.image_layout import READ_ERRORS, ImageLayout
from composeplat.registry.image_reference import ImageReference
from composeplat.system.folders import cache_folder

_TAG_CHARS = 20


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
                self._load_archive(service, archive)
            shutil.rmtree(layout.folder, ignore_errors=True)
        except READ_ERRORS as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._fail(ComposeplatError(f"the image of service '{service}' can't be read after its build: {reason}"))
        except ComposeplatError as error:
            self._fail(error)

    def _fail(self, error: ComposeplatError) -> None:
        self.error = self.error or error
        raise pulumi.RunError(str(error)) from error

    def _load_archive(self, service: str, archive: Path) -> None:
        loader = ArchiveLoader(
            cluster=self.cluster, access=self.access, environment=self.environment, cancelled=self.cancelled
        )
        loader.load(f"the image of service '{service}'", archive)
