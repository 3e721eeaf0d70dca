"""Where the builder pulls base images from, as BuildKit's configuration has it, and the certificates for that.

Pure, but for reading the certificates. Base images come through the mirror, from its cache, as images of pods do.
It is apart from ``builder``, as BuildKit knows no default for all registries: each one needs a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.local.docker_settings import RegistrySettings
from composeplat.local.layout import Layout
from composeplat.system.files import Unreadable, read_bytes

#: Registries whose images the mirror pulls for the builder, beside those that Docker's files name.
PUBLIC_REGISTRIES = (
    "cgr.dev",
    "docker.elastic.co",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "lscr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry.access.redhat.com",
    "registry.gitlab.com",
    "registry.k8s.io",
)
_MAX_CERTIFICATES_BYTES = 1024 * 1024


def registry_tables(layout: Layout, settings: RegistrySettings) -> str:
    """Return the tables of ``buildkitd.toml``. Where the mirror can't pull an image, the builder asks the registry."""
    own = layout.host_ports.registry
    tables = {f"{host}:{own}": {"http": "true"} for host in ("localhost", "127.0.0.1", layout.build_mirror_host)}
    for host in sorted({*PUBLIC_REGISTRIES, *settings.hosts} - tables.keys()):
        tables[host] = dict(_keys(layout, settings, host))
    return "".join(
        f"[registry.{json.dumps(host)}]\n" + "".join(f"  {key} = {value}\n" for key, value in keys.items())
        for host, keys in tables.items()
    )


def _keys(layout: Layout, settings: RegistrySettings, host: str) -> Iterator[tuple[str, str]]:
    own = layout.host_ports.registry
    first = [f"127.0.0.1:{own}"] if host == "docker.io" else []
    yield "mirrors", json.dumps([*first, f"{layout.build_mirror_host}:{own}"])
    if host in settings.insecure:
        # Both together mean TLS without a check, and plain HTTP where there is no TLS.
        yield from (("insecure", "true"), ("http", "true"))
    if settings.certificates_of(host):
        yield "tlsconfigdir", json.dumps([str(_folder(layout, host))])


def certificate_files(layout: Layout, settings: RegistrySettings) -> dict[Path, bytes]:
    """Return the builder's copies of the certificates: it can't read closed files."""
    return {
        _folder(layout, host) / path.name: _read(path)
        for host in settings.hosts
        for path in settings.certificates_of(host)
    }


def _folder(layout: Layout, host: str) -> Path:
    return layout.build_run / "certs.d" / host


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, limit=_MAX_CERTIFICATES_BYTES)
    except Unreadable as error:
        raise MissingPiece(f"can't read the certificate {path}: {error.reason}", "correct it, or remove it") from error
