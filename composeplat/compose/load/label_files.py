"""Add the labels of ``label_file`` to the model, in full mode.

Owns reading these files, which have the format of env files, and which labels win: those of ``labels`` over those of
the files, and these over ``deploy.labels``.
Must not know nodes: it reports at origins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from composeplat.compose.discovery import MAX_ENV_FILE_BYTES
from composeplat.compose.dotenv import EnvLines, evaluate_lines
from composeplat.compose.load.reading import Reading
from composeplat.compose.model import Project, Service
from composeplat.compose.origins import Checker, Origins, label_file_path
from composeplat.diagnostics import quoted
from composeplat.names import is_key
from composeplat.system import files


def with_label_files(project: Project, origins: Origins, reading: Reading) -> Project:
    if not any(service.label_files.paths for service in project.services.values()):
        return project
    reader = _LabelFiles(project, origins, reading)
    services = {name: reader.with_labels(service) for name, service in project.services.items()}
    return replace(project, services=services)


class _LabelFiles(Checker):
    def __init__(self, project: Project, origins: Origins, reading: Reading) -> None:
        super().__init__(project, origins, reading.report)
        self._reading = reading
        self._read: dict[str, EnvLines | files.Unreadable | None] = {}

    def with_labels(self, service: Service) -> Service:
        found: dict[str, str] = {}
        for index, path in enumerate(service.label_files.paths):
            found.update(self._valid(service, index, self._labels(service, index, path, found)))
        if not found:
            return service
        own = {name: value for name, value in service.labels.items() if name in service.label_files.names}
        labels = {**service.labels, **found, **own}
        names = service.label_files.names | frozenset(found)
        return replace(service, labels=labels, label_files=replace(service.label_files, names=names))

    def _labels(self, service: Service, index: int, path: str, earlier: dict[str, str]) -> dict[str, str]:
        """Read a file once for all services; ``${NAME}`` in it is a label before it, as in Compose."""
        if path not in self._read:
            self._read[path] = self._lines(path)
        lines = self._read[path]
        if isinstance(lines, files.Unreadable):
            if self._reading.publishes:
                place = label_file_path(service.name, index)
                message = f"names a file that {lines.reason}: {self.origins.shown(*place)}"
                hint = "create it, or correct the path" if lines.missing else lines.hint
                self.add(lines.code or "unreadable-file", place, message, hint)
            return {}
        return evaluate_lines(lines, lambda _: None, self.report, earlier=earlier.get) if lines else {}

    def _lines(self, path: str) -> EnvLines | files.Unreadable | None:
        try:
            content = files.read_bytes(Path(path), limit=MAX_ENV_FILE_BYTES, root=self._reading.root)
        except files.Unreadable as error:
            return error
        return self._reading.sources.env_lines(content, path)

    def _valid(self, service: Service, index: int, labels: dict[str, str]) -> Iterator[tuple[str, str]]:
        place = label_file_path(service.name, index)
        for name, value in labels.items():
            if not is_key(name):
                message = f"names a file with a label whose name Kubernetes does not accept: {quoted(name)}"
                self.add("no-effect", place, message)
            else:
                yield name, value
