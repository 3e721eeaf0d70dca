"""A watch: what changes here is copied into the running containers, and builds, restarts and commands follow.

Owns the order. One thread copies, so that a save is in the containers at once also while an image is built; the thread
that runs the session builds and restarts, as only that one gets a Ctrl-C. After a failure watching continues.
Must not know a terminal, nor how a service is built or restarted: the command line gives it :class:`PodWork`.
"""

from __future__ import annotations

import contextlib
import posixpath
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watching import pods_path
from composeplat.compose.model import HostFile
from composeplat.compose.watch_model import WatchAction
from composeplat.dev.container_commands import Command
from composeplat.dev.container_sync import (
    Container,
    ContainerFiles,
    Unreached,
    emptied_folders,
    give_modes,
    running_containers,
    write_archive,
)
from composeplat.dev.folder_watch import FolderChange, FolderProblem, Found, watching_folders
from composeplat.dev.mounted_files import read_mounted_files
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_state import Changes, FailedCopies, FilePath, WatchState, Work
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.pulumi_process import Interrupted
from composeplat.engine.target import Target
from composeplat.system.threads import start_thread
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import LINK

Event = dict[str, Any]
#: A build begins after a moment without changes: an editor saves several files, and git checks many out.
_QUIET_PERIOD_S = 0.5
_MAX_QUIET_WAIT_S = 5.0
_END_TIMEOUT_S = 5.0
_MAX_PODS_AT_ONCE = 8
#: Of a new file from a file system without permissions: a script must run, as with Docker on Windows.
_MODE_WITHOUT_MODES = 0o755


class PodsChanged:
    """Pods may have changed."""


class PodWork:
    """The work on pods that a session asks for; each raises, or returns false, if it failed."""

    def rebuild(self, services: Sequence[str], files: Mapping[str, tuple[HostFile, ...]]) -> bool:
        """Build the images of services and deploy them; ``files`` are those that pods get besides, by service."""
        raise NotImplementedError

    def replace_pods(self, services: Sequence[str], files: Mapping[str, tuple[HostFile, ...]]) -> bool:
        """Deploy services with files, so that new pods have them."""
        raise NotImplementedError

    def restart(self, services: Sequence[str]) -> bool:
        """Replace the pods of services."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class WatchSession:
    folders: Sequence[WatchedFolder]
    cluster_names: Mapping[str, str]
    """The names in the cluster, by service."""
    namespace: str
    environment_name: str
    target: Target
    environment: Mapping[str, str]
    work: PodWork
    on_event: Callable[[Event], None]
    state: WatchState = field(init=False)
    _found: queue.Queue[Found | PodsChanged | None] = field(default_factory=queue.Queue)
    _known: dict[str, set[Container]] = field(default_factory=dict)
    _missed: dict[str, Changes] = field(default_factory=dict)
    """What the known containers lack, by service: the cluster did not answer."""
    _behind: set[Container] = field(default_factory=set)
    """Those that could not be reached once."""
    _failed: FailedCopies = field(default_factory=FailedCopies)
    _is_due: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _failure: Exception | None = None
    _ended: bool = False
    _pods: LiveList = field(init=False)

    def __post_init__(self) -> None:
        self.state = WatchState(self.folders)
        path = pods_path(self.namespace, self.environment_name)
        self._pods = LiveList(self.target.access, path)

    def run(self) -> None:
        """Watch until a Ctrl-C, which is raised."""
        program = Toolchain(self.environment).need(LINK)
        with Api(self.target.access) as api:
            pods = self._pods.read(api)
        self._known = {service: set(self._containers(pods, service)) for service in self.state.services}
        copier = start_thread("copier", self._copy, self._fail)
        follower = start_thread("pods", self._follow_pods, self._fail)
        try:
            with watching_folders(program.path, self.folders, self.environment, self._found.put):
                while True:
                    self._is_due.wait()
                    self._wait_until_quiet()
                    self._do_work()
        finally:
            self._ended = True
            self._pods.stop()
            self._found.put(None)
            copier.join(_END_TIMEOUT_S)
            follower.join(_END_TIMEOUT_S)

    # pods

    def _wait_until_quiet(self) -> None:
        began = time.monotonic()
        while time.monotonic() - began < _MAX_QUIET_WAIT_S:
            self._is_due.clear()
            if not self._is_due.wait(_QUIET_PERIOD_S):
                return

    def _do_work(self) -> None:
        while True:
            self._is_due.clear()
            self._raise_failure()
            with self._lock:
                work = self.state.take_work()
                paths = {name: state.mounted.present for name, state in self.state.services.items()}
            if work is None:
                return
            began = time.monotonic()
            done = self._try(work, paths)
            if not done:
                with self._lock:
                    self.state.give_back(work)
            seconds = round(time.monotonic() - began, 1)
            fields = {"services": list(work.services), "action": work.action.value, "done": done, "seconds": seconds}
            self.on_event({"event": "replaced-pods", **fields})

    def _try(self, work: Work, paths: Mapping[str, Sequence[FilePath]]) -> bool:
        try:
            files = self._mounted(paths)
            if work.action is WatchAction.REBUILD:
                return self.work.rebuild(work.services, files)
            if work.action is WatchAction.SYNC_RESTART:
                return self.work.replace_pods(work.services, files)
            return self.work.restart(work.services)
        except Interrupted:
            raise
        except (ComposeplatError, OSError) as error:
            for service in work.services:
                self.report_problem(service, error)
            return False

    def _mounted(self, paths: Mapping[str, Sequence[FilePath]]) -> dict[str, tuple[HostFile, ...]]:
        """Read the files of all services that new pods get: a deploy of one must not take them from another."""
        found: dict[str, tuple[HostFile, ...]] = {}
        for service, listed in paths.items():
            files, left_out = read_mounted_files((self.folders[number], path) for number, path in listed)
            found[service] = files
            for path, reason in left_out:
                self.report("watch-problem", service, path=path, reason=reason)
        return found

    # copies

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._is_due.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _follow_pods(self) -> None:
        while not self._ended:
            self._pods.wait()
            self._found.put(PodsChanged())

    def _copy(self) -> None:
        is_reported = False
        with Api(self.target.access) as api:
            while None not in (taken := self._take()):
                found = [each for each in taken if isinstance(each, FolderChange | FolderProblem)]
                _raise_first(taken)
                try:
                    self._handle(api, found)
                    if len(found) < len(taken):
                        self._copy_missed(api)
                    is_reported = False
                except ApiError as error:
                    # While the cluster does not answer, its pods are listed twice a second.
                    if not is_reported:
                        self.report_problem(self.folders[found[0].number if found else 0].service, error)
                    is_reported = True

    def _take(self) -> list[Found | PodsChanged | None]:
        """Wait for a change, and take all that there are: a checkout is one copy, however many scans find it."""
        taken = [self._found.get()]
        with contextlib.suppress(queue.Empty):
            while True:
                taken.append(self._found.get_nowait())
        return taken

    def _handle(self, api: Api, found: Sequence[FolderChange | FolderProblem]) -> None:
        services = {}
        for each in found:
            folder = self.folders[each.number]
            if isinstance(each, FolderProblem):
                path = posixpath.join(folder.local, each.path)
                self.report("watch-problem", folder.service, path=path, reason=each.reason)
            elif now := self._note(folder, each):
                now.put_below(self._missed.get(folder.service, Changes()))
                self._missed[folder.service] = services[folder.service] = now
        for service, changes in services.items():
            self._copy_into(api, service, changes)

    def _note(self, folder: WatchedFolder, change: FolderChange) -> Changes | None:
        if change.is_first:
            self.report("watching", folder.service, path=folder.rule.path, action=folder.rule.action.value)
        with self._lock:
            now = self.state.note(change)
            if any(state.due for state in self.state.services.values()):
                self._is_due.set()
        return now

    def _copy_into(self, api: Api, service: str, changes: Changes) -> None:
        """Copy changes, and what was missed, into the known containers of a service; others get all changes."""
        changes.put_below(self._missed.get(service, Changes()))
        self._missed[service] = changes
        containers = self._containers(self._pods.read(api), service)
        self._missed[service] = Changes()
        known = self._known[service].intersection(containers)
        others = set(containers) - known
        unreached = self._copy_known(service, known, changes) if changes else set()
        unreached |= self._copy_all(service, others & self._behind, is_new=False)
        unreached |= self._copy_all(service, others - self._behind, is_new=True)
        self._known[service] = set(containers) - unreached
        self._behind |= unreached

    def _copy_known(self, service: str, containers: Collection[Container], changes: Changes) -> set[Container]:
        """Copy changes, and then what failed before into the containers that took them."""
        lacking = {container: self._failed.take(container, changes) for container in containers}
        unreached = self._copy_all(service, containers, changes, is_new=False)
        for container, earlier in lacking.items():
            if container in self._failed.lacking:
                self._failed.add(container, earlier)
            elif earlier and container not in unreached:
                unreached |= self._copy_all(service, {container}, earlier, is_new=False)
        return unreached

    def _copy_missed(self, api: Api) -> None:
        for name, state in self.state.services.items():
            if state.copied:
                self._copy_into(api, name, Changes())

    def _copy_all(
        self, service: str, containers: Collection[Container], changes: Changes | None = None, *, is_new: bool
    ) -> set[Container]:
        """Copy changes, or all that were copied before; return the containers that could not be reached."""
        if not containers:
            return set()
        with self._lock:
            copied = Changes(dict((changes or self.state.services[service].copied).paths))
        return Copy(self, service, copied, is_new=is_new).into(sorted(containers, key=str)) if copied else set()

    def _containers(self, pods: Iterable[Object], service: str) -> list[Container]:
        return running_containers(pods, self.cluster_names[service])

    def files_of(self, service: str, container: Container) -> ContainerFiles:
        name = self.cluster_names[service]
        command = Command(namespace=self.namespace, pod=container.pod, container=name, args=(), terminal=False)
        return ContainerFiles(command, self.target, self.environment)

    def note_failed(self, container: Container, changes: Changes) -> None:
        self._failed.add(container, changes)

    def report(self, kind: str, service: str, **fields: object) -> None:
        self.on_event({"event": kind, "service": service, **fields})

    def report_problem(self, service: str, error: Exception, pod: str = "") -> None:
        hint = error.hint if isinstance(error, ComposeplatError) else ""
        reason = f"{error}; {hint}" if hint else str(error)
        self.report("watch-problem", service, path="", reason=f"{pod}: {reason}" if pod else reason)


def _raise_first(found: Iterable[object]) -> None:
    for each in found:
        if isinstance(each, Exception):
            raise each


@dataclass(slots=True)
class Copy:
    """One copy of changes into containers of a service, and the commands that follow it."""

    session: WatchSession
    service: str
    changes: Changes
    is_new: bool
    """The containers began with the image, and get everything that changed since."""
    _unreached: set[Container] = field(default_factory=set)

    def into(self, containers: Sequence[Container]) -> set[Container]:
        """Copy the changes; return the containers that could not be reached."""
        began = time.monotonic()
        folders = self.session.folders
        with tempfile.TemporaryDirectory(prefix="composeplat-") as made:
            archive = Path(made) / "changes.tar"
            try:
                with archive.open("wb") as content:
                    count = write_archive(((folders[number], path) for number, path in self.changes.present), content)
            except OSError as error:
                # A file that can't be read, or that is written meanwhile: the next save tries all again.
                self.session.report_problem(self.service, ComposeplatError(f"can't read the files: {error}"))
                for container in containers:
                    self.session.note_failed(container, self.changes)
                return set()
            with ThreadPoolExecutor(min(len(containers), _MAX_PODS_AT_ONCE)) as pool:
                results = list(pool.map(lambda found: self._into(found, archive if count else None), containers))
        done = [found.pod for found, is_done in zip(containers, results, strict=True) if is_done]
        self._report(done, count, round(time.monotonic() - began, 3))
        return self._unreached

    def _report(self, pods: Sequence[str], count: int, seconds: float) -> None:
        """Report the copy, unless all that changed was gone before it was read."""
        deleted = sum(not path.endswith("/") for _, path in self.changes.deleted)
        if count or deleted:
            numbers = {"files": count, "deleted": deleted}
            self.session.report("copied", self.service, pods=pods, **numbers, new_pods=self.is_new, seconds=seconds)

    def _into(self, container: Container, archive: Path | None) -> bool:
        files = self.session.files_of(self.service, container)
        try:
            self._delete(files)
            if archive is not None:
                self._unpack(files, container, archive)
            for folder in self.session.state.commands_for(self.changes):
                self._run(files, container, folder)
        except (ComposeplatError, OSError) as error:
            self.session.report_problem(self.service, error, container.pod)
            if isinstance(error, Unreached):
                self._unreached.add(container)
            return False
        return True

    def _unpack(self, files: ContainerFiles, container: Container, archive: Path) -> None:
        """Unpack an archive; files from file systems without permissions keep those that the container has."""
        without = self.session.state.without_modes
        paths = [
            self.session.folders[number].in_container(path)
            for number, path in self.changes.present
            if number in without
        ]
        if paths:
            modes = {**dict.fromkeys(paths, _MODE_WITHOUT_MODES), **files.modes(paths)}
            adapted = archive.with_name(f"{container.pod}.tar")
            with adapted.open("wb") as content:
                give_modes(archive, modes, content)
            archive = adapted
        files.unpack(archive)

    def _delete(self, files: ContainerFiles) -> None:
        gone: dict[int, list[str]] = {}
        for number, path in self.changes.deleted:
            gone.setdefault(number, []).append(path)
        for number, paths in gone.items():
            folder = self.session.folders[number]
            removed = [folder.in_container(path) for path in paths if not path.endswith("/")]
            files.delete(removed, emptied_folders(folder, paths))

    def _run(self, files: ContainerFiles, container: Container, folder: WatchedFolder) -> None:
        if folder.rule.command is None:
            return
        status, output = files.run(folder.rule.command)
        last = output.splitlines()[-1] if output else ""
        self.session.report("executed", self.service, pod=container.pod, status=status, output=last)
