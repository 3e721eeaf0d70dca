"""What takes space in the local cluster and is not used: images, the caches, volumes of gone environments.

Owns what counts as unused. Deletes only what it listed before: the caller shows that first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from composeplat.cluster.api import Api, object_path
from composeplat.cluster.leftovers import abandoned_claims, environment_of, used_images
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import MissingPiece, format_count
from composeplat.local.base_images import FILL_NAME
from composeplat.local.builder_cache import BuilderCache
from composeplat.local.cluster import LocalCluster
from composeplat.local.disk_use import folder_size
from composeplat.local.image_cache import ImageCache
from composeplat.local.layout import PAUSE_IMAGE
from composeplat.local.node_images import NodeImages
from composeplat.local.registry_storage import RegistryStorage, UnusedImages
from composeplat.registry.image_reference import ImageReference
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX, CTR

#: Images that the cluster has pushed for its pods.
_OWN_IMAGES = frozenset({f"localhost/{PAUSE_IMAGE}", f"localhost/{FILL_NAME}"})


@dataclass(frozen=True, slots=True)
class Leftover:
    kind: str
    name: str
    size: int
    delete: Callable[[], None] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is asked for beyond images without a tag, and the builder's cache."""

    all_images: bool = False
    volumes: bool = False


def find_leftovers(cluster: LocalCluster, scope: Scope) -> list[Leftover]:
    if not cluster.status().running:
        raise MissingPiece(f"{cluster.title} is not running", "platform cluster start")
    with Api(cluster.access) as api:
        images = used_images(api)
        claims = abandoned_claims(api) if scope.volumes else []
    used = {(image.repository, image.version) for image in map(ImageReference.parse, images | _OWN_IMAGES)}
    return [
        *_registry_images(cluster, used, with_tags=scope.all_images),
        *_node_images(cluster, used),
        *_cached_images(cluster),
        *_cache(cluster),
        *(_volume(cluster, claim) for claim in claims),
    ]


def _registry_images(cluster: LocalCluster, used: set[tuple[str, str]], *, with_tags: bool) -> Iterator[Leftover]:
    storage = RegistryStorage(cluster.layout.folder / "registry")
    for unused in storage.unused(used, with_tags=with_tags):
        yield Leftover("image", _describe(unused), unused.size, unused.delete)


def _describe(unused: UnusedImages) -> str:
    return f"{unused.repository}, {format_count(unused.count, 'version')}"


def _node_images(cluster: LocalCluster, used: set[tuple[str, str]]) -> Iterator[Leftover]:
    client = Toolchain(cluster.environment).find(CTR)
    if client is None:
        return
    images = NodeImages(client.path, cluster.layout.containerd_socket)
    for image in images.unused(used):
        yield Leftover("pulled", max(image.names, key=len), image.size, partial(images.delete, image))


def _cached_images(cluster: LocalCluster) -> Iterator[Leftover]:
    """The node has its own copy of what pods use."""
    cache = ImageCache(cluster.layout.mirror_cache)
    for image in cache.images():
        yield Leftover("cached", image.name, image.size, partial(cache.delete, image))


def _cache(cluster: LocalCluster) -> Iterator[Leftover]:
    buildx = Toolchain(cluster.environment).find(BUILDX)
    if buildx is not None:
        cache = BuilderCache(buildx.path, cluster.layout.buildkit_socket, cluster.environment)
        size = cache.size()
        if size:
            yield Leftover("cache", "layers of the builder", size, cache.delete)


def _volume(cluster: LocalCluster, claim: Object) -> Leftover:
    namespace, environment = environment_of(claim)
    folder = cluster.layout.volumes / str(claim["spec"].get("volumeName"))

    def delete() -> None:
        with Api(cluster.access) as api:
            api.delete(object_path({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}))

    name = f"{claim['metadata']['name']} of {environment} in namespace {namespace}"
    return Leftover("volume", name, folder_size(folder), delete)


def delete_leftovers(cluster: LocalCluster, scope: Scope, listed: list[Leftover]) -> int:
    """Delete what was listed and is unused still, and return how many bytes that frees."""
    names = {(leftover.kind, leftover.name) for leftover in listed}
    left = [found for found in find_leftovers(cluster, scope) if (found.kind, found.name) in names]
    for leftover in left:
        leftover.delete()
    return sum(leftover.size for leftover in left)
