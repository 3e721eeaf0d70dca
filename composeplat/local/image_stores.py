"""The four stores of images and layers: the registry, the node, the mirror's cache, the builder's cache.

Owns how the unused images of each are listed as leftovers, which can be deleted. Must not know who asks: ``prune``
shows them to people first, and the cleaner deletes them when space runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from composeplat.cluster.api import Api
from composeplat.cluster.leftovers import used_images
from composeplat.diagnostics import format_count
from composeplat.local.base_images import FILL_NAME
from composeplat.local.builder_cache import BuilderCache
from composeplat.local.image_cache import CachedImage, ImageCache
from composeplat.local.layout import PAUSE_IMAGE, Layout
from composeplat.local.node_images import NodeImages
from composeplat.local.registry_storage import RegistryStorage
from composeplat.registry.image_reference import ImageReference
from composeplat.system.records import record

#: Images that the cluster has pushed for its pods.
_OWN_IMAGES = frozenset({f"localhost/{PAUSE_IMAGE}", f"localhost/{FILL_NAME}"})


@record
class Leftover:
    kind: str
    name: str
    size: int
    delete: Callable[[], None] = field(repr=False, compare=False)


@record
class ImageStores:
    layout: Layout
    ctr: Path | None
    """The client of containerd; without it the node's images are not listed."""
    buildx: Path | None
    environment: Mapping[str, str] = field(repr=False)

    def of_registry(self, used: set[tuple[str, str]], *, with_tags: bool) -> Iterator[Leftover]:
        storage = RegistryStorage(self.layout.registry)
        for unused in storage.unused(used, with_tags=with_tags):
            count = format_count(unused.count, "version" if unused.repository else "layer")
            name = f"{unused.repository or 'no image'}, {count}"
            yield Leftover("image", name, unused.size, partial(storage.delete, unused))

    def of_node(self, used: set[tuple[str, str]]) -> Iterator[Leftover]:
        if self.ctr is None:
            return
        images = NodeImages(self.ctr, self.layout.containerd_socket)
        for image in images.unused(used):
            yield Leftover("pulled", max(image.names, key=len), image.size, partial(images.delete, image))

    def of_mirror(self) -> Iterator[Leftover]:
        """The node has its own copy of the images of pods; the image that was unused for longest comes first."""
        cache = ImageCache(self.layout.mirror_cache)
        for image in sorted(cache.images(), key=CachedImage.last_use):
            yield Leftover("cached", image.name, image.size, partial(cache.delete, image))

    def of_builder(self) -> Iterator[Leftover]:
        if self.buildx is not None:
            cache = BuilderCache(self.buildx, self.layout.buildkit_socket, self.environment)
            size = cache.size()
            if size:
                yield Leftover("cache", "layers of the builder", size, cache.delete)


def used_versions(api: Api) -> set[tuple[str, str]]:
    """The images that workloads name and those of the cluster itself: pairs of a repository and a version."""
    images = map(ImageReference.parse, used_images(api) | _OWN_IMAGES)
    return {(image.repository, image.version) for image in images}
