"""What takes space in the local cluster and is not used: images, the caches, volumes of gone environments.

Owns what counts as unused. Deletes only what it listed before: the caller shows that first.
"""

from __future__ import annotations

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import object_path
from composeplat.cluster.leftovers import abandoned_claims, environment_of
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import MissingPiece
from composeplat.local.cluster import LocalCluster
from composeplat.local.disk_use import folder_size
from composeplat.local.image_stores import ImageStores, Leftover, used_versions
from composeplat.system.records import record
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX, CTR


@record
class Scope:
    """What is asked for beyond images without a tag, and the builder's cache."""

    all_images: bool = False
    volumes: bool = False


def find_leftovers(cluster: LocalCluster, scope: Scope) -> list[Leftover]:
    if not cluster.status().running:
        raise MissingPiece(f"{cluster.title} is not running", "platform cluster start")
    with Api(cluster.access) as api:
        used = used_versions(api)
        claims = abandoned_claims(api) if scope.volumes else []
    stores = _stores(cluster)
    return [
        *stores.of_registry(used, with_tags=scope.all_images),
        *stores.of_node(used),
        *sorted(stores.of_mirror(), key=lambda image: image.name),
        *stores.of_builder(),
        *(_volume(cluster, claim) for claim in claims),
    ]


def _stores(cluster: LocalCluster) -> ImageStores:
    tools = Toolchain(cluster.environment)
    ctr, buildx = (found.path if (found := tools.find(tool)) else None for tool in (CTR, BUILDX))
    return ImageStores(cluster.layout, ctr, buildx, cluster.environment)


def _volume(cluster: LocalCluster, claim: Object) -> Leftover:
    namespace, environment = environment_of(claim)
    folder = cluster.layout.volumes / str(claim["spec"].get("volumeName"))

    def delete() -> None:
        with Api(cluster.access) as api:
            delete_claim(api, claim)

    name = f"{claim['metadata']['name']} of {environment} in namespace {namespace}"
    return Leftover("volume", name, folder_size(folder), delete)


def delete_claim(api: Api, claim: Object) -> None:
    """Delete a claim, unless a deploy has begun to use it: images are deleted before, which takes long."""
    uid = str(claim["metadata"]["uid"])
    if any(found["metadata"]["uid"] == uid for found in abandoned_claims(api)):
        api.delete(object_path({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}), uid=uid)


def delete_leftovers(cluster: LocalCluster, scope: Scope, listed: list[Leftover]) -> int:
    """Delete what was listed and is unused still, and return how many bytes that frees."""
    names = {(leftover.kind, leftover.name) for leftover in listed}
    left = [found for found in find_leftovers(cluster, scope) if (found.kind, found.name) in names]
    for leftover in left:
        leftover.delete()
    return sum(leftover.size for leftover in left)
