"""Find each program, or download or build it: for ``platform setup``, and before a room starts a program.

Owns the order of the sources: the cache, PATH, a download, a build. A program on PATH has to run to print its version,
which takes Pulumi a fifth of a second, so the cache is before it.
"""

from __future__ import annotations

import errno
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from composeplat import progress
from composeplat.diagnostics import MissingPiece
from composeplat.system.atomic import OfAnotherUser, refuse_planted
from composeplat.system.folders import cache_folder
from composeplat.system.records import record
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.downloads import VARIABLE, can_download, download
from composeplat.toolchain.golang import build, find_go, need_go
from composeplat.toolchain.tools import TOOLS, Tool, programs_of_release
from composeplat.toolchain.transfer import BadDownload
from composeplat.toolchain.versions import version_output

_OTHER_FOLDER = "name another folder with COMPOSEPLAT_CACHE"
_FIXES = {
    errno.ENOSPC: "free space there, or ",
    errno.EDQUOT: "free space there, or ",
    errno.EACCES: "make what is in it yours, as after a run with sudo, or ",
    errno.EPERM: "make what is in it yours, as after a run with sudo, or ",
}


class Origin(StrEnum):
    """The source of a program, as ``setup --check`` prints it."""

    CACHE = "cache"
    PATH = "path"
    DOWNLOADED = "downloaded"
    BUILT = "built"
    MISSING = "missing"


@record(kw_only=True)
class Found:
    """A program on this machine."""

    tool: Tool
    path: Path
    version: str
    origin: Origin


class Toolchain:
    def __init__(self, environment: Mapping[str, str], table: Iterable[Tool] = TOOLS) -> None:
        self.environment = environment
        self.cache = Cache(cache_folder(environment))
        self._table = tuple(table)

    def find(self, tool: Tool) -> Found | None:
        """Look for a program, without a download or a build."""
        cached = self._in_cache(tool)
        if cached is not None:
            return cached
        on_path = self._on_path(tool)
        return on_path if on_path and on_path.version == tool.version else None

    def passed_over(self, tool: Tool) -> str:
        """Return a message about a program on PATH that is not used, as its version differs; empty if there is none."""
        found = self._on_path(tool)
        if found is None or found.version == tool.version:
            return ""
        version = found.version or "of an unknown version"
        return f"also found {tool.name} {version} at {found.path}, not the pinned {tool.version}"

    def need(self, tool: Tool) -> Found:
        """Find a program, or download or build it."""
        found = self.find(tool)
        if found:
            return found
        try:
            return self._make(tool)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"{tool.name} {tool.version} can't be put into {self.cache.folder}: {reason}"
            raise MissingPiece(message, _FIXES.get(error.errno or 0, "") + _OTHER_FOLDER) from error

    def need_all(self, tools: Iterable[Tool]) -> dict[str, Found]:
        return {tool.name: self.need(tool) for tool in tools}

    def _on_path(self, tool: Tool) -> Found | None:
        """Return the program of that name on PATH, of any version."""
        path = shutil.which(tool.name, path=self.environment.get("PATH")) if tool.version_args else None
        if path is None:
            return None
        return Found(tool=tool, path=Path(path), version=self._version(Path(path), tool), origin=Origin.PATH)

    def _version(self, path: Path, tool: Tool) -> str:
        match = re.search(r"(\d+\.\d+\.\d+)", version_output(path, tool.version_args, self.environment))
        return match[1] if match else ""

    def _in_cache(self, tool: Tool) -> Found | None:
        found = Found(tool=tool, path=self.cache.program_path(tool), version=tool.version, origin=Origin.CACHE)
        try:
            refuse_planted(self.cache.folder)
            is_there = self.cache.has(tool)
        except OfAnotherUser as error:
            message = f"'{self.cache.folder}', the folder for programs, belongs to another user"
            raise MissingPiece(message, _OTHER_FOLDER) from error
        except OSError:
            # Putting a program there explains it.
            return None
        return found if is_there else None

    def _make(self, tool: Tool) -> Found:
        name = f"{tool.name} {tool.version}"
        together = programs_of_release(tool, self._table)
        release = together[0].name
        waiting = f"waiting for another setup, which installs {release} {tool.version}"
        origin = Origin.CACHE
        with self.cache.lock(release, lambda: progress.note(waiting)):
            if not self.cache.has(tool):
                if passed_over := self.passed_over(tool):
                    progress.note(passed_over)
                origin = Origin.DOWNLOADED if self._download(tool, name, self.cache.parts(release)) else Origin.BUILT
                if origin is Origin.BUILT:
                    self._build(tool, name)
                if all(self.cache.has(other) for other in together):
                    shutil.rmtree(self.cache.parts(release), ignore_errors=True)
        return Found(tool=tool, path=self.cache.program_path(tool), version=tool.version, origin=origin)

    def _download(self, tool: Tool, name: str, parts: Path) -> bool:
        if not can_download(tool, self.environment):
            return False
        try:
            with (
                progress.transfer(f"downloading {name}") as show,
                self.cache.staging(self.cache.program_path(tool)) as staged,
            ):
                download(tool, staged, parts, self.environment, show)
        except BadDownload as error:
            progress.note(f"{name} {error}; it is built instead: {VARIABLE}=off skips the download")
            return False
        return True

    def _build(self, tool: Tool, name: str) -> None:
        go = need_go(self.environment, self.cache)
        usual = self.cache.duration(tool.name) or tool.build_minutes * 60
        started = time.monotonic()
        with (
            progress.step(f"building {name}", usual_seconds=usual),
            self.cache.staging(self.cache.program_path(tool)) as staged,
        ):
            build(tool, go, staged / tool.name, self.environment)
        self.cache.remember_duration(tool.name, time.monotonic() - started)

    def report(self, tools: Iterable[Tool] = TOOLS) -> list[dict[str, str]]:
        """Return a row for each program, with its version and origin."""
        rows = [self._row(tool) for tool in tools]
        go = find_go(self.environment)
        if go is None:
            return [*rows, {"name": "go", "version": "", "source": Origin.MISSING, "path": ""}]
        return [*rows, {"name": "go", "version": go.version, "source": Origin.PATH, "path": str(go.path)}]

    def _row(self, tool: Tool) -> dict[str, str]:
        found = self.find(tool)
        passed_over = self.passed_over(tool)
        more = {"ignored": passed_over} if passed_over else {}
        if found:
            return {
                "name": tool.name,
                "version": found.version,
                "source": found.origin,
                "path": str(found.path),
                **more,
            }
        return {"name": tool.name, "version": tool.version, "source": Origin.MISSING, "path": "", **more}
