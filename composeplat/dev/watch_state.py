"""What a watch has seen: the files that changed since the images were built, and the work that is due.

Owns what a change means for a service by the action of its rule, and what is forgotten after a build.
It also owns the files that failed copies have left out, and when those are tried again.
Must not copy, build or wait: the session does, and each decision is tested without one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from composeplat.compose.watch_model import WatchAction
from composeplat.dev.folder_watch import FolderChange
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.system.records import record

FilePath = tuple[int, str]
"""The number of a folder, and a path relative to it."""


@dataclass(slots=True)
class Changes:
    """Paths that changed: true for those that exist, false for deleted ones."""

    paths: dict[FilePath, bool] = field(default_factory=dict)

    def add(self, change: FolderChange) -> None:
        for path in change.deleted:
            self.paths[change.number, path] = False
        for path in change.changed:
            self.paths[change.number, path] = True

    def put_below(self, earlier: Changes) -> None:
        """Add earlier changes, where nothing has changed since."""
        self.paths = {**earlier.paths, **self.paths}

    def without(self, others: Changes) -> Changes:
        return Changes({path: exists for path, exists in self.paths.items() if path not in others.paths})

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def present(self) -> list[FilePath]:
        return [path for path, exists in self.paths.items() if exists]

    @property
    def deleted(self) -> list[FilePath]:
        return [path for path, exists in self.paths.items() if not exists]


@dataclass(slots=True)
class FailedCopies:
    """The files that containers of a service lack because a copy failed, until a later copy has them."""

    lacking: dict[Hashable, Changes] = field(default_factory=dict)
    _reported: dict[Hashable, Sequence[str]] = field(default_factory=dict)
    """The last messages about each container that has failures."""

    def note(self, container: Hashable, tried: Changes, failed: Changes) -> None:
        """Record a copy, and its part that failed."""
        earlier = self.lacking.pop(container, Changes()).without(tried)
        if failed or earlier:
            self.lacking[container] = Changes({**failed.paths, **earlier.paths})
        else:
            self._reported.pop(container, None)

    def forget_others(self, containers: Collection[Hashable]) -> None:
        """Forget containers that are gone."""
        for known in (self.lacking, self._reported):
            for container in [each for each in known if each not in containers]:
                del known[container]

    def is_news(self, container: Hashable, messages: Sequence[str]) -> bool:
        """Return whether other messages were reported last about a container, and record these."""
        before = self._reported.get(container)
        self._reported[container] = messages
        return before != messages


#: Until a failed copy is tried again, if nothing is saved meanwhile; each pause is twice the one before.
_FIRST_PAUSE_S, _MAX_PAUSE_S = 5.0, 160.0
#: A container that takes nothing holds back the others only for a tenth of the time.
_PAUSE_FOR_SECOND = 10


@dataclass(slots=True)
class RetryTimer:
    """When to try failed copies again; nothing is due while none has failed."""

    at: float | None = None
    _pause_s: float = _FIRST_PAUSE_S

    def start(self, now: float, spent_s: float, *, is_first: bool) -> None:
        self._pause_s = _FIRST_PAUSE_S if is_first else min(2 * self._pause_s, _MAX_PAUSE_S)
        self.at = now + max(self._pause_s, _PAUSE_FOR_SECOND * spent_s)

    def stop(self) -> None:
        self.at = None

    def left_s(self, now: float) -> float | None:
        """Return the time until then; None if nothing has failed."""
        return None if self.at is None else max(0.0, self.at - now)


@dataclass(slots=True)
class ServiceState:
    """One service of a watch."""

    copied: Changes = field(default_factory=Changes)
    """Those that a container lacks which begins with the image."""
    mounted: Changes = field(default_factory=Changes)
    """Those that new pods get from the cluster, as their programs read them at the start."""
    due: WatchAction | None = None
    """The work on its pods: ``REBUILD``, ``SYNC_RESTART``, ``RESTART`` or none."""


#: Of several kinds of work, the first includes the others.
_BY_WEIGHT = (WatchAction.REBUILD, WatchAction.SYNC_RESTART, WatchAction.RESTART)


@record
class Work:
    """Work on the pods of some services, and the changes that it takes along."""

    services: tuple[str, ...]
    action: WatchAction
    taken: dict[str, tuple[Changes, Changes]] = field(default_factory=dict)
    """The changes that a build has in it."""


class WatchState:
    def __init__(self, folders: Sequence[WatchedFolder]) -> None:
        self.folders = folders
        self.services = {folder.service: ServiceState() for folder in folders}
        self.without_modes: frozenset[int] = frozenset()
        """The folders on file systems that keep no permissions."""

    def note(self, change: FolderChange) -> Changes | None:
        """Record a change; return what has to be copied into the running containers now, if anything has."""
        folder = self.folders[change.number]
        if not change.keeps_modes:
            self.without_modes |= {change.number}
        if not change.changed and not change.deleted:
            return None
        service, action = self.services[folder.service], folder.rule.action
        if action in (WatchAction.SYNC, WatchAction.SYNC_EXEC):
            service.copied.add(change)
            now = Changes()
            now.add(change)
            return now
        if action is WatchAction.SYNC_RESTART:
            service.mounted.add(change)
        service.due = min(filter(None, (service.due, action)), key=_BY_WEIGHT.index)
        return None

    def take_work(self) -> Work | None:
        """Take the work that is due: that of one kind, for all services that have it."""
        due = [state.due for state in self.services.values() if state.due]
        if not due:
            return None
        action = min(due, key=_BY_WEIGHT.index)
        names = tuple(name for name, state in self.services.items() if state.due is action)
        taken = {}
        for name in names:
            state = self.services[name]
            state.due = None
            if action is WatchAction.REBUILD:
                taken[name] = state.copied, state.mounted
                state.copied, state.mounted = Changes(), Changes()
        return Work(names, action, taken)

    def give_back(self, work: Work) -> None:
        """Take back the changes of a build that failed: no image has them."""
        for name, (copied, mounted) in work.taken.items():
            self.services[name].copied.put_below(copied)
            self.services[name].mounted.put_below(mounted)

    def commands_for(self, changes: Changes, failed: Changes) -> Iterable[WatchedFolder]:
        """Return the folders whose rules run a command after these changes: those of which nothing has failed."""
        waiting = {number for number, _ in failed.paths}
        numbers: Collection[int] = dict.fromkeys(number for number, _ in changes.paths if number not in waiting)
        return [self.folders[number] for number in numbers if self.folders[number].rule.command]
