"""The makers' own downloads: for a machine that reaches more than package registries.

Owns the addresses, and how each maker's parcel is opened.
A place that does not answer at once is passed over without a word: then the program is built.

What comes is trusted as far as its maker's HTTPS certificate goes; no checksum of it is pinned, as releases differ by
machine.
``go build`` on pinned modules is the stricter way, and ``COMPOSEPLAT_DOWNLOADS=off`` asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Mapping
from pathlib import Path

from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI, Tool

SWITCH = "COMPOSEPLAT_DOWNLOADS"
_PATIENCE = 3.0
_LONGEST = 600.0
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
#: Where the makers' own installers fetch from, asked first whether anyone is there.
_PULUMI_HOSTS = ("https://get.pulumi.com", "https://github.com")
_BROKEN = (
    OSError, EOFError, zlib.error, http.client.HTTPException, tarfile.TarError, subprocess.SubprocessError,
)  # fmt: skip
_BY_PULUMI = (PULUMI, KUBERNETES_PROVIDER, DOCKER_BUILD_PROVIDER)
#: The Automation API's installer, in a process of its own: it is to load no Pulumi here, and to be ended in time.
_INSTALLER = (
    "import sys\n"
    "from pulumi.automation import PulumiCommand\n"
    "from semver import VersionInfo\n"
    "PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2]))\n"
)


def can_fetch(tool: Tool, environment: Mapping[str, str]) -> bool:
    """Say whether a program's makers can be reached: a few seconds at most."""
    if environment.get(SWITCH, "").lower() in ("off", "0", "no", "false"):
        return False
    if tool in _BY_PULUMI:
        return all(_answers(host) for host in _PULUMI_HOSTS)
    parts = urllib.parse.urlsplit(tool.download)
    return bool(tool.download) and _answers(f"{parts.scheme}://{parts.netloc}/")


def fetch(tool: Tool, folder: Path, environment: Mapping[str, str], pulumi: Path | None) -> bool:
    """Fetch a program into a folder; gives whether it is there, and leaves the folder empty if not.

    ``pulumi`` is the engine, where it is there already: it fetches its providers itself.
    """
    fetched = False
    with contextlib.suppress(*_BROKEN):
        if tool == PULUMI:
            _installer(tool, folder, environment)
        elif tool in _BY_PULUMI and pulumi is not None:
            _by_engine(tool, folder, environment, pulumi)
        elif tool.download:
            _archive(tool, folder)
        fetched = _runs(folder / tool.name)
    if not fetched:
        for leftover in folder.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    return fetched


def address(tool: Tool) -> str:
    """Where a program's release for this machine lies."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return tool.download.format(version=tool.version, system=platform.system().lower(), machine=machine)


@functools.cache
def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_PATIENCE):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _installer(tool: Tool, folder: Path, environment: Mapping[str, str]) -> None:
    root = folder / "pulumi"
    _run([sys.executable, "-c", _INSTALLER, str(root), tool.version], environment)
    for program in (root / "bin").iterdir():
        program.rename(folder / program.name)
    shutil.rmtree(root)


def _by_engine(tool: Tool, folder: Path, environment: Mapping[str, str], pulumi: Path) -> None:
    home = folder / "home"
    name = tool.name.removeprefix("pulumi-resource-")
    more = {"PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    _run([str(pulumi), "plugin", "install", "resource", name, tool.version], {**environment, **more})
    (home / "plugins" / f"resource-{name}-v{tool.version}" / tool.name).rename(folder / tool.name)
    shutil.rmtree(home)


def _archive(tool: Tool, folder: Path) -> None:
    """A program by itself, or in a gzipped tar."""
    url = address(tool)
    with urllib.request.urlopen(url, timeout=_LONGEST) as answer:
        content = answer.read()
    if url.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next((m for m in archive if m.isfile() and os.path.basename(m.name) == tool.name), None)
            stream = archive.extractfile(member) if member else None
            content = stream.read() if stream else b""
    (folder / tool.name).write_bytes(content)
    (folder / tool.name).chmod(0o755)


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run(command, env=dict(environment), capture_output=True, timeout=_LONGEST, check=True)


def _runs(program: Path) -> bool:
    """Say whether there is a program that this machine starts: a page that says 'not found' is none."""
    if not program.is_file():
        return False
    try:
        subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
