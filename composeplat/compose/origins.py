"""Find a part of the model again in the definition, and say something of it.

Owns the side table from paths of the model to places in the files.
Must not know YAML or any key: it keeps whatever has a place.
The model itself stays free of places, so that it can be compared and tested plainly; stages after parsing are given a
:class:`Checker`, and can still name a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from composeplat.diagnostics import PathKey, Report, Span, dotted, quoted

if TYPE_CHECKING:  # who only reads, as a shell's completion does, needs no model
    from composeplat.compose.model import Port, Project


class Placed(Protocol):
    """A node, as far as messages need it."""

    span: Span

    @property
    def shown(self) -> str: ...

    @property
    def is_substituted(self) -> bool: ...


@dataclass(slots=True)
class Origins:
    """Where each part of the model stands: nodes and keys by path."""

    _values: dict[PathKey, Placed] = field(default_factory=dict)
    _keys: dict[PathKey, Placed] = field(default_factory=dict)
    _written_at: dict[PathKey, PathKey] = field(default_factory=dict)

    def put(self, path: PathKey, node: Placed, key: Placed | None = None) -> None:
        self._values[path] = node
        if key is not None:
            self._keys[path] = key

    def name(self, path: PathKey, node: Placed, written_at: PathKey) -> None:
        """Let a part of the model be found by a path of its own, where the definition has several forms for it."""
        self._values[path] = node
        self._written_at[path] = written_at

    def written_at(self, path: PathKey) -> PathKey:
        """The path as the definition writes it."""
        return self._written_at.get(path, path)

    def at(self, *path: str | int) -> Span:
        """The place of the value at a path, or of its nearest parent."""
        for length in range(len(path), -1, -1):
            node = self._values.get(path[:length])
            if node is not None:
                return node.span
        raise LookupError(path)

    def key_at(self, *path: str | int) -> Span:
        """The place of the key at a path: what a message about the whole entry names."""
        key = self._keys.get(path)
        return key.span if key is not None else self.at(*path)

    def shown(self, *path: str | int) -> str:
        """Quote what stands in the file at a path, not what variables made of it."""
        node = self._values.get(path)
        return node.shown if node is not None else quoted(dotted(self.written_at(path)))

    def is_substituted(self, *path: str | int) -> bool:
        node = self._values.get(path)
        return node is not None and node.is_substituted


# paths of parts that the definition can write in several ways; parsing records them, later stages look them up


def port_path(service: str, port: Port) -> PathKey:
    return ("services", service, "port", port.published or 0, port.target, port.protocol)


def mount_path(service: str, index: int) -> PathKey:
    return ("services", service, "mounts", index)


def mount_source_path(service: str, index: int) -> PathKey:
    return (*mount_path(service, index), "source")


def env_file_path(service: str, index: int) -> PathKey:
    return ("services", service, "env_files", index)


def env_file_source_path(service: str, index: int) -> PathKey:
    return (*env_file_path(service, index), "source")


def annotation_path(owner: PathKey, key: str) -> PathKey:
    """The path of an annotation; ``owner`` is the path of a service or volume."""
    return (*owner, "annotation", key)


def request_path(service: str, resource: str) -> PathKey:
    """The path of a resource request; ``resource`` is ``cpu`` or ``memory``."""
    return ("services", service, f"request_{resource}")


def route_path(endpoint: str, index: int) -> PathKey:
    return ("routes", endpoint, index)


class Checker:
    """A project with its origins and report: what every rule is given."""

    def __init__(self, project: Project, origins: Origins, report: Report) -> None:
        self.project = project
        self.origins = origins
        self.report = report

    def is_unread(self, service: str, *keys: str) -> bool:
        """Say whether one of a service's keys could not be read: then what follows from it is not to be told too."""
        return any(self.report.has_error("services", service, key) for key in keys)

    def say(self, code: str, path: PathKey, message: str, hint: str = "", *, at_key: bool = False) -> None:
        """Report at a part of the model, under the path the definition writes it at."""
        span = self.origins.key_at(*path) if at_key else self.origins.at(*path)
        written_at = self.origins.written_at(path)
        self.report.add(code, span, written_at, f"{dotted(written_at)} {message}", hint)
