"""The rules of ``develop.watch``: the part of the model that ``platform watch`` acts on.

Owns their dataclasses. No plan reads them: what a service becomes in the cluster does not depend on them.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as a field of a service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from composeplat.system.records import record


class WatchAction(StrEnum):
    """The actions of a rule, as Compose names them."""

    SYNC = "sync"
    REBUILD = "rebuild"
    RESTART = "restart"
    SYNC_RESTART = "sync+restart"
    SYNC_EXEC = "sync+exec"

    @property
    def has_target(self) -> bool:
        return self in (WatchAction.SYNC, WatchAction.SYNC_RESTART, WatchAction.SYNC_EXEC)


@record(kw_only=True)
class WatchExec:
    """The command that runs in a container after a sync."""

    command: tuple[str, ...]
    working_dir: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@record(kw_only=True)
class WatchRule:
    """A file or folder of this machine, and what its changes do to a service."""

    action: WatchAction
    path: str
    """Absolute."""
    target: str = ""
    """The path in the container; empty if nothing is copied."""
    ignore: tuple[str, ...] = ()
    """Patterns as in ``.dockerignore``, relative to the path."""
    include: tuple[str, ...] = ()
    """Without one, all files are meant."""
    initial_sync: bool = False
    command: WatchExec | None = None


def is_below(path: str, folder: str) -> bool:
    """Check whether a path in a container is a folder or below it."""
    folder = folder.rstrip("/")
    return path == folder or path.startswith(f"{folder}/")
