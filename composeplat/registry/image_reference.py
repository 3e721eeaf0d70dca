"""Image references: the registry, repository, tag and digest that an image's name stands for.

Owns how a reference is parsed, with the defaults that Docker applies to a short name.
Must not know how a registry is asked, so that every room may parse a reference without loading a client.
"""

from __future__ import annotations

from typing import Self

from composeplat.system.records import record

DOCKER_HUB = "docker.io"
DEFAULT_TAG = "latest"
HUB_HOSTS = (DOCKER_HUB, "index.docker.io", "registry-1.docker.io")


@record(kw_only=True)
class ImageReference:
    """A parsed reference. The same image always has the same registry and repository, however short its name is."""

    registry: str
    """A host, with its port where it has one; ``docker.io`` for a name without a host."""
    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a reference. A part before the first slash is a registry only if it looks like a host."""
        name, _, digest = text.partition("@")
        host, _, path = name.partition("/")
        if cls.is_short(name):
            host, path = DOCKER_HUB, name
        repository, colon, tag = path.rpartition(":")
        if not colon:
            repository, tag = path, ""
        if host in HUB_HOSTS:
            host = DOCKER_HUB
            repository = repository if "/" in repository else f"library/{repository}"
        return cls(registry=host, repository=repository, tag=tag, digest=digest)

    @staticmethod
    def is_short(text: str) -> bool:
        """Check for a reference that names no registry."""
        host, slash, _ = text.partition("/")
        return not slash or not _is_host(host)

    def __str__(self) -> str:
        """The full reference, with the registry that a short name leaves out."""
        return f"{self.registry}/{self.name}"

    @property
    def name(self) -> str:
        """The reference within its registry: ``team/app:1``."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"

    @property
    def version(self) -> str:
        """The part that a registry looks a manifest up by: a digest wins over a tag."""
        return self.digest or self.tag or DEFAULT_TAG


def registry_of_prefix(prefix: str) -> str:
    """Return the registry of a prefix that image names are appended to, such as ``registry.example.com/team``."""
    return ImageReference.parse(f"{prefix}/image").registry


def _is_host(text: str) -> bool:
    return "." in text or ":" in text or text == "localhost"
