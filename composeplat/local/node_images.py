"""The images that the node has pulled: which of them no container has, and deleting those, with containerd's client.

Must not know what workloads name: the images that they need next are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from composeplat.local.clients import run_client
from composeplat.registry.image_reference import ImageReference
from composeplat.system.records import record

#: A row of the list of images: the name, the type, the digest and the size.
_ROW = re.compile(r"(\S+) +\S+ +(sha256:\w+) +([\d.]+) (\w+)")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))}


@record
class NodeImage:
    """An image on the node, with all its names."""

    digest: str
    names: tuple[str, ...]
    size: int


@record
class NodeImages:
    client: Path
    """The path of ``ctr``."""
    socket: Path

    def unused(self, used: set[tuple[str, str]]) -> list[NodeImage]:
        """List the images without a container that are not among those used: pairs of a repository and a version."""
        images = parse_images(self._run("images", "ls"))
        held = {row.split()[1] for row in self._run("containers", "ls").splitlines()[1:] if len(row.split()) > 1}
        return [image for image in images if not held & set(image.names) and not used & set(_versions(image))]

    def delete(self, image: NodeImage) -> None:
        self._run("images", "rm", "--sync", *image.names)

    def _run(self, *args: str) -> str:
        command = [str(self.client), "--address", str(self.socket), "--namespace", "k8s.io", *args]
        return run_client(command, f"ctr {' '.join(args[:2])}")


def parse_images(listed: str) -> list[NodeImage]:
    """Parse the list of images; one image has several names."""
    found: dict[str, NodeImage] = {}
    for name, digest, amount, unit in _ROW.findall(listed):
        names = (*found[digest].names, name) if digest in found else (name,)
        found[digest] = NodeImage(digest, names, round(float(amount) * _UNITS.get(unit, 1)))
    return list(found.values())


def _versions(image: NodeImage) -> Iterator[tuple[str, str]]:
    for name in image.names:
        reference = ImageReference.parse(name)
        yield reference.repository, reference.version
