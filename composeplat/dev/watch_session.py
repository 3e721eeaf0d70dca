"""A watch: what changes here is copied into the running containers, and builds, restarts and commands follow.

Owns the order. One thread copies, so that a save is in the containers at once also while an image is built; the thread
that runs the session builds and restarts, as only that one gets a Ctrl-C. After a failure watching continues.
Must not know a terminal, nor how a service is built or restarted: the command line gives it :class:`PodWork`.
"""

from __future__ import annotations

import contextlib
import posixpath
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watching import pods_path
from composeplat.compose.model import HostFile
from composeplat.compose.watch_model import WatchAction
from composeplat.dev.container_sync import Container, running_containers
from composeplat.dev.folder_watch import FolderChange, FolderProblem, Found, watching_folders
from composeplat.dev.mounted_files import read_mounted_files
from composeplat.dev.watch_copy import Copy, Event, WatchedContainers
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_state import Changes, FilePath, RetryTimer, WatchState, Work
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.pulumi_process import Interrupted
from composeplat.engine.target import Target
from composeplat.system.threads import start_thread
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import LINK

#: A build begins after a moment without changes: an editor saves several files, and git checks many out.
_QUIET_PERIOD_S = 0.5
_MAX_QUIET_WAIT_S = 5.0
_END_TIMEOUT_S = 5.0


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
    _unreached: set[str] = field(default_factory=set)
    """The services with a container that could not be reached the last time."""
    _retry: RetryTimer = field(default_factory=RetryTimer)
    _is_due: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _failure: Exception | None = None
    _ended: bool = False
    _pods: LiveList = field(init=False)
    _reach: WatchedContainers = field(init=False)

    def __post_init__(self) -> None:
        self.state = WatchState(self.folders)
        path = pods_path(self.namespace, self.environment_name)
        self._pods = LiveList(self.target.access, path)
        self._reach = WatchedContainers(
            cluster_names=self.cluster_names,
            namespace=self.namespace,
            target=self.target,
            environment=self.environment,
            state=self.state,
            on_event=self.on_event,
            is_running=lambda service, container: container in self._containers(self._pods.latest, service),
        )

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
            self._reach.processes.end()
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
                self._reach.report_problem(service, error)
            return False

    def _mounted(self, paths: Mapping[str, Sequence[FilePath]]) -> dict[str, tuple[HostFile, ...]]:
        """Read the files of all services that new pods get: a deploy of one must not take them from another."""
        found: dict[str, tuple[HostFile, ...]] = {}
        for service, listed in paths.items():
            files, left_out = read_mounted_files((self.folders[number], path) for number, path in listed)
            found[service] = files
            for path, reason in left_out:
                self._report("watch-problem", service, path=path, reason=reason)
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
                began = time.monotonic()
                try:
                    self._handle(api, found)
                    # Nothing was taken once it is time to try again.
                    if len(found) < len(taken) or not taken:
                        self._copy_missed(api)
                    if not taken:
                        self._copy_failed(api)
                    is_reported = False
                except ApiError as error:
                    # While the cluster does not answer, its pods are listed twice a second.
                    if not is_reported:
                        self._reach.report_problem(self.folders[found[0].number if found else 0].service, error)
                    is_reported = True
                self._set_timer(time.monotonic() - began, is_first=bool(found), is_over=not taken)

    def _take(self) -> list[Found | PodsChanged | None]:
        """Wait for a change, and take all that there are: a checkout is one copy, however many scans find it.

        Failed copies are tried again after a while, in which nothing is requested.
        """
        taken = []
        with contextlib.suppress(queue.Empty):
            taken.append(self._found.get(timeout=self._retry.left_s(time.monotonic())))
            while True:
                taken.append(self._found.get_nowait())
        return taken

    def _set_timer(self, spent_s: float, *, is_first: bool, is_over: bool) -> None:
        if not self._unreached and not any(failed.lacking for failed in self._reach.failed.values()):
            self._retry.stop()
        elif is_first or is_over or self._retry.at is None:
            self._retry.start(time.monotonic(), spent_s, is_first=not is_over)

    def _handle(self, api: Api, found: Sequence[FolderChange | FolderProblem]) -> None:
        services = {}
        for each in found:
            folder = self.folders[each.number]
            if isinstance(each, FolderProblem):
                path = posixpath.join(folder.local, each.path)
                self._report("watch-problem", folder.service, path=path, reason=each.reason)
            elif now := self._note(folder, each):
                now.put_below(self._missed.get(folder.service, Changes()))
                self._missed[folder.service] = services[folder.service] = now
        for service, changes in services.items():
            self._copy_into(api, service, changes)

    def _note(self, folder: WatchedFolder, change: FolderChange) -> Changes | None:
        if change.is_first:
            self._report("watching", folder.service, path=folder.rule.path, action=folder.rule.action.value)
        with self._lock:
            now = self.state.note(change)
            if any(state.due for state in self.state.services.values()):
                self._is_due.set()
        return now

    def _copy_into(self, api: Api, service: str, changes: Changes) -> None:
        """Copy changes, and what was missed, into the known containers of a service; others get all changes."""
        is_retry = not changes
        changes.put_below(self._missed.get(service, Changes()))
        self._missed[service] = changes
        containers = self._containers(self._pods.read(api), service)
        self._missed[service] = Changes()
        self._reach.failed[service].forget_others(containers)
        known = self._known[service].intersection(containers)
        others = set(containers) - known
        unreached = self._copy_known(service, known, changes) if changes else set()
        unreached |= self._copy_all(service, others & self._behind, is_new=False, is_retry=is_retry)
        unreached |= self._copy_all(service, others - self._behind, is_new=True)
        self._unreached.discard(service)
        self._set_known(service, containers, unreached)

    def _set_known(self, service: str, containers: Collection[Container], unreached: set[Container]) -> None:
        self._known[service] = set(containers) - unreached
        self._behind |= unreached
        if unreached:
            self._unreached.add(service)

    def _copy_known(self, service: str, containers: Collection[Container], changes: Changes) -> set[Container]:
        """Copy changes, and then earlier ones that failed into the containers that took them."""
        failed = self._reach.failed[service]
        before = {container: failed.lacking.get(container, Changes()).without(changes) for container in containers}
        unreached = self._copy_all(service, containers, changes, is_new=False)
        took = [each for each in containers if each not in unreached and failed.lacking.get(each) == before[each]]
        return unreached | self._copy_lacking(service, took)

    def _copy_failed(self, api: Api) -> None:
        """Try failed copies again."""
        for service in self.state.services:
            containers = self._known[service].intersection(self._containers(self._pods.read(api), service))
            self._set_known(service, self._known[service], self._copy_lacking(service, containers))

    def _copy_lacking(self, service: str, containers: Collection[Container]) -> set[Container]:
        """Copy the files that containers lack, at once into those that lack the same."""
        failed, alike = self._reach.failed[service], list[tuple[Changes, list[Container]]]()
        for container in containers:
            if lacking := failed.lacking.get(container):
                same = next((each for changes, each in alike if changes == lacking), None)
                if same is None:
                    alike.append((lacking, same := []))
                same.append(container)
        unreached = set[Container]()
        for changes, same in alike:
            unreached |= self._copy_all(service, same, changes, is_new=False, is_retry=True)
        return unreached

    def _copy_missed(self, api: Api) -> None:
        for name, state in self.state.services.items():
            if state.copied:
                self._copy_into(api, name, Changes())
            else:
                self._unreached.discard(name)

    def _copy_all(
        self,
        service: str,
        containers: Collection[Container],
        changes: Changes | None = None,
        *,
        is_new: bool,
        is_retry: bool = False,
    ) -> set[Container]:
        """Copy changes, or all that were copied before; return the containers that could not be reached."""
        if not containers:
            return set()
        with self._lock:
            copied = Changes(dict((changes or self.state.services[service].copied).paths))
        copy = Copy(self._reach, service, copied, is_new=is_new, is_retry=is_retry)
        return copy.into(sorted(containers, key=str)) if copied else set()

    def _containers(self, pods: Iterable[Object], service: str) -> list[Container]:
        return running_containers(pods, self.cluster_names[service])

    def _report(self, kind: str, service: str, **fields: object) -> None:
        self._reach.report(kind, service, **fields)


def _raise_first(found: Iterable[object]) -> None:
    for each in found:
        if isinstance(each, Exception):
            raise each
