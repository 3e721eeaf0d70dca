"""Add the content of files to the model: env files of services, host volumes.

Owns reading the files that only the model names, and their messages.
Must not know nodes: it reports at origins.
"""

from __future__ import annotations

import os.path
import posixpath
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from composeplat.compose.data_paths import find_program, looks_like_file
from composeplat.compose.discovery import MAX_ENV_FILE_BYTES
from composeplat.compose.dotenv import EnvLines, evaluate_lines
from composeplat.compose.load.examples import example_hint
from composeplat.compose.load.host_content import ITSELF, read_host_content
from composeplat.compose.load.host_data import (
    ambiguous_names,
    check_host_volume,
    check_shared_data,
    volume_for,
)
from composeplat.compose.load.letter_case import case_hint
from composeplat.compose.load.reading import Reading
from composeplat.compose.model import HOST, Mount, Project, Service
from composeplat.compose.origins import Checker, Origins, env_file_path, mount_path
from composeplat.compose.system_paths import NO_SYSTEM_PATH, instead_of_system_path
from composeplat.diagnostics import PathKey, quoted
from composeplat.names import is_env_name
from composeplat.system import files

MAX_ENVIRONMENTS = 32 * 1024 * 1024
_NO_ENV_FILE = "create it, or write the long form with required: false"


def with_content(project: Project, origins: Origins, reading: Reading) -> Project:
    content = Content(project, origins, reading)
    services = {
        name: replace(service, variables=content.variables(service), mounts=content.mounts(service))
        for name, service in project.services.items()
    }
    check_shared_data(content, services.values(), content.data)
    return replace(project, services=services)


class Content(Checker):
    def __init__(self, project: Project, origins: Origins, reading: Reading) -> None:
        super().__init__(project, origins, reading.report)
        self.reading = reading
        self._taken = ambiguous_names(project)
        self.data: dict[PathKey, str] = {}
        """The folders that hold data, by the paths of their mounts."""
        self._total = 0
        self._env: dict[tuple[str, bool], EnvLines | files.Unreadable | None] = {}

    def variables(self, service: Service) -> dict[str, str]:
        """Merge the env files and ``environment``; a name without a value removes the variable."""
        merged: dict[str, str] = {}
        for index, file in enumerate(service.env_files):
            found = self._env_file(file.path, raw=file.raw)
            if isinstance(found, EnvLines):
                values = evaluate_lines(found, self._lookup(service), self.report, earlier=merged.get)
                merged.update(
                    {name: value for name, value in values.items() if self._is_accepted(name, service, index)}
                )
            elif found is not None and (file.required or not found.missing) and self.reading.publishes:
                path = env_file_path(service.name, index)
                hint = found.hint
                if found.missing:
                    hint = case_hint(file.path) or example_hint(file.path) or _NO_ENV_FILE
                code = found.code or "unreadable-file"
                self.add(code, path, f"names a file that {found.reason}: {self._shown(path)}", hint)
        for name, value in service.environment.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        return merged if self._fits(merged, service) else {}

    def _lookup(self, service: Service) -> Callable[[str], str | None]:
        """Look ``${NAME}`` up as Compose does in env files: the command's variables, then the service's."""

        def look(name: str) -> str | None:
            found = self.reading.variables.lookup(name)
            return service.environment.get(name) if found is None else found

        return look

    def _fits(self, merged: dict[str, str], service: Service) -> bool:
        """Limit the total size of variables: a shared env file is copied into each service."""
        before, self._total = self._total, self._total + sum(len(name) + len(value) for name, value in merged.items())
        if self._total <= MAX_ENVIRONMENTS:
            return True
        if before <= MAX_ENVIRONMENTS:
            message = f"brings the variables of all services above {MAX_ENVIRONMENTS // 1024**2} MiB"
            self.add(
                "too-large", ("services", service.name), message, "give fewer services the large values", at_key=True
            )
        return False

    def _is_accepted(self, name: str, service: Service, index: int) -> bool:
        """Whether Kubernetes accepts a variable's name; if not, warn."""
        if is_env_name(name):
            return True
        path = env_file_path(service.name, index)
        self.add(
            "no-effect", path, f"names a file with a variable name that Kubernetes does not accept: {quoted(name)}"
        )
        return False

    def _env_file(self, path: str, *, raw: bool) -> EnvLines | files.Unreadable | None:
        """Parse an env file once for all services; None if it is not text, which is reported."""
        key = (path, raw)
        if key not in self._env:
            try:
                content = files.read_bytes(Path(path), limit=MAX_ENV_FILE_BYTES, root=self.reading.root)
            except files.Unreadable as error:
                self._env[key] = error
            else:
                self._env[key] = self.reading.sources.env_lines(content, path, raw=raw)
        return self._env[key]

    def mounts(self, service: Service) -> tuple[Mount, ...]:
        """Read the content of host volumes, unless the service is built: these are not deployed."""
        return tuple(
            self._host_volume(service, mount, mount_path(service.name, index)) if mount.kind == HOST else mount
            for index, mount in enumerate(service.mounts)
        )

    def _host_volume(self, service: Service, mount: Mount, path: PathKey) -> Mount:
        found = mount if service.build is not None else self._with_content(service, mount, path)
        if self.reading.publishes and (service.build is not None or found.content is not None):
            holds_data = check_host_volume(self, service, found, path, self.reading.root, self._taken)
            if holds_data:
                self.data[path] = mount.source
        return found

    def _instead_of_system_path(self, service: Service, mount: Mount, path: PathKey) -> str:
        fix = instead_of_system_path(mount.source, mount.target)
        return self._keeping(service, mount, path, fix) if fix == NO_SYSTEM_PATH else fix

    def _with_content(self, service: Service, mount: Mount, path: PathKey) -> Mount:
        """Read a host volume; if nothing is published, unreadable content is no error, as a container may write it."""
        source = Path(mount.source)
        if files.is_system_path(source, (self.reading.root.path,)):
            message = f"mounts a system path of this machine: {self._shown(path)}"
            self.add("forbidden-path", path, message, self._instead_of_system_path(service, mount, path))
            return mount
        try:
            content = read_host_content(source, self.reading.root, _hidden_paths(service, mount))
        except files.Unreadable as error:
            if not self.reading.publishes:
                return mount
            code = error.code or ("missing-path" if error.missing else "forbidden-path")
            hint = self._keeping(service, mount, path, self._instead(mount, path, error))
            self.add(code, path, f"mounts a host path that {error.reason}: {self._shown(path)}", hint)
            return replace(mount, holds_refused=bool(error.within), is_refused_file=os.path.isfile(mount.source))
        return replace(mount, content=content)

    def _instead(self, mount: Mount, path: PathKey, error: files.Unreadable) -> str:
        if error.within == ITSELF:
            if mount.read_only or not os.path.isdir(mount.source):
                return "make it readable"
            example = volume_for(self, mount, path, self._taken)
            return f"to keep data: {example}; to ship files: make them readable, they are copied, read-only"
        if error.within:
            folder, is_below, _ = error.within.partition("/")
            hiding = f", or hide it with a volume at '{posixpath.join(mount.target, folder)}'" if is_below else ""
            return (error.hint or "take it out of the folder") + hiding
        if error.missing:
            return case_hint(Path(mount.source)) or self._alternatives(mount, path)
        return error.hint or "use a named volume, or files of the project"

    def _keeping(self, service: Service, mount: Mount, path: PathKey, fix: str) -> str:
        """Put the named volume first, if the path is one of a program's data."""
        is_folder = not mount.read_only and not os.path.isfile(mount.source)
        program = find_program(mount.target, service.image) if is_folder else ""
        if not program or fix.startswith("to keep data: "):
            return fix
        return f"to keep the data of {program}: {volume_for(self, mount, path, self._taken)}; otherwise {fix}"

    def _alternatives(self, mount: Mount, path: PathKey) -> str:
        """Return the fixes for a missing host path, which may be meant as data or as files."""
        hidden = self.origins.is_substituted(*path, "source")
        if looks_like_file(mount.target) and not hidden:
            return example_hint(mount.source) or "create the file: it is copied, read-only"
        if mount.read_only:
            return "create the folder: its files are copied, read-only"
        example = volume_for(self, mount, path, self._taken)
        return f"to keep data: {example}; to ship files: create the folder, they are copied, read-only"

    def _shown(self, path: PathKey) -> str:
        """Quote the path as in the file; in the long form it is a key of the entry."""
        return self.origins.shown(*path, "source")


def _hidden_paths(service: Service, folder: Mount) -> frozenset[str]:
    """Return the paths within a host folder that the container never shows, as something else is mounted there.

    Such as the dependencies of another system, which a volume is to keep out: `.:/app` with `/app/node_modules`.
    """
    within = f"{folder.target}/"
    targets = [mount.target for mount in service.mounts] + [mount.target for mount in service.file_mounts]
    return frozenset(target.removeprefix(within) for target in targets if target.startswith(within))
