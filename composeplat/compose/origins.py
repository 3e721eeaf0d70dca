"""Origins: the place in the files of each part of the model.

Owns the side table from paths of the model to places in the files.
Must not know YAML or the meaning of a key: it stores anything that has a place.
The model itself has no places, so that it can be compared and tested; stages after parsing get a :class:`Checker`, and
report at a line with it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from composeplat.diagnostics import PathKey, Report, Source, Span, dotted, quoted
from composeplat.system.records import mutable

if TYPE_CHECKING:  # shell completion imports this, and needs no model
    from composeplat.compose.model import Mount, Port, Project


class Placed(Protocol):
    """The part of a node that messages need."""

    span: Span
    written: str

    @property
    def shown(self) -> str: ...

    @property
    def is_substituted(self) -> bool: ...


#: The section whose entries are services of the model.
_JOBS = "jobs"


def _of_model(path: PathKey) -> PathKey:
    """Return the path of a part in the model, where a job is a service."""
    return ("services", *path[1:]) if len(path) > 1 and path[0] == _JOBS else path


@mutable
class Origins:
    """The node and the key of each part of the model, by path."""

    _values: dict[PathKey, Placed] = field(default_factory=dict)
    _keys: dict[PathKey, Placed] = field(default_factory=dict)
    _written_at: dict[PathKey, PathKey] = field(default_factory=dict)

    def put(self, path: PathKey, node: Placed, key: Placed | None = None) -> None:
        of_model = _of_model(path)
        if of_model != path:
            self._written_at[of_model] = path
        self._values[of_model] = node
        if key is not None:
            self._keys[of_model] = key

    def put_alias(self, path: PathKey, node: Placed, written_at: PathKey) -> None:
        """Record a path of the model for a part that the definition can write in several forms."""
        self._values[_of_model(path)] = node
        self._written_at[_of_model(path)] = written_at

    def copy(self, path: PathKey, source: PathKey) -> None:
        """Record a path of the model for the part that another path has."""
        self.put_alias(path, self._values[_of_model(source)], self.written_at(source))

    def sources(self) -> list[Source]:
        """The files that parts of the model come from, in their order."""
        found = {node.span.source.name: node.span.source for node in self._values.values()}
        return sorted(found.values(), key=lambda source: source.order)

    def written_at(self, path: PathKey) -> PathKey:
        """The path as the definition writes it."""
        return self._written_at.get(_of_model(path), path)

    def has(self, *path: str | int) -> bool:
        """Whether the definition writes a value at exactly this path."""
        return _of_model(path) in self._values

    def at(self, *path: str | int) -> Span:
        """The place of the value at a path, or of its nearest parent."""
        place = _of_model(path)
        for length in range(len(place), -1, -1):
            node = self._values.get(place[:length])
            if node is not None:
                return node.span
        raise LookupError(path)

    def key_at(self, *path: str | int) -> Span:
        """The place of the key at a path: what a message about the whole entry names."""
        key = self._keys.get(_of_model(path))
        return key.span if key is not None else self.at(*path)

    def shown(self, *path: str | int) -> str:
        """Quote the text of the file at a path, before substitution."""
        node = self._values.get(_of_model(path))
        return node.shown if node is not None else quoted(dotted(self.written_at(path)))

    def written(self, *path: str | int) -> str:
        """Return the text of the file at a path, before substitution; empty where the file has no text there."""
        node = self._values.get(_of_model(path))
        return node.written if node is not None else ""

    def is_substituted(self, *path: str | int) -> bool:
        node = self._values.get(_of_model(path))
        return node is not None and node.is_substituted


# paths of parts that the definition can write in several ways; parsing records them, later stages look them up


def port_path(service: str, port: Port) -> PathKey:
    return ("services", service, "port", port.published or 0, port.target, port.protocol)


def network_use_path(service: str, network: str) -> PathKey:
    """The path of a network that a service names."""
    return ("services", service, "network_uses", network)


def alias_path(service: str, alias: str) -> PathKey:
    """The path of a further name of a service, wherever it is written."""
    return ("services", service, "aliases", alias)


def mount_path(service: str, index: int) -> PathKey:
    return ("services", service, "mounts", index)


def mount_source_path(service: str, index: int) -> PathKey:
    return (*mount_path(service, index), "source")


def mount_target_path(service: str, index: int) -> PathKey:
    return (*mount_path(service, index), "target")


def literal_target(origins: Origins, mount: Mount, path: PathKey) -> str:
    """Return the target of the mount at a path; empty if it came from a variable, whose value no text may have."""
    place = (*path, "target")
    if not origins.is_substituted(*place):
        return mount.target
    # A volume in its short form is a single text, with options at its end.
    written = re.sub(r":[\w,]+\Z", "", origins.written(*place))
    return mount.target if written.rstrip("/").endswith(f":{mount.target}") else ""


def env_file_path(service: str, index: int) -> PathKey:
    return ("services", service, "env_files", index)


def label_file_path(service: str, index: int) -> PathKey:
    return ("services", service, "label_files", index)


def env_file_source_path(service: str, index: int) -> PathKey:
    return (*env_file_path(service, index), "source")


def file_mount_path(service: str, index: int) -> PathKey:
    """The path of a service's config or secret."""
    return ("services", service, "file_mounts", index)


def watch_rule_path(service: str, index: int) -> PathKey:
    """The path of a rule of ``develop.watch``."""
    return ("services", service, "watch_rules", index)


def annotation_path(owner: PathKey, key: str) -> PathKey:
    """The path of an annotation; ``owner`` is the path of a service or volume."""
    return (*owner, "annotation", key)


def request_path(service: str, resource: str) -> PathKey:
    """The path of a resource request; ``resource`` is ``cpu`` or ``memory``."""
    return ("services", service, f"request_{resource}")


def amount_path(service: str, resource: str) -> PathKey:
    """The path of the key that sets how much of a resource a service gets: a limit, or a request without a limit."""
    return ("services", service, "resources", resource)


def model_path(service: str, name: str) -> PathKey:
    """The path of a model that a service uses."""
    return ("services", service, "model_uses", name)


def route_path(endpoint: str, index: int) -> PathKey:
    return ("routes", endpoint, index)


class Checker:
    """A project with its origins and report: the argument of every rule."""

    def __init__(self, project: Project, origins: Origins, report: Report) -> None:
        self.project = project
        self.origins = origins
        self.report = report

    def is_unread(self, service: str, *keys: str) -> bool:
        """Whether one of a service's keys could not be read; errors that follow from it are then not reported."""
        return any(self.report.has_error(section, service, key) for key in keys for section in ("services", _JOBS))

    def is_undefined(self, section: str, name: str, declared: Container[str]) -> bool:
        """Whether the definition lacks an entry of a section that could be read."""
        return name not in declared and not self.report.has_error_at(section)

    def shown(self, text: str, *paths: PathKey) -> str:
        """Quote a text, as the file has it if it came from a variable at one of these paths."""
        written = (self.origins.shown(*path) for path in paths if self.origins.is_substituted(*path))
        return next(written, f"'{text}'")

    def plain(self, text: str, path: PathKey) -> str:
        """Return a text without quotes, as the file has it if it came from a variable at this path."""
        return self.origins.written(*path) if self.origins.is_substituted(*path) else text

    def is_hidden(self, *paths: PathKey) -> bool:
        """Whether the text at one of these paths came from a variable, so that no message has it."""
        return any(self.origins.is_substituted(*path) for path in paths)

    def add(self, code: str, path: PathKey, message: str, hint: str = "", *, at_key: bool = False) -> None:
        """Report at a part of the model, under the path the definition writes it at."""
        span = self.origins.key_at(*path) if at_key else self.origins.at(*path)
        written_at = self.origins.written_at(path)
        self.report.add(code, span, written_at, f"{dotted(written_at)} {message}", hint)
