"""Upstream releases, for a machine that reaches more than package registries.

Owns their URLs, their pinned checksums, and extracting a program from an archive.
Only a release with a pinned checksum is downloaded, and only a file that has it is kept and run.
A release that is not whole stays in the cache, and the next run continues it.
A host that does not answer at once is skipped silently, and the program is built. A proxy that needs a login, or can't
be used, is an error.
``COMPOSEPLAT_DOWNLOADS=off`` builds every program.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import os
import platform
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.toolchain.tools import Tool
from composeplat.toolchain.transfer import (
    BROKEN,
    BadDownload,
    RefusedRedirect,
    Show,
    drop,
    fetch,
    is_login_wanted,
    opener,
)

VARIABLE = "COMPOSEPLAT_DOWNLOADS"
SYSTEMS = ("linux", "darwin")
MACHINES = ("amd64", "arm64")
_ANSWER_TIMEOUT_S = 3.0
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def can_download(tool: Tool, environment: Mapping[str, str]) -> bool:
    """Return whether a program's release is pinned, and its host answers: a few seconds at most."""
    if environment.get(VARIABLE, "").lower() in ("off", "0", "no", "false"):
        return False
    url = release_url(tool)
    if not url or not pinned_checksum(tool.checksums, archive_name(url)):
        return False
    parts = urllib.parse.urlsplit(url)
    proxies = tuple((name, value) for name, value in environment.items() if name.upper().endswith("_PROXY"))
    return _answers(f"{parts.scheme}://{parts.netloc}/", proxies)


def download(tool: Tool, folder: Path, parts: Path, environment: Mapping[str, str], show: Show) -> None:
    """Put a program of the pinned release into a folder, or raise and leave the folder empty.

    The caller holds the lock of the release: ``parts`` has the part of it that earlier runs, or other programs, got.
    """
    url = release_url(tool)
    archive = parts / archive_name(url)
    _remove_others(archive)
    _obtain(url, archive, pinned_checksum(tool.checksums, archive.name), environment, show)
    program = folder / tool.name
    program.write_bytes(_program_in(archive, url, tool.name))
    program.chmod(0o755)
    if not _is_runnable(program):
        program.unlink()
        raise BadDownload(f"does not run on this machine: {url}")


def _remove_others(archive: Path) -> None:
    """Remove parts of releases of other versions."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    for path in archive.parent.iterdir():
        if not path.name.startswith(archive.name):
            path.unlink()


def _obtain(url: str, archive: Path, pinned: str, environment: Mapping[str, str], show: Show) -> None:
    """Download a release, or the rest of it. If its parts don't fit together, download it once more from its start."""
    if archive.exists() and sha256(archive) == pinned:
        return
    for _ in range(2):
        is_resumed = fetch(url, archive, environment, show)
        found = sha256(archive)
        if found == pinned:
            return
        drop(archive)
        if not is_resumed:
            break
    raise BadDownload(f"does not have the pinned checksum: {url} has the SHA-256 {found}, not {pinned}")


def release_checksum(url: str, environment: Mapping[str, str], show: Show) -> str:
    """The checksum that a release has now."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / archive_name(url)
        fetch(url, archive, environment, show)
        return sha256(archive)


def release_url(tool: Tool, system: str = "", machine: str = "") -> str:
    """Where a program's release lies, for this machine unless another is named; empty where there is none."""
    machine = machine or _MACHINES.get(platform.machine(), platform.machine())
    return tool.download.format(
        version=tool.version,
        system=system or platform.system().lower(),
        machine=machine,
        short={"amd64": "x64"}.get(machine, machine),
    )


def archive_name(url: str) -> str:
    return url.rpartition("/")[2]


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def pinned_checksum(path: Path, archive: str) -> str:
    """The checksum that is pinned for a release, by the name of its file; empty where there is none."""
    return read_checksums(path).get(archive, "")


def read_checksums(path: Path) -> dict[str, str]:
    """Read what ``sha256sum`` writes: a checksum and a name a line."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {fields[1]: fields[0] for fields in lines if len(fields) == 2}  # noqa: PLR2004 -- a checksum and a name


@functools.cache
def _answers(url: str, proxies: tuple[tuple[str, str], ...]) -> bool:
    request = urllib.request.Request(url, method="HEAD")
    try:
        with opener(dict(proxies)).open(request, timeout=_ANSWER_TIMEOUT_S):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except (MissingPiece, RefusedRedirect, ValueError):
        # The download reports what is wrong with the proxy, or the server.
        return True
    except (OSError, http.client.HTTPException) as error:
        return is_login_wanted(error)


def _program_in(path: Path, url: str, name: str) -> bytes:
    """A program by itself, or the one in a gzipped tar, whatever folder it is in."""
    if not url.endswith(".tar.gz"):
        return path.read_bytes()
    try:
        with tarfile.open(path) as archive:
            member = next((m for m in archive if m.isfile() and os.path.basename(m.name) == name), None)
            stream = archive.extractfile(member) if member else None
            if stream:
                return stream.read()
    except BROKEN as error:
        raise BadDownload(f"is no archive: {url} ({error})") from error
    raise BadDownload(f"has no program '{name}': {url}")


def _is_runnable(program: Path) -> bool:
    try:
        subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
