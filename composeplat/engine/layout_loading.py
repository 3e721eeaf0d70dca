"""Load an image from the folder of a build into the nodes of another local cluster, for images that are in no plan.

Owns the archive between the two. Must not know what the image is for. The images of a plan are loaded by the resources
of their builds, in ``components``.
"""

from __future__ import annotations

from pathlib import Path

from composeplat.cluster.archive_loading import ArchiveLoader
from composeplat.registry.image_layout import ImageLayout


def load_layout(loader: ArchiveLoader, image: str, folder: Path, digest: str, name: str) -> None:
    """Load the image of a digest under a name; ``image`` is how messages call it."""
    archive = folder.with_name("image.tar")
    ImageLayout(folder, digest).write_archive(archive, name)
    loader.load(image, archive)
