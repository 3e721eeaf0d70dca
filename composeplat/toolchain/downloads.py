"""Upstream releases, for a machine that reaches more than package registries.

Owns their URLs, their pinned checksums, and extracting a program from an archive.
Only a release with a pinned checksum is downloaded, and only a file that has it is kept and run.
A host that does not answer at once is skipped silently, and the program is built. A proxy that needs a login, or can't
be used, is an error.
``COMPOSEPLAT_DOWNLOADS=off`` builds every program.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import io
import os
import platform
import subprocess
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.system.proxies import find_proxy_for
from composeplat.toolchain.tools import Tool

VARIABLE = "COMPOSEPLAT_DOWNLOADS"
SYSTEMS = ("linux", "darwin")
MACHINES = ("amd64", "arm64")
_ANSWER_TIMEOUT_S = 3.0
_DOWNLOAD_TIMEOUT_S = 600.0
_MAX_BYTES = 1024**3
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_BROKEN = (OSError, EOFError, zlib.error, http.client.HTTPException, tarfile.TarError)


class BadDownload(Exception):
    """A release can't be used; the text continues a sentence that names it."""


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


def download(tool: Tool, folder: Path, environment: Mapping[str, str]) -> None:
    """Put a program of the pinned release into a folder, or raise and leave the folder empty."""
    url = release_url(tool)
    content = fetch(url, environment)
    found, pinned = sha256(content), pinned_checksum(tool.checksums, archive_name(url))
    if found != pinned:
        raise BadDownload(f"does not have the pinned checksum: {url} is {found[:12]}…, not {pinned[:12]}…")
    program = folder / tool.name
    program.write_bytes(_program_in(content, url, tool.name))
    program.chmod(0o755)
    if not _is_runnable(program):
        program.unlink()
        raise BadDownload(f"does not run on this machine: {url}")


def fetch(url: str, environment: Mapping[str, str]) -> bytes:
    """Download from an address, through the proxy of the environment."""
    try:
        with _opener(environment).open(url, timeout=_DOWNLOAD_TIMEOUT_S) as answer:
            content: bytes = answer.read(_MAX_BYTES + 1)
    except (*_BROKEN, MissingPiece) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise BadDownload(f"can't be downloaded from {url}: {_reason(error, url, environment)}") from error
    if len(content) > _MAX_BYTES:
        raise BadDownload(f"is larger than {_MAX_BYTES // 1024**2} MiB: {url}")
    return content


def _reason(error: Exception, url: str, environment: Mapping[str, str]) -> str:
    if isinstance(error, MissingPiece):
        return f"{error}: {error.hint}"
    proxy = find_proxy_for(environment, url)
    if proxy is None or not _is_login_wanted(error):
        return str(error)
    wants = "refuses the login of its URL" if proxy.authorization else "needs a login"
    return f"the proxy {proxy.address} {wants}: put user and password into its URL, http://user:password@host:port"


def _is_login_wanted(error: Exception) -> bool:
    """Return whether a proxy answered 407; of a tunnel the library has the answer only as text."""
    wanted = http.client.PROXY_AUTHENTICATION_REQUIRED
    return getattr(error, "code", 0) == wanted or f"Tunnel connection failed: {wanted:d}" in str(error)


class _ThroughProxies(urllib.request.BaseHandler):
    """Leads every request through the proxy that is named for its address: that of a redirect too."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        proxy = find_proxy_for(self._environment, request.full_url)
        if proxy is not None:
            request.set_proxy(proxy.netloc, "http")
            if proxy.authorization:
                request.add_unredirected_header("Proxy-authorization", proxy.authorization)
        return request

    https_request = http_request


def _opener(environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """What opens addresses. The library's own proxies are those of the process's environment, and are left out."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _ThroughProxies(environment))


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


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
        with _opener(dict(proxies)).open(request, timeout=_ANSWER_TIMEOUT_S):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except MissingPiece:
        # The download reports what is wrong with the proxy.
        return True
    except OSError as error:
        return _is_login_wanted(error)


def _program_in(content: bytes, url: str, name: str) -> bytes:
    """A program by itself, or the one in a gzipped tar, whatever folder it is in."""
    if not url.endswith(".tar.gz"):
        return content
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next((m for m in archive if m.isfile() and os.path.basename(m.name) == name), None)
            stream = archive.extractfile(member) if member else None
            if stream:
                return stream.read()
    except _BROKEN as error:
        raise BadDownload(f"is no archive: {url} ({error})") from error
    raise BadDownload(f"has no program '{name}': {url}")


def _is_runnable(program: Path) -> bool:
    try:
        subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
