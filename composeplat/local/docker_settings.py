"""The settings of registries in Docker's files on this machine: certificates, registries without TLS, and logins.

Owns the paths of these files, and reads them. Must not know who uses them.
It is apart because the mirror and the builder follow the same files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.registry.docker_folder import docker_folder
from composeplat.registry.image_reference import DOCKER_HUB, HUB_HOSTS
from composeplat.system.files import Unreadable, read_bytes
from composeplat.system.records import record

#: The folder of Docker's daemon: its settings, and a folder of certificates for each registry.
DAEMON_FOLDER = Path("/etc/docker")
_MAX_SETTINGS_BYTES = 1024 * 1024
_FIX = "correct it, or remove it"
_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?")


@record(kw_only=True)
class RegistrySettings:
    certificates: Path = DAEMON_FOLDER / "certs.d"
    """A folder with a folder for each registry: ``NAME.crt`` is an authority, ``NAME.cert`` a certificate to show."""
    insecure: tuple[str, ...] = ()
    """Registries and ranges of addresses without TLS, or with certificates that nobody checks."""
    hosts: tuple[str, ...] = ()
    """Registries that these files name."""

    def certificates_of(self, host: str) -> tuple[Path, ...]:
        """Return the files of a registry."""
        folder = self.certificates / host
        return tuple(sorted(path for path in folder.glob("*") if path.suffix in (".crt", ".cert", ".key")))


def read_registry_settings(environment: Mapping[str, str]) -> RegistrySettings:
    """Read Docker's files; a missing one has no settings."""
    certificates = DAEMON_FOLDER / "certs.d"
    insecure = _read_insecure(DAEMON_FOLDER / "daemon.json")
    folders = [path.name for path in certificates.glob("*") if path.is_dir()]
    named = {_normalize(host) for host in (*insecure, *folders, *_read_login_hosts(environment))}
    return RegistrySettings(
        certificates=certificates,
        insecure=insecure,
        hosts=tuple(sorted(host for host in named if _HOST.fullmatch(host))),
    )


def _normalize(address: str) -> str:
    """Return the host of an address, which may have a scheme and a path in files of logins."""
    host = address.partition("://")[2] or address
    if "/v" in host:
        host = host.partition("/")[0]
    return DOCKER_HUB if host in HUB_HOSTS else host


def _read_insecure(path: Path) -> tuple[str, ...]:
    try:
        settings = _read_json(path)
    except Unreadable as error:
        raise MissingPiece(f"can't read {path}: {error.reason}", _FIX) from error
    except ValueError as error:
        raise MissingPiece(f"{path} is invalid: {error}", _FIX) from error
    found = settings.get("insecure-registries", []) if isinstance(settings, dict) else None
    if not isinstance(found, list) or not all(isinstance(entry, str) for entry in found):
        raise MissingPiece(f"{path} is invalid: 'insecure-registries' must be a list of strings", _FIX)
    return tuple(found)


def _read_login_hosts(environment: Mapping[str, str]) -> list[str]:
    """Return the registries with a login; who uses a login reports an invalid file."""
    try:
        settings = _read_json(docker_folder(environment) / "config.json")
    except (Unreadable, ValueError):
        return []
    sections = [settings.get(name) for name in ("auths", "credHelpers")] if isinstance(settings, dict) else []
    return [host for section in sections if isinstance(section, dict) for host in section]


def _read_json(path: Path) -> object:
    try:
        content = read_bytes(path, limit=_MAX_SETTINGS_BYTES)
    except Unreadable as error:
        if error.missing:
            return {}
        raise
    return json.loads(content or b"{}")
