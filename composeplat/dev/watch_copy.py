"""One copy of a watch: changes go into containers of a service, and the commands of ``sync+exec`` follow.

Owns which files of a copy failed, in which container, and the messages about that. The others stay written.
Must not know when a copy is due or tried again: :mod:`composeplat.dev.watch_session` does.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.dev.container_commands import LINK_ERROR, Command
from composeplat.dev.container_sync import (
    Container,
    ContainerFiles,
    Processes,
    Unreached,
    emptied_folders,
    find_folders,
    give_modes,
    is_folder,
    write_archive,
)
from composeplat.dev.refused_files import Refused, describe_refusals
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_state import Changes, FailedCopies, FilePath, WatchState
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.target import Target
from composeplat.system.deadline import Deadline, poll
from composeplat.system.records import record

Event = dict[str, Any]
#: The watch of pods may report the end of a container a moment after a copy into it has failed.
_END_TIMEOUT_S = 1.0
_POLL_INTERVAL_S = 0.05
#: The status of a program whose container is ended.
_KILLED = 137
_MAX_PODS_AT_ONCE = 8
#: Of a new file from a file system without permissions: a script must run, as with Docker on Windows.
_MODE_WITHOUT_MODES = 0o755
#: Of a folder that ``tar`` makes.
_MODE_OF_TAR = 0o755


@dataclass(slots=True, kw_only=True)
class WatchedContainers:
    """The containers of all services of a watch: how they are reached, the files that they lack, and the reports."""

    cluster_names: Mapping[str, str]
    """The names in the cluster, by service."""
    namespace: str
    target: Target
    environment: Mapping[str, str]
    state: WatchState
    on_event: Callable[[Event], None]
    is_running: Callable[[str, Container], bool] = lambda _, __: True
    """Whether a container of a service is still running, as far as is known."""
    failed: dict[str, FailedCopies] = field(default_factory=lambda: defaultdict(FailedCopies))
    folders: dict[Container, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The folders that each container is known to have."""
    processes: Processes = field(default_factory=Processes)

    def files_of(self, service: str, container: Container) -> ContainerFiles:
        name = self.cluster_names[service]
        command = Command(namespace=self.namespace, pod=container.pod, container=name, args=(), terminal=False)
        return ContainerFiles(command, self.target, self.environment, self.processes)

    def report(self, kind: str, service: str, **fields: object) -> None:
        # The end of a watch interrupts copies: that is no failure.
        if not self.processes.has_ended:
            self.on_event({"event": kind, "service": service, **fields})

    def report_problem(self, service: str, error: Exception) -> None:
        self.report("watch-problem", service, path="", reason=message_of(error))


def message_of(error: Exception) -> str:
    hint = error.hint if isinstance(error, ComposeplatError) else ""
    return f"{error}; {hint}" if hint else str(error)


@record
class _Packed:
    """The files of a copy, and its folders with their modes, by path in the container."""

    archive: Path
    count: int
    folders: Mapping[str, int]
    """Empty ones."""
    above: Mapping[str, int]
    """Those above files whose mode is not that of ``tar``."""


@dataclass(slots=True)
class Copy:
    """One copy of changes into containers of a service, and the commands that follow it."""

    reach: WatchedContainers
    service: str
    changes: Changes
    is_new: bool = field(kw_only=True)
    """The containers began with the image, and get everything that changed since."""
    is_retry: bool = field(default=False, kw_only=True)
    """Nothing has been saved: a message is not repeated."""
    _unreached: set[Container] = field(default_factory=set)

    def into(self, containers: Sequence[Container]) -> set[Container]:
        """Copy the changes; return the containers that could not be reached."""
        began = time.monotonic()
        folders = self.reach.state.folders
        with tempfile.TemporaryDirectory(prefix="composeplat-") as made:
            archive = Path(made) / "changes.tar"
            try:
                with archive.open("wb") as content:
                    count = write_archive(((folders[number], path) for number, path in self.changes.present), content)
                packed = _Packed(archive, count, *self._find_folders())
            except OSError as error:
                # A file that can't be read, or that is written meanwhile.
                reason = f"can't read the files: {error}"
                for container in containers:
                    self._note_failed(container, self.changes, [reason])
                return set()
            with ThreadPoolExecutor(min(len(containers), _MAX_PODS_AT_ONCE)) as pool:
                copied = list(pool.map(lambda found: self._into(found, packed), containers))
        self._report(dict(zip(containers, copied, strict=True)), round(time.monotonic() - began, 3))
        return self._unreached

    def _report(self, copied: Mapping[Container, tuple[int, int]], seconds: float) -> None:
        """Report the copy, unless nothing of it has arrived, or all that changed was gone before it was read."""
        for files, deleted in dict.fromkeys(copied.values()):
            pods = [container.pod for container, numbers in copied.items() if numbers == (files, deleted)]
            if files or deleted:
                numbers = {"files": files, "deleted": deleted, "new_pods": self.is_new, "seconds": seconds}
                self.reach.report("copied", self.service, pods=pods, **numbers)

    def _find_folders(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the modes of folders for :class:`_Packed`."""
        folders, without = self.reach.state.folders, self.reach.state.without_modes
        has_modes = [(folders[number], path) for number, path in self.changes.present if number not in without]
        own, above = find_folders(has_modes)
        others, _ = find_folders((folders[number], path) for number, path in self.changes.present if number in without)
        own |= dict.fromkeys(others, _MODE_WITHOUT_MODES)
        return own, {path: mode for path, mode in above.items() if mode != _MODE_OF_TAR and path not in own}

    def _into(self, container: Container, packed: _Packed) -> tuple[int, int]:
        """Copy into one container; return the numbers of files that were written and deleted there."""
        files = self.reach.files_of(self.service, container)
        try:
            kept = self._delete(files, container)
            unwritten = self._make_folders(files, container, packed)
            unwritten |= self._unpack(files, container, packed.archive) if packed.count else {}
            failed = self._changes_at({**kept, **unwritten})
            self._note_failed(container, failed, self._messages(container, kept, unwritten))
            for folder in self.reach.state.commands_for(self.changes, failed):
                self._run(files, container, folder)
        except (ComposeplatError, OSError) as error:
            if self._has_ended(container):
                return 0, 0
            if isinstance(error, Unreached):
                self._unreached.add(container)
            self._note_failed(container, self.changes, [f"{container.pod}: {message_of(error)}"])
            return 0, 0
        deleted = sum(not path.endswith("/") for _, path in self.changes.deleted)
        return packed.count + len(packed.folders) - len(unwritten), deleted - len(kept)

    def _has_ended(self, container: Container) -> bool:
        """Return whether a copy failed because its container has ended, or the watch: a new one gets all changes."""

        def has_ended() -> bool:
            return self.reach.processes.has_ended or not self.reach.is_running(self.service, container)

        return poll(has_ended, Deadline(_END_TIMEOUT_S), interval_s=_POLL_INTERVAL_S)

    def _make_folders(self, files: ContainerFiles, container: Container, packed: _Packed) -> Refused:
        known = self.reach.folders[container]
        above = {path: mode for path, mode in packed.above.items() if path not in known}
        missing = {**above, **packed.folders}
        refused = files.make_folders(missing, packed.folders.keys()) if missing else {}
        known |= missing.keys() - refused.keys()
        return refused

    def _messages(self, container: Container, kept: Refused, unwritten: Refused) -> list[str]:
        messages = [*describe_refusals(unwritten, "write"), *describe_refusals(kept, "delete")]
        return [f"{container.pod}: {message}" for message in messages]

    def _changes_at(self, paths: Collection[str]) -> Changes:
        """Return the changes that have one of these paths in the container, in the order of these."""
        places: dict[str, list[FilePath]] = {}
        for number, path in self.changes.paths:
            place = self.reach.state.folders[number].in_container(path)
            places.setdefault(place.lstrip("/"), []).append((number, path))
        return Changes({each: self.changes.paths[each] for path in paths for each in places[path.lstrip("/")]})

    def _note_failed(self, container: Container, failed: Changes, messages: Sequence[str]) -> None:
        copies = self.reach.failed[self.service]
        copies.note(container, self.changes, failed)
        if messages and (copies.is_news(container, messages) or not self.is_retry):
            for message in messages:
                self.reach.report("watch-problem", self.service, path="", reason=message)

    def _unpack(self, files: ContainerFiles, container: Container, archive: Path) -> Refused:
        """Unpack an archive; files from file systems without permissions keep those that the container has."""
        own = archive.with_name(f"{container.pod}.tar")
        without = self.reach.state.without_modes
        folders = self.reach.state.folders
        paths = [folders[number].in_container(path) for number, path in self.changes.present if number in without]
        if paths:
            modes = {**dict.fromkeys(paths, _MODE_WITHOUT_MODES), **files.modes(paths)}
            with own.open("wb") as content:
                give_modes(archive, modes, content)
            archive = own
        return files.unpack(archive, own.with_suffix(".part"))

    def _delete(self, files: ContainerFiles, container: Container) -> Refused:
        gone: dict[int, list[str]] = {}
        for number, path in self.changes.deleted:
            gone.setdefault(number, []).append(path)
        kept = Refused()
        for number, paths in gone.items():
            folder = self.reach.state.folders[number]
            removed = [folder.in_container(path) for path in paths if not path.endswith("/")]
            emptied = emptied_folders(folder, paths)
            # A new container may have a folder there, as there is one here again.
            again = {folder.in_container(path) for path in paths if is_folder(f"{folder.local}/{path}")}
            refused = files.delete(removed, emptied)
            kept |= {path: reason for path, reason in refused.items() if path not in again}
            self.reach.folders[container].difference_update(emptied)
        return kept

    def _run(self, files: ContainerFiles, container: Container, folder: WatchedFolder) -> None:
        if folder.rule.command is None:
            return
        status, output = files.run(folder.rule.command)
        if (status == _KILLED or output.startswith(LINK_ERROR)) and self._has_ended(container):
            return
        last = output.splitlines()[-1] if output else ""
        self.reach.report("executed", self.service, pod=container.pod, status=status, output=last)
