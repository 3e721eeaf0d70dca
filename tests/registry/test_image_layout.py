"""The archive of a built image, for the programs that load it."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

from composeplat.registry.image_layout import ImageLayout


def add_blob(folder: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    path = folder / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"sha256:{digest}"


def make_layout(folder: Path, text: str = "layer") -> ImageLayout:
    config: dict[str, Any] = {"config": {"ExposedPorts": {"80/tcp": {}, "53/udp": {}}}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"digest": add_blob(folder, json.dumps(config).encode())},
        "layers": [{"digest": add_blob(folder, text.encode())}] * 2,
    }
    return ImageLayout(folder, add_blob(folder, json.dumps(manifest).encode()))


def test_archive(tmp_path: Path) -> None:
    """It has one image under one name for containerd and for Docker, and no file of another build."""
    make_layout(tmp_path, "of a build that was interrupted")
    layout = make_layout(tmp_path)
    assert layout.ports() == ((53, "udp"), (80, "tcp"))

    layout.write_archive(tmp_path / "image.tar", "docker.io/library/env-web:abc")

    with tarfile.open(tmp_path / "image.tar") as archive:
        names = archive.getnames()
        index, docker = (_json(archive, name) for name in ("index.json", "manifest.json"))
    assert names[:3] == ["oci-layout", "index.json", "manifest.json"]
    (entry,) = index["manifests"]
    assert entry["digest"] == layout.digest
    assert entry["annotations"] == {
        "io.containerd.image.name": "docker.io/library/env-web:abc",
        "org.opencontainers.image.ref.name": "abc",
    }
    (image,) = docker
    assert image["RepoTags"] == ["docker.io/library/env-web:abc"]
    assert {image["Config"], *image["Layers"], f"blobs/{layout.digest.replace(':', '/')}"} == set(names[3:])
    assert len(names) == 6


def test_damaged(tmp_path: Path) -> None:
    """A folder that lacks a layer, or has none of the digest, is not the image."""
    layout = make_layout(tmp_path)
    assert layout.exists
    assert not ImageLayout(tmp_path, "").exists
    assert not ImageLayout(tmp_path, "sha256:0").exists

    (tmp_path / "blobs" / "sha256" / hashlib.sha256(b"layer").hexdigest()).unlink()

    assert not layout.exists


def _json(archive: tarfile.TarFile, name: str) -> Any:
    stream = archive.extractfile(name)
    assert stream is not None
    return json.load(stream)
