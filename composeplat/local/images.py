"""Make small images and push them to a registry, without a builder.

Owns the bytes of an image: layers as tar archives, a configuration, a manifest. The same content has the same digest.
The cluster's own images are made this way, such as that of the pod sandbox, and base images for tests and examples.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import field

from composeplat.diagnostics import ComposeplatError
from composeplat.registry.image_reference import ImageReference
from composeplat.system.machine import architecture
from composeplat.system.records import record

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@record
class File:
    content: bytes = b""
    mode: int = 0o755
    link: str = ""
    """A symbolic link to here, instead of content."""
    uid: int = 0
    gid: int = 0


@record(kw_only=True)
class Image:
    files: Mapping[str, File]
    """Path without a leading slash -> file; folders are made as needed, and for a path that ends with a slash."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    working_dir: str = "/"
    user: str = ""


def push(image: Image, reference: str, registry: tuple[str, int]) -> str:
    """Push an image as ``name:tag``, and return its digest."""
    target = ImageReference.parse(f"{registry[0]}:{registry[1]}/{reference}")
    layer = _layer(image.files)
    packed = gzip.compress(layer, 6, mtime=0)
    config = json.dumps(_config(image, digest_of(layer)), sort_keys=True).encode()
    connection = http.client.HTTPConnection(*registry, timeout=60)
    try:
        for blob in (packed, config):
            push_blob(connection, target.repository, blob)
        layers = [(digest_of(packed), len(packed))]
        return push_manifest(connection, target.repository, target.version, config, layers)
    except (OSError, http.client.HTTPException) as error:
        raise ComposeplatError(f"can't push {reference} to {registry[0]}:{registry[1]}: {error}") from error
    finally:
        connection.close()


def _layer(files: Mapping[str, File]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder in sorted(_folders(files)):
            given = files.get(f"{folder}/", File())
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else given.mode
            info.uid, info.gid = given.uid, given.gid
            archive.addfile(info)
        for path, file in sorted(files.items()):
            if path.endswith("/"):
                continue
            info = tarfile.TarInfo(path)
            info.mode, info.uid, info.gid = file.mode, file.uid, file.gid
            if file.link:
                info.type, info.linkname = tarfile.SYMTYPE, file.link
            else:
                info.size = len(file.content)
            archive.addfile(info, io.BytesIO(file.content))
    return stream.getvalue()


def _folders(files: Mapping[str, File]) -> set[str]:
    folders: set[str] = set()
    for path in files:
        steps = path.rstrip("/").split("/")
        if not path.endswith("/"):
            steps.pop()
        folders.update("/".join(steps[:count]) for count in range(1, len(steps) + 1))
    return folders


def _config(image: Image, layer_digest: str) -> dict[str, object]:
    run: dict[str, object] = {
        "Env": [
            f"{name}={value}" for name, value in sorted({"PATH": "/bin:/sbin:/usr/bin", **image.environment}.items())
        ],
        "WorkingDir": image.working_dir,
    }
    if image.entrypoint:
        run["Entrypoint"] = list(image.entrypoint)
    if image.command:
        run["Cmd"] = list(image.command)
    if image.ports:
        run["ExposedPorts"] = {f"{port}/tcp": {} for port in image.ports}
    if image.user:
        run["User"] = image.user
    return {
        "architecture": architecture(),
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
    }


def digest_of(content: bytes | memoryview) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


# the protocol of registries -------------------------------------------------------------------------------------------


def push_manifest(
    connection: http.client.HTTPConnection,
    repository: str,
    version: str,
    config: bytes,
    layers: Iterable[tuple[str, int]],
) -> str:
    """Push the manifest of an image whose blobs are pushed; layers are digests and sizes. Return its digest."""
    document = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": digest_of(config), "size": len(config)},
        "layers": [{"mediaType": _LAYER, "digest": digest, "size": size} for digest, size in layers],
    }
    manifest = json.dumps(document, sort_keys=True).encode()
    _call(connection, "PUT", f"/v2/{repository}/manifests/{version}", manifest, _MANIFEST)
    return digest_of(manifest)


def push_blob(
    connection: http.client.HTTPConnection, repository: str, blob: bytes | memoryview, digest: str = ""
) -> None:
    """Push a blob, unless the repository has it."""
    digest = digest or digest_of(blob)
    if _status(connection, "HEAD", f"/v2/{repository}/blobs/{digest}") == http.client.OK:
        return
    location = _call(connection, "POST", f"/v2/{repository}/blobs/uploads/", b"", "")
    path = location.split("://", 1)[-1]
    path = path[path.index("/") :] if "://" in location else location
    separator = "&" if "?" in path else "?"
    _call(connection, "PUT", f"{path}{separator}digest={digest}", blob, "application/octet-stream")


def mount_blob(connection: http.client.HTTPConnection, repository: str, digest: str, source: str) -> None:
    """Give a repository a blob that another one of the registry has."""
    _call(connection, "POST", f"/v2/{repository}/blobs/uploads/?mount={digest}&from={source}", b"", "")


def _status(connection: http.client.HTTPConnection, method: str, path: str) -> int:
    connection.request(method, path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def _call(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | memoryview, kind: str) -> str:
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    answer = connection.getresponse()
    read = answer.read()
    if answer.status >= http.client.BAD_REQUEST:
        raise ComposeplatError(
            f"the registry refused {method} {path}: {answer.status} {read[:200].decode('utf-8', 'replace')}"
        )
    return answer.getheader("Location") or ""
