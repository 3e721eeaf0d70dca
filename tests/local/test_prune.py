"""What `platform cluster prune` counts as unused, without a cluster; tests/deploy/test_prune.py has a real one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, cast

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.leftovers import abandoned_claims, used_images
from composeplat.diagnostics import ComposeplatError
from composeplat.local.builder_cache import BuilderCache, parse_size
from composeplat.local.image_cache import UNTAGGED, ImageCache
from composeplat.local.node_images import NodeImage, NodeImages, parse_images
from composeplat.local.prune import delete_claim
from composeplat.local.registry_storage import RegistryStorage
from composeplat.progress import format_bytes

OLD = 1_000_000_000


class Folder:
    """A registry's folder, as the registry writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "docker" / "registry" / "v2"

    def write(self, path: Path, content: bytes, time: float = OLD) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        for written in (path, path.parent):
            os.utime(written, (time, time))

    def blob(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self.write(self.root / "blobs" / "sha256" / digest[:2] / digest / "data", content)
        return digest

    def image(self, name: str, *layers: str, tag: str = "", time: float = OLD) -> str:
        entries = [{"digest": f"sha256:{self.blob(layer.encode())}"} for layer in layers]
        config = {"digest": f"sha256:{self.blob(f'config of {layers}'.encode())}"}
        for entry in (*entries, config):
            self.link(name, "_layers", entry["digest"], OLD)
        return self.manifest(name, {"config": config, "layers": entries}, tag, time)

    def manifest(self, name: str, content: dict[str, Any], tag: str = "", time: float = OLD) -> str:
        digest = self.blob(json.dumps(content).encode())
        self.link(name, "_manifests/revisions", digest, time)
        if tag:
            link = self.root / "repositories" / name / "_manifests" / "tags" / tag / "current" / "link"
            self.write(link, f"sha256:{digest}".encode())
        return digest

    def link(self, name: str, kind: str, digest: str, time: float) -> None:
        place = digest.removeprefix("sha256:")
        self.write(self.root / "repositories" / name / kind / "sha256" / place / "link", digest.encode(), time)

    def blobs(self) -> set[str]:
        return {path.read_text() for path in self.root.glob("blobs/sha256/*/*/data") if b"{" not in path.read_bytes()}

    def prune(self, used: set[tuple[str, str]], *, with_tags: bool = False) -> list[tuple[str, int]]:
        storage = RegistryStorage(self.folder)
        found = storage.unused(used, with_tags=with_tags)
        for unused in found:
            storage.delete(unused)
        return [(unused.repository, unused.count) for unused in found]


@pytest.fixture
def registry(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def layers_of(registry: Folder) -> set[str]:
    return {blob for blob in registry.blobs() if not blob.startswith("config")}


def test_images_without_a_tag(registry: Folder) -> None:
    """An image that a newer one replaced goes, with the layers that no other image has."""
    registry.image("team/app", "base", "first")
    registry.image("team/app", "base", "second", tag="1")

    assert registry.prune(set()) == [("team/app", 1)]
    assert layers_of(registry) == {"base", "second"}
    assert registry.prune(set()) == []


def test_used_images_stay(registry: Folder) -> None:
    """An image that a workload names by its digest stays without a tag."""
    digest = registry.image("app", "first")

    assert registry.prune({("app", f"sha256:{digest}")}) == []
    assert layers_of(registry) == {"first"}


def test_images_with_a_tag(registry: Folder) -> None:
    """They go when they are asked for, unless a workload names the tag."""
    registry.image("a", "base", "a", tag="1")
    registry.image("b", "base", "b", tag="1")

    assert registry.prune({("a", "1")}) == []
    assert registry.prune({("a", "1")}, with_tags=True) == [("b", 1)]
    assert layers_of(registry) == {"base", "a"}
    assert not (registry.root / "repositories" / "b" / "_manifests" / "tags" / "1").exists()


def test_an_index_keeps_its_images(registry: Folder) -> None:
    """The images of an index have no tag of their own."""
    inner = [{"digest": f"sha256:{registry.image('app', name)}"} for name in ("amd64", "arm64")]
    registry.manifest("app", {"manifests": inner}, tag="1")

    assert registry.prune(set()) == []
    assert registry.prune(set(), with_tags=True) == [("app", 3)]
    assert registry.blobs() == set()


def test_layers_of_no_image(registry: Folder) -> None:
    """A push that broke off leaves them, and a deletion that was killed behind the manifests; they go after a day."""
    registry.image("app", "base", tag="1")
    registry.image("gone", "left")
    shutil.rmtree(registry.root / "repositories" / "gone" / "_manifests" / "revisions")
    today = registry.blob(b"just pushed")
    os.utime(registry.root / "blobs" / "sha256" / today[:2] / today, (time.time() - 3600,) * 2)

    # Its layer, its config and its manifest.
    assert registry.prune(set()) == [("", 3)]
    assert layers_of(registry) == {"base", "just pushed"}
    assert registry.prune(set()) == []


def test_a_push_that_has_not_ended(registry: Folder) -> None:
    """A new image may have no tag yet: it stays, and so do the layers that it shares with an old one."""
    registry.image("app", "base", "old")
    registry.image("app", "base", "new", time=OLD * 2)

    assert registry.prune(set()) == [("app", 1)]
    assert layers_of(registry) == {"base", "new"}


def test_a_push_while_images_are_deleted(registry: Folder) -> None:
    """It finds an old layer, and does not write it again; what was listed before it stays as far as it is needed."""
    registry.image("app", "base", "old", tag="1")
    registry.image("other", "gone", tag="1")
    storage = RegistryStorage(registry.folder)
    listed = storage.unused(set(), with_tags=True)
    assert [unused.repository for unused in listed] == ["app", "other"]
    new = registry.image("app", "old", tag="1", time=time.time())

    for unused in listed:
        storage.delete(unused)

    assert layers_of(registry) == {"old"}
    tag = registry.root / "repositories" / "app" / "_manifests" / "tags" / "1" / "current" / "link"
    assert tag.read_text() == f"sha256:{new}"
    layers = registry.root / "repositories" / "app" / "_layers" / "sha256"
    assert hashlib.sha256(b"old").hexdigest() in {folder.name for folder in layers.iterdir()}


def test_an_old_image_that_is_pushed_again(registry: Folder) -> None:
    """The registry writes its link again, in the same folder, which stays as old as it was."""
    digest = registry.image("app", "layer", tag="1")
    link = registry.root / "repositories" / "app" / "_manifests" / "revisions" / "sha256" / digest / "link"
    os.utime(link)

    assert registry.prune(set(), with_tags=True) == []


def test_layers_of_two_repositories(registry: Folder) -> None:
    """A layer that two unused images share counts once."""
    registry.image("a", "x" * 1000)
    registry.image("b", "x" * 1000)
    found = RegistryStorage(registry.folder).unused(set(), with_tags=False)

    assert [unused.size > 1000 for unused in found] == [True, False]


class Cluster:
    """An API server with some objects, by the ends of their paths."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self.objects = objects

        self.deleted: list[tuple[str, str]] = []

    def items(self, path: str) -> list[dict[str, Any]]:
        return self.objects.get(path.rpartition("/")[2], [])

    def delete(self, path: str, *, uid: str) -> None:
        self.deleted.append((path, uid))


def named(namespace: str, environment: str, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", "data")
    labels = {"dev.platform.com/environment": environment} if environment else {}
    metadata = {
        "namespace": namespace, "name": name, "uid": f"{namespace}-{name}", "labels": labels,
        "creationTimestamp": "2020-01-01T00:00:00Z",
    }  # fmt: skip
    return {"metadata": metadata, **fields}


def test_claims_of_environments_that_are_gone() -> None:
    """An environment that sleeps has its workloads; claims that are not of an environment are others'."""
    new = named("team", "gone")
    new["metadata"]["creationTimestamp"] = "2999-01-01T00:00:00Z"
    cluster = Cluster(
        statefulsets=[named("team", "shop", spec={"replicas": 0})],
        persistentvolumeclaims=[named("team", "shop"), named("other", "shop"), named("team", ""), new],
    )

    assert abandoned_claims(cast("Api", cluster)) == [named("other", "shop")]


@pytest.mark.parametrize(("phase", "is_used"), [("Running", True), ("Pending", True), ("Succeeded", False)])
def test_claims_that_a_pod_of_others_mounts(phase: str, *, is_used: bool) -> None:
    """A backup that runs with `kubectl` reads the volume of an environment that is gone."""
    claim = named("team", "gone")
    volumes = {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}]}
    pod = named("team", "", name="backup", spec=volumes, status={"phase": phase})
    cluster = Cluster(persistentvolumeclaims=[claim, named("other", "gone")], pods=[pod])

    assert (claim not in abandoned_claims(cast("Api", cluster))) == is_used


def test_a_claim_that_a_deploy_begins_to_use() -> None:
    """It is not deleted, also where it was listed before; nor is another claim of its name."""
    claim = named("team", "shop")
    cluster = Cluster(persistentvolumeclaims=[claim])
    delete_claim(cast("Api", cluster), claim)
    cluster.objects["deployments"] = [named("team", "shop", name="web")]
    delete_claim(cast("Api", cluster), claim)

    assert cluster.deleted == [("/api/v1/namespaces/team/persistentvolumeclaims/data", "team-data")]


def test_images_of_workloads() -> None:
    """Every container counts, of any kind and revision, and so do volumes that are images."""
    pod = {"containers": [{"image": "a:1"}], "initContainers": [{"image": "b"}]}
    volumes = {"volumes": [{"image": {"reference": "c@sha256:1"}}]}
    revision = {"data": {"spec": {"template": {"spec": {"containers": [{"image": "d"}]}}}}}
    cluster = Cluster(
        cronjobs=[named("n", "", spec={"jobTemplate": {"spec": {"template": {"spec": pod}}}})],
        pods=[named("n", "", spec=volumes)], controllerrevisions=[named("n", "", **revision)],
    )  # fmt: skip

    assert used_images(cast("Api", cluster)) == {"a:1", "b", "c@sha256:1", "d"}


def test_images_on_the_node() -> None:
    """An image has a row for each of its names."""
    listed = """\
REF                     TYPE                                       DIGEST      SIZE    PLATFORMS   LABELS
localhost:5000/app:1    application/vnd.oci.image.manifest.v1+json sha256:aa   1.5 MiB linux/amd64 a=b
localhost:5000/app@sha256:aa application/vnd.oci.image.manifest.v1+json sha256:aa 1.5 MiB linux/amd64 a=b
sha256:cc               application/vnd.oci.image.manifest.v1+json sha256:bb   512.0 B linux/amd64 a=b
"""

    assert parse_images(listed) == [
        NodeImage("sha256:aa", ("localhost:5000/app:1", "localhost:5000/app@sha256:aa"), 1572864),
        NodeImage("sha256:bb", ("sha256:cc",), 512),
    ]


def test_programs_that_do_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emptying a large cache on a slow disk can take longer than they may: the error says which one it was."""
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr("composeplat.local.clients._TIMEOUT_S", 0.1)

    with pytest.raises(ComposeplatError, match=r"^buildx prune did not end within 0 s$"):
        BuilderCache(program, tmp_path / "socket", {"PATH": "/bin:/usr/bin"}).delete()
    with pytest.raises(ComposeplatError, match=r"^ctr images ls did not end within 0 s$"):
        NodeImages(program, tmp_path / "socket").unused(set())


def test_sizes() -> None:
    """Builder sizes: buildx prints decimal units, and this command binary ones."""
    assert [parse_size(text) for text in ("0B", "4.096kB", "10.5MB", "2GB", "?")] == [0, 4096, 10_500_000, 2 * 10**9, 0]
    assert [format_bytes(size) for size in (0, 1536, 5 * 2**20, 2**30)] == ["0.0 KiB", "1.5 KiB", "5.0 MiB", "1.0 GiB"]


class MirrorFolder:
    """The mirror's cache, as it writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, kind: str, name: str, content: bytes) -> str:
        place = self.folder / kind
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
        return f"sha256:{name}"

    def blob(self, content: str) -> str:
        return self.write("blobs", hashlib.sha256(content.encode()).hexdigest(), content.encode())

    def manifest(self, content: dict[str, Any], tag: str = "") -> str:
        kept = b"a type\n" + json.dumps(content).encode()
        digest = self.write("manifests", hashlib.sha256(kept).hexdigest(), kept)
        if tag:
            self.write("tags", tag.replace("/", "_"), f"{digest} {tag}\n".encode())
        return digest

    def image(self, tag: str, *layers: str) -> str:
        entries = [{"digest": self.blob(layer)} for layer in layers]
        return self.manifest({"config": {"digest": self.blob(f"config of {tag}")}, "layers": entries}, tag)

    def blobs(self) -> set[str]:
        return {path.read_text() for path in self.folder.glob("blobs/*")}


def test_cached_images_share_layers(tmp_path: Path) -> None:
    """A layer counts once, and goes with the last image that has it; an index has the platforms that were pulled."""
    folder = MirrorFolder(tmp_path)
    folder.image("a/app:1", "base", "a")
    inner = [{"digest": folder.image("", "base", "b")}, {"digest": "sha256:absent"}]
    folder.manifest({"manifests": inner}, "b/app:1")
    cache = ImageCache(tmp_path)
    first, second = cache.images()

    assert (first.name, second.name) == ("a/app:1", "b/app:1")
    assert (first.size, second.size) == tuple(
        sum(path.stat().st_size for path in files) for files in (first.files, second.files - first.files)
    )
    cache.delete(first)
    assert folder.blobs() == {"base", "b", "config of "}
    (second,) = cache.images()
    cache.delete(second)
    assert (folder.blobs(), cache.images()) == (set(), [])


def test_what_has_no_tag_is_listed_together(tmp_path: Path) -> None:
    """Images that were pulled by digest, broken manifests and broken transfers are in the list too."""
    folder = MirrorFolder(tmp_path)
    folder.image("", "layer")
    folder.write("partial", "0" * 64, b"12345")
    folder.write("tags", "x", b"sha256:gone app:1\n")
    folder.write("manifests", "1" * 64, b"no JSON")
    untagged, tagged = sorted(ImageCache(tmp_path).images(), key=lambda image: image.name != UNTAGGED)

    assert (untagged.name, tagged.name, tagged.size) == (UNTAGGED, "app:1", 0)
    for image in (untagged, tagged):
        ImageCache(tmp_path).delete(image)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert ImageCache(tmp_path / "nowhere").images() == []


@pytest.mark.parametrize("digest", ["{}", "sha256:{}", "sha256:../../secret", "../tags/../../secret"])
def test_a_manifest_names_no_file_outside(tmp_path: Path, digest: str) -> None:
    """A hostile registry writes the manifests of its images: their digests lead to files of the cache alone."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"of this machine")
    folder = MirrorFolder(tmp_path / "mirror")
    folder.manifest({"layers": [{"digest": digest.format(secret)}]}, "evil/app:1")
    cache = ImageCache(tmp_path / "mirror")
    (image,) = cache.images()
    cache.delete(image)

    assert secret.read_bytes() == b"of this machine"


def test_a_manifest_that_is_nested_too_deep(tmp_path: Path) -> None:
    folder = MirrorFolder(tmp_path)
    folder.write("manifests", "1" * 64, b"\n" + b"[" * 100_000)
    folder.write("tags", "x", b"sha256:" + b"1" * 64 + b" evil:1\n")

    assert [image.name for image in ImageCache(tmp_path).images()] == ["evil:1"]
