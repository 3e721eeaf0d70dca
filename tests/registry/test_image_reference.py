"""An image reference is parsed once, with the defaults that Docker applies to a short name."""

from __future__ import annotations

import pytest

from composeplat.registry.image_reference import ImageReference, registry_of_prefix

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "registry", "repository"),
    [
        pytest.param("nginx", "docker.io", "library/nginx", id="short"),
        pytest.param("team/app", "docker.io", "team/app", id="with-a-path"),
        pytest.param("docker.io/nginx", "docker.io", "library/nginx", id="docker-hub"),
        pytest.param("index.docker.io/nginx", "docker.io", "library/nginx", id="docker-hub-by-its-index"),
        pytest.param("registry.example.com/team/app", "registry.example.com", "team/app", id="host"),
        pytest.param("localhost/app", "localhost", "app", id="localhost"),
        pytest.param("registry:5000/app", "registry:5000", "app", id="port"),
        pytest.param("[::1]:5000/app", "[::1]:5000", "app", id="ipv6"),
    ],
)
@pytest.mark.parametrize("tag", ["", "1"])
@pytest.mark.parametrize("digest", ["", DIGEST])
def test_parse(text: str, registry: str, repository: str, tag: str, digest: str) -> None:
    """The part before the first slash is the registry if it looks like a host; a port is no tag."""
    written = f"{text}{':' + tag if tag else ''}{'@' + digest if digest else ''}"

    assert ImageReference.parse(written) == ImageReference(
        registry=registry, repository=repository, tag=tag, digest=digest
    )


@pytest.mark.parametrize(
    ("text", "full", "name"),
    [
        pytest.param("shop", "docker.io/library/shop", "library/shop", id="short"),
        pytest.param("team/shop:1", "docker.io/team/shop:1", "team/shop:1", id="tag"),
        pytest.param("localhost:5000/shop", "localhost:5000/shop", "shop", id="port"),
        pytest.param(f"r.example.com/shop:1@{DIGEST}", f"r.example.com/shop:1@{DIGEST}", f"shop:1@{DIGEST}", id="both"),
    ],
)
def test_full_reference(text: str, full: str, name: str) -> None:
    """The full reference has the registry that a short one leaves out; parsing it again changes nothing."""
    reference = ImageReference.parse(text)

    assert (str(reference), reference.name) == (full, name)
    assert ImageReference.parse(full) == reference


@pytest.mark.parametrize(
    ("text", "version"),
    [("app", "latest"), ("app:1", "1"), (f"app@{DIGEST}", DIGEST), (f"app:1@{DIGEST}", DIGEST)],
)
def test_version(text: str, version: str) -> None:
    """Without a tag it is ``latest``; a digest wins over a tag."""
    assert ImageReference.parse(text).version == version


@pytest.mark.parametrize(
    ("prefix", "registry"),
    [
        ("registry.example.com/team", "registry.example.com"),
        ("localhost:5000", "localhost:5000"),
        ("team", "docker.io"),
        ("index.docker.io", "docker.io"),
    ],
)
def test_registry_of_prefix(prefix: str, registry: str) -> None:
    """A prefix that image names are appended to names a registry, or a namespace of Docker Hub."""
    assert registry_of_prefix(prefix) == registry
