"""The volumes that take the places of host folders, and of volumes that only images declare.

Owns which folders become volumes, their names and sizes, and the entries.
Must not know how they are written: :mod:`composeplat.compatibility.platform_file` does. It is apart because a host
folder has one volume, whichever services mount it, or a folder in it.

A mount at the same path takes the place of the Compose file's, by Compose's rules of merging; `!reset` removes one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, count

from composeplat.compatibility.entries import Entry, mount_item, yaml_text
from composeplat.compatibility.image_rules import ImageAnswers, unmounted_volumes
from composeplat.compatibility.key_fixes import memory_folders, mount_shared_memory, replacement
from composeplat.compatibility.nested_folders import HostMount, NestedFolders
from composeplat.compose.data_paths import find_program, is_database_file, looks_like_file
from composeplat.compose.load import Loaded
from composeplat.compose.model import HOST, NAMED, Mount, Service
from composeplat.compose.nodes import Scalar, Sequence, find_node
from composeplat.compose.origins import literal_target, mount_path
from composeplat.compose.system_paths import CLOCK_FILES, SHARED_MEMORY
from composeplat.compose.values import show_size
from composeplat.diagnostics import Diagnostic, PathKey
from composeplat.names import clean, is_dns_label
from composeplat.registry.image_config import ImageFacts

_GIB = 1024**3
#: Findings about paths that are not opened.
_UNOPENED = ("forbidden-path", "outside-project")
#: Findings about folders that become volumes.
_KEPT = ("host-data", "missing-path", "outside-project")
#: Names of folders that say nothing about the service.
_VAGUE = "app config content data database db files home html lib log logs storage uploads var volume volumes www"


def _is_program_data(found: HostMount) -> bool:
    return not found.mount.read_only and bool(find_program(found.mount.target, found.service.image))


class VolumeFixes:
    """The entries of one definition."""

    def __init__(self, loaded: Loaded, images: ImageAnswers, not_started: Container[str]) -> None:
        self._loaded = loaded
        self._images = images
        self._not_started = not_started
        self._names: dict[str, str] = {}
        self._taken = set(map(clean, loaded.project.volumes))
        self.mounts: dict[PathKey, HostMount] = {}
        """The host volumes, by their paths in the definition."""
        self._writers: dict[str, Service] = {}
        for service in loaded.project.services.values():
            for index, mount in enumerate(service.mounts):
                path = mount_path(service.name, index)
                if mount.kind == HOST:
                    self.mounts[loaded.origins.written_at(path)] = HostMount(service, mount, path)
                    if not mount.read_only:
                        self._writers.setdefault(mount.source, service)

    def keep_or_drop(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Keep the data of a program, also for others; drop every other system path, which no cluster has."""
        found = self.mounts.get(diagnostic.path)
        if found is None:
            return ()
        service, mount = found.service, found.mount
        if mount.source in self._program_folders or self.nested.find_outer(found):
            return self.keep_data(diagnostic)
        if mount.holds_refused:
            return ()
        target = literal_target(self._loaded.origins, mount, found.path)
        if mount.source == target == SHARED_MEMORY and (memory := mount_shared_memory(self._loaded, service.name)):
            return memory
        lacks = "Docker socket" if mount.source.endswith(".sock") else "path of this machine"
        instead = "the variable TZ sets the time zone" if mount.source in CLOCK_FILES else "this mount is left out"
        reason = f"A cluster has no {lacks}: {instead}."
        line = f"- !reset {yaml_text(target)}"
        return (Entry(("services", service.name, "volumes"), line, reason),) if target else ()

    def keep_data(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Put a named volume in the place of a host folder."""
        found = self.mounts.get(diagnostic.path)
        if found is not None and diagnostic.code == "host-data" and diagnostic.path in self.nested.copied:
            return self._mount_nested(diagnostic.path)
        if found is None or not self._may_be_volume(found, diagnostic.code):
            return ()
        service, mount, target = found.service, found.mount, found.mount.target
        outer = self.nested.find_outer(found)
        if outer is None and not self._is_data(mount):
            return ()
        whole, sub_path = outer or (found, "")
        name = self._name_of(whole)
        item = mount_item(name, target, sub_path, read_only=mount.read_only)
        if mount.read_only:
            return self._volume(service, name, item, f"It has what {self._owner(whole)} writes.", whole)
        program = find_program(target, service.image)
        keeps = f"{program[0].upper()}{program[1:]} keeps its data here" if program else "What is written here is kept"
        # A path that may not be opened can have files too.
        has_files = mount.content.count if mount.content is not None else diagnostic.code in _UNOPENED
        copied = "; the present files are not copied" if has_files else ""
        return self._volume(service, name, item, f"{keeps}{copied}.", whole)

    def mount_volumes_of_others(self, path: PathKey) -> tuple[Entry, ...]:
        """Mount the volumes of the services that ``volumes_from`` names; nothing if these have data elsewhere."""
        if path[2:] != ("volumes_from",):
            return ()
        service = self._loaded.project.services[str(path[1])]
        if service.is_global:
            return ()
        items = [
            mount_item(mount.source, mount.target, mount.sub_path, read_only=mount.read_only)
            for mount in self._mounts_of_others(service)
        ]
        return replacement(service.name, "volumes_from", items, "A volume of the other service.")

    def _mounts_of_others(self, service: Service) -> list[Mount]:
        """Return the mounts in the place of ``volumes_from``; empty if one of the other services has data elsewhere."""
        written = find_node(self._loaded.document, "services", service.name, "volumes_from")
        items = written.items if isinstance(written, Sequence) else []
        taken = {mount.target for mount in service.mounts}
        found: list[Mount] = []
        for name, _, mode in (item.text.partition(":") for item in items if isinstance(item, Scalar)):
            mounts = self._volumes_of(name)
            if not mounts:
                return []
            for mount in mounts:
                found += [replace(mount, read_only=mode == "ro" or mount.read_only)] * (mount.target not in taken)
                taken.add(mount.target)
        return found

    def _volumes_of(self, name: str) -> list[Mount]:
        """Return the mounts of a service with the entries; empty if not all are of named volumes."""
        other = self._loaded.project.services.get(name)
        if other is None or find_node(self._loaded.document, "services", name, "volumes_from") is not None:
            return []
        mounts: list[Mount] = []
        for index, mount in enumerate(other.mounts):
            path = mount_path(name, index)
            host = self._kept.get(path)
            if host is not None:
                whole, sub_path = self.nested.find_outer(host) or (host, "")
                mounts.append(replace(mount, source=self._name_of(whole), sub_path=sub_path))
            elif mount.kind == NAMED and not self._loaded.origins.is_substituted(*path):
                mounts.append(mount)
            elif not mount.source.endswith(".sock"):
                return []
        own = self._image_volumes(other) if not other.is_job else []
        if own and other.replicas > 1:
            return []
        names = ((self._image_volume_name(other, target), target) for target in own)
        return mounts + [Mount(kind=NAMED, source=source, target=target) for source, target in names]

    def _mount_nested(self, path: PathKey) -> tuple[Entry, ...]:
        """Mount the volumes of others in a copied folder, at the places of their host folders."""
        entries: list[Entry] = []
        for nested in self.nested.copied.get(path, ()):
            name, outer = self._name_of(nested.folder), self.mounts[path]
            item = mount_item(name, nested.target, read_only=outer.mount.read_only)
            reason = f"It has what {self._owner(nested.folder)} writes."
            entries += self._volume(outer.service, name, item, reason, nested.folder)
        return tuple(entries)

    @cached_property
    def _program_folders(self) -> frozenset[str]:
        """The host folders that are the data of a program which is started."""
        found = (found for found in self.mounts.values() if found.service.name not in self._not_started)
        return frozenset(mount.mount.source for mount in found if _is_program_data(mount))

    @cached_property
    def nested(self) -> NestedFolders:
        """The host folders within each other."""
        return NestedFolders(self._loaded.origins, self._kept.values(), self.mounts.values(), self._loaded.folder)

    @cached_property
    def _kept(self) -> Mapping[PathKey, HostMount]:
        """The host folders with data, which become volumes, by their paths in the model."""
        return {
            found.path: found
            for diagnostic in self._loaded.report.by_path()
            if (found := self.mounts.get(diagnostic.path)) and found.service.name not in self._not_started
            if diagnostic.code in _KEPT or (diagnostic.code == "forbidden-path" and _is_program_data(found))
            if self._may_be_volume(found, diagnostic.code) and self._is_data(found.mount)
        }

    def _may_be_volume(self, found: HostMount, code: str) -> bool:
        """Whether a volume, which is a folder, can take the place of a host path; pods on each node have none."""
        service, mount = found.service, found.mount
        if service.is_global or (mount.holds_refused and not find_program(mount.target, service.image)):
            return False
        target = literal_target(self._loaded.origins, mount, found.path)
        is_file = mount.is_refused_file or (mount.content is not None and not mount.content.is_folder)
        is_named_as_file = looks_like_file(target) and code != "host-data"
        return bool(target) and not (is_file or is_database_file(mount.source) or is_named_as_file)

    def _owner(self, found: HostMount) -> str:
        """Return the service that writes to a host folder."""
        return self._writers.get(found.mount.source, found.service).name

    def _name_of(self, found: HostMount) -> str:
        """Name the volume that takes the place of a host folder."""
        source = found.mount.source
        folder = found.mount.target if self._is_hidden(found.path) else source
        return self._name_for(
            self._writers.get(source, found.service), source, folder, named_by_folder=folder is source
        )

    def keep_image_volumes(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        service = self._loaded.project.services[str(diagnostic.path[1])]
        entries: list[Entry] = []
        for target in self._image_volumes(service):
            if service.replicas > 1:
                reason = "The image keeps data here; each pod has a volume of its own."
                entries.append(Entry(("services", service.name, "volumes"), f"- {yaml_text(target)}", reason))
                continue
            name = self._image_volume_name(service, target)
            entries += self._volume(service, name, mount_item(name, target), "The image keeps data here.")
        return tuple(entries)

    def _image_volumes(self, service: Service) -> list[str]:
        """Return the volumes that only the image declares, and that no other entry mounts."""
        image = self._images.get(service.image) if service.is_pulled else None
        if not isinstance(image, ImageFacts) or service.is_global:
            return []
        memory = memory_folders(find_node(self._loaded.document, "services", service.name, "tmpfs"))
        return unmounted_volumes(service, image, (*memory, *(m.target for m in self._mounts_of_others(service))))

    def _image_volume_name(self, service: Service, target: str) -> str:
        return self._name_for(service, f"{service.name}:{target}", target)

    def _volume(
        self, service: Service, name: str, item: str, reason: str, folder: HostMount | None = None
    ) -> tuple[Entry, ...]:
        content = folder.mount.content if folder else None
        size = content.size if content else 0
        mount = Entry(("services", service.name, "volumes"), f"- {item}", reason)
        if name in self._loaded.project.volumes:
            return (mount,)
        if size <= _GIB // 2:
            return mount, Entry(("volumes",), f"{yaml_text(name)}:", "Of 1Gi, unless you set 'size'.")
        wanted = show_size(_GIB * -(-2 * size // _GIB))
        return mount, Entry(("volumes",), f"{yaml_text(name)}: {{size: {wanted}}}", "Twice the size of the folder.")

    def _is_data(self, mount: Mount) -> bool:
        """Whether a host volume is written, by its own service or by another one."""
        return not mount.read_only or mount.source in self._writers

    def _is_hidden(self, path: PathKey) -> bool:
        return self._loaded.origins.is_substituted(*path, "source")

    def _name_for(self, service: Service, source: str, folder: str, *, named_by_folder: bool = True) -> str:
        """Name the volume of a source after a folder, and after the service if that is vague, hidden or taken."""
        if source not in self._names:
            owner = clean(service.name)
            last = clean(folder.rstrip("/").rpartition("/")[2])
            last = last if is_dns_label(last) and last != owner else "data"
            is_telling = named_by_folder and last not in _VAGUE.split()
            first = [last, f"{owner}-{last}"] if is_telling else [f"{owner}-{last}"]
            names = chain(first, (f"{owner}-{last}-{number}" for number in count(2)))
            self._names[source] = next(name for name in names if name not in self._taken)
            self._taken.add(self._names[source])
        return self._names[source]
