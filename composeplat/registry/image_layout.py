"""The folder with a built image, as BuildKit's exporter ``oci`` writes it, and the archive that other programs load.

Owns reading the image's ports from such a folder, and writing an archive with one name for the image: it has the index
of OCI and Docker's manifest, so that containerd and Docker both load it.
Must not know where an archive goes.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from composeplat.registry.image_config import Ports, parse_ports
from composeplat.system import files
from composeplat.system.records import record

_INDEX = "index.json"
_MAX_JSON_BYTES = 4 * 1024 * 1024
#: The errors of a damaged folder.
READ_ERRORS = (OSError, files.Unreadable, ValueError, KeyError, TypeError, AttributeError)


@record
class ImageLayout:
    """An image in a folder that may have others too, of builds that were interrupted."""

    folder: Path
    digest: str

    @property
    def exists(self) -> bool:
        """Whether the folder has the whole image."""
        try:
            return all(self._path(digest).exists() for digest in self._digests())
        except READ_ERRORS:
            return False

    def ports(self) -> Ports:
        """Return the ports that the image exposes."""
        config = self._json(self._manifest()["config"]["digest"])
        return parse_ports((config.get("config") or {}).get("ExposedPorts") or {})

    def write_archive(self, path: Path, name: str) -> None:
        """Write the archive; the name has a registry and a tag."""
        manifest = self._manifest()
        annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
        entry = {
            "mediaType": manifest["mediaType"],
            "digest": self.digest,
            "size": self._path(self.digest).stat().st_size,
            "annotations": annotations,
        }
        of_docker = {
            "Config": _member(manifest["config"]["digest"]),
            "RepoTags": [name],
            "Layers": [_member(layer["digest"]) for layer in manifest["layers"]],
        }
        with tarfile.open(path, "w") as archive:
            _add_json(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
            _add_json(archive, _INDEX, {"schemaVersion": 2, "manifests": [entry]})
            _add_json(archive, "manifest.json", [of_docker])
            for digest in dict.fromkeys(self._digests()):
                archive.add(self._path(digest), _member(digest), recursive=False)

    def _digests(self) -> Iterator[str]:
        manifest = self._manifest()
        yield self.digest
        yield manifest["config"]["digest"]
        yield from (layer["digest"] for layer in manifest["layers"])

    def _manifest(self) -> Any:
        return self._json(self.digest)

    def _json(self, digest: str) -> Any:
        return json.loads(files.read_bytes(self._path(digest), limit=_MAX_JSON_BYTES))

    def _path(self, digest: str) -> Path:
        return self.folder / _member(digest)


def _member(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add_json(archive: tarfile.TarFile, name: str, content: object) -> None:
    text = json.dumps(content).encode()
    member = tarfile.TarInfo(name)
    member.size = len(text)
    archive.addfile(member, io.BytesIO(text))
