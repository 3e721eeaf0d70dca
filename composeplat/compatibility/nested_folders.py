"""Host folders within each other, such as ``/data`` and ``/data/films``: in Docker both show the same files.

Owns which mounts these are, and the path of the one folder in the other.
Must not know the volumes that take their places: :mod:`composeplat.compatibility.volume_fixes` names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from composeplat.compose.model import Mount, Service
from composeplat.compose.origins import Checker, Origins, literal_target
from composeplat.diagnostics import PathKey, join_some

_MAX_LISTED = 4


@dataclass(frozen=True, slots=True)
class HostMount:
    service: Service
    mount: Mount
    path: PathKey
    """The path of the mount in the model."""


@dataclass(frozen=True, slots=True)
class NestedMount:
    """A folder that becomes a volume, and its path in the container of a service that mounts a folder around it."""

    folder: HostMount
    target: str


class NestedFolders:
    """The host folders of a definition that become volumes, ``kept``, and the folders around them."""

    def __init__(self, origins: Origins, kept: Iterable[HostMount], mounts: Iterable[HostMount], project: Path) -> None:
        self._origins = origins
        self._project = project
        self._kept: dict[str, HostMount] = {}
        for folder in kept:
            if not self._has_project(folder.mount.source):
                self._kept.setdefault(folder.mount.source, folder)
        self.copied = dict(self._find_copied(mounts))
        """The volumes within folders that are copied, by the paths of these mounts in the definition."""

    def _has_project(self, source: str) -> bool:
        """Whether a folder has the whole project in it: it is mounted for the sake of something else."""
        return self._project.is_relative_to(source)

    def find_outer(self, inner: HostMount) -> tuple[HostMount, str] | None:
        """Return the outermost volume that has a folder in it, and the path there."""
        for parent in reversed(PurePath(inner.mount.source).parents):
            outer = self._kept.get(str(parent))
            sub_path = self._path_in(str(parent), inner) if outer else ""
            if outer and sub_path:
                return outer, sub_path
        return None

    def _path_in(self, outer: str, inner: HostMount) -> str:
        """Return the path of a folder in another one; empty if it is from a variable, whose value no text has."""
        sub_path = PurePath(inner.mount.source).relative_to(outer).as_posix()
        place = (*inner.path, "source")
        is_literal = not self._origins.is_substituted(*place) or re.search(
            rf"/{re.escape(sub_path)}/?(?::|\Z)", self._origins.written(*place)
        )
        return sub_path if is_literal else ""

    def _find_copied(self, mounts: Iterable[HostMount]) -> Iterator[tuple[PathKey, list[NestedMount]]]:
        within: dict[str, list[HostMount]] = {}
        for folder in self._kept.values():
            for parent in PurePath(folder.mount.source).parents if self.find_outer(folder) is None else ():
                within.setdefault(str(parent), []).append(folder)
        for outer in mounts:
            source = outer.mount.source
            found = within.get(source, ()) if source not in self._kept and not self._has_project(source) else ()
            nested = [nested for folder in found for nested in self._nest(folder, outer)]
            if nested and outer.service.build is None:
                yield self._origins.written_at(outer.path), nested

    def _nest(self, folder: HostMount, outer: HostMount) -> Iterator[NestedMount]:
        base = literal_target(self._origins, outer.mount, outer.path)
        sub_path = self._path_in(outer.mount.source, folder)
        target = f"{base.rstrip('/')}/{sub_path}"
        if base and sub_path and all(mount.target != target for mount in outer.service.mounts):
            yield NestedMount(folder, target)


def check_nested_folders(
    checker: Checker, copied: Mapping[PathKey, list[NestedMount]], mounts: Iterable[HostMount]
) -> None:
    """Warn of a copied folder in which another service keeps its data."""
    for outer in mounts:
        nested = copied.get(checker.origins.written_at(outer.path), ())
        names = join_some(dict.fromkeys(f"'{found.folder.service.name}'" for found in nested), _MAX_LISTED)
        if names:
            message = f"mounts a folder with the data of {names} in it: what is written there is not seen here"
            checker.add("host-data", outer.path, message, f"mount the named volume of {names} here too")
