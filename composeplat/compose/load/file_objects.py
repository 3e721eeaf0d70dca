"""Add the content of files to the configs and secrets of a project.

Owns reading these files, and their messages. Only those that a service has are read: others need not exist.
Must not know nodes: it reports at origins.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from composeplat.compose.file_model import MAX_FILE_BYTES, FileKind, FileMount, FileObject
from composeplat.compose.load.examples import example_hint
from composeplat.compose.load.letter_case import case_hint
from composeplat.compose.load.reading import Reading
from composeplat.compose.model import HOST, HostContent, Mount, Project, Service
from composeplat.compose.origins import Checker, Origins, file_mount_path, mount_path, mount_source_path
from composeplat.diagnostics import quoted
from composeplat.system import files

_MAX_READ_BYTES = 64 * 1024 * 1024


def with_file_contents(project: Project, origins: Origins, reading: Reading) -> Project:
    reader = _Reader(project, origins, reading)
    read = {(found.kind, found.name): reader.with_content(found) for found in project.mounted_files}
    if not read:
        return project
    configs, secrets = (
        {name: read.get((kind, name), found) for name, found in project.file_objects(kind).items()} for kind in FileKind
    )
    services = {name: reader.with_large_files(service) for name, service in project.services.items()}
    return replace(project, configs=configs, secrets=secrets, services=services)


class _Reader(Checker):
    def __init__(self, project: Project, origins: Origins, reading: Reading) -> None:
        super().__init__(project, origins, reading.report)
        self.reading = reading
        self._large: dict[str, int] = {}
        """The sizes of the config files that no object can hold, by name."""

    def with_content(self, found: FileObject) -> FileObject:
        path = (found.kind.section, found.name)
        if found.file:
            return replace(found, content=self._read(found))
        if found.variable and found.content is None and self.reading.publishes:
            place = (*path, "environment")
            is_hidden = self.origins.is_substituted(*place)
            name = self.origins.shown(*place) if is_hidden else found.variable
            hint = "write the name of a variable, and not its value" if is_hidden else f"set {name}"
            self.add("required-variable", place, f"reads a variable that is not set: {name}", hint)
        if found.content is not None and len(found.content) > MAX_FILE_BYTES:
            key = "environment" if found.variable else "content"
            self.add("invalid-value", (*path, key), *_too_large(found, len(found.content)))
        return found

    def _read(self, found: FileObject) -> bytes | None:
        """Read a file; None if it can't be read, which is no error if nothing is published, or is in an image."""
        path = (found.kind.section, found.name, "file")
        try:
            content = files.read_bytes(Path(found.file), limit=_MAX_READ_BYTES, root=self.reading.root)
        except files.Unreadable as error:
            if self.reading.publishes:
                message = f"names a file that {error.reason}: {self.origins.shown(*path)}"
                self.add(error.code or "unreadable-file", path, message, error.hint or _fix(found, error))
            return None
        if len(content) <= MAX_FILE_BYTES:
            return content
        if found.kind is FileKind.CONFIG and not self._built_users(found):
            self._large[found.name] = len(content)
        else:
            self.add("invalid-value", path, *_too_large(found, len(content)))
        return None

    def _built_users(self, found: FileObject) -> list[Service]:
        return [
            service
            for service in self.project.services.values()
            if service.build is not None and any(mount.source == found.name for mount in service.file_mounts)
        ]

    def with_large_files(self, service: Service) -> Service:
        """Turn the configs that are too large for an object into host volumes, which go into an image."""
        kept: list[FileMount] = []
        mounts = list(service.mounts)
        for index, mount in enumerate(service.file_mounts):
            if mount.kind is not FileKind.CONFIG or mount.source not in self._large:
                kept.append(mount)
                continue
            self._put_origins(service, index, len(mounts), mount.source)
            content = HostContent(is_folder=False, files=None, count=1, size=self._large[mount.source])
            source = self.project.configs[mount.source].file
            mounts.append(Mount(kind=HOST, target=mount.target, source=source, read_only=True, content=content))
        return replace(service, file_mounts=tuple(kept), mounts=tuple(mounts))

    def _put_origins(self, service: Service, index: int, mount: int, config: str) -> None:
        """Record the places of a host volume that a config becomes."""
        place, file = file_mount_path(service.name, index), ("configs", config, "file")
        self.origins.copy(mount_path(service.name, mount), place)
        self.origins.copy(mount_source_path(service.name, mount), file)


def _fix(found: FileObject, error: files.Unreadable) -> str:
    return case_hint(found.file) or example_hint(found.file) or "create the file" if error.missing else ""


def _too_large(found: FileObject, size: int) -> tuple[str, str]:
    kind = "ConfigMap" if found.kind is FileKind.CONFIG else "Secret"
    message = f"is {size // 1000} kB; a Kubernetes {kind} holds at most {MAX_FILE_BYTES // 1000} kB"
    return message, f"make it smaller, or put the file of {quoted(found.name)} into the image"
