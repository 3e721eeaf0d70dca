"""Find each program or make it: what ``platform setup`` does, and what other rooms ask before they start one."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from composeplat import talk
from composeplat.diagnostics import MissingPiece
from composeplat.toolchain.cache import Cache, cache_folder
from composeplat.toolchain.golang import build, find_go, need_go
from composeplat.toolchain.makers import can_fetch, fetch
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI, TOOLS, Tool

ON_PATH, CACHED, FETCHED, BUILT = "on PATH", "in the cache", "fetched", "built"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A program that is there."""

    tool: Tool
    path: Path
    version: str
    origin: str


class Toolchain:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.cache = Cache(cache_folder(environment))

    def find(self, tool: Tool) -> Found | None:
        """Look for a program without making anything."""
        return self._on_path(tool) or self._in_cache(tool)

    def need(self, tool: Tool) -> Found:
        """Find a program, or make it."""
        found = self.find(tool)
        if found:
            return found
        try:
            return self._make(tool)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise MissingPiece(
                f"{tool.name} {tool.version} can't be put into {self.cache.folder}: {reason}",
                "make room there, or name another folder with COMPOSEPLAT_CACHE",
            ) from None

    def need_all(self, tools: Iterable[Tool]) -> dict[str, Found]:
        return {tool.name: self.need(tool) for tool in tools}

    def _on_path(self, tool: Tool) -> Found | None:
        path = shutil.which(tool.name, path=self.environment.get("PATH")) if tool.ask else None
        version = self._version(Path(path), tool) if path else ""
        if path and version and (version == tool.version or version.startswith(tool.fits)):
            return Found(tool=tool, path=Path(path), version=version, origin=ON_PATH)
        return None

    def _version(self, path: Path, tool: Tool) -> str:
        try:
            done = subprocess.run(
                [path, *tool.ask], env=dict(self.environment), capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        match = re.search(r"(\d+\.\d+\.\d+)", done.stdout)
        return match[1] if match and done.returncode == 0 else ""

    def _in_cache(self, tool: Tool) -> Found | None:
        if not self.cache.has(tool):
            return None
        return Found(tool=tool, path=self.cache.place(tool), version=tool.version, origin=CACHED)

    def _make(self, tool: Tool) -> Found:
        name = f"{tool.name} {tool.version}"
        origin = CACHED
        with self.cache.lock(tool.name, lambda: talk.note(f"another setup is making {name}; waiting for it")):
            if not self.cache.has(tool):
                origin = FETCHED if self._fetch(tool, name) else BUILT
                if origin == BUILT:
                    self._build(tool, name)
        return Found(tool=tool, path=self.cache.place(tool), version=tool.version, origin=origin)

    def _fetch(self, tool: Tool, name: str) -> bool:
        if not can_fetch(tool, self.environment):
            return False
        engine = self.find(PULUMI) if tool in (KUBERNETES_PROVIDER, DOCKER_BUILD_PROVIDER) else None
        with (
            talk.step(f"fetching {name} from its makers"),
            self.cache.aside(self.cache.place(tool)) as aside,
        ):
            found = fetch(tool, aside, self.environment, engine.path if engine else None)
        if not found:
            talk.note(f"{name} could not be fetched; it is built instead")
        return found

    def _build(self, tool: Tool, name: str) -> None:
        go = need_go(self.environment, self.cache)
        usual = self.cache.duration(tool.name) or tool.minutes * 60
        started = time.monotonic()
        with (
            talk.step(f"building {name}", usual=usual),
            self.cache.aside(self.cache.place(tool)) as aside,
        ):
            build(tool, go, aside / tool.name, self.environment)
        self.cache.remember_duration(tool.name, time.monotonic() - started)

    def report(self, tools: Iterable[Tool] = TOOLS) -> list[dict[str, str]]:
        """What is there, where from, in which version, and what is missing: a row a program."""
        rows = [self._row(tool) for tool in tools]
        go = find_go(self.environment)
        state = {"version": go.version, "origin": ON_PATH, "path": str(go.path)} if go else {"origin": "missing"}
        return [*rows, {"name": "go", "version": "", "path": "", **state}]

    def _row(self, tool: Tool) -> dict[str, str]:
        found = self.find(tool)
        if found:
            return {"name": tool.name, "version": found.version, "origin": found.origin, "path": str(found.path)}
        return {"name": tool.name, "version": tool.version, "origin": "missing", "path": ""}
