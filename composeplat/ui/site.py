"""What the server serves, as functions that the command line gives it.

Owns the interface between the two. Must not know how a document is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from composeplat.system.records import record
from composeplat.ui.log_batches import Lines
from composeplat.ui.topics import Source


@record(kw_only=True)
class LogRequest:
    services: tuple[str, ...]
    """Empty for all."""
    tail: int | None
    """At most so many lines of each container; None for all."""


@record(kw_only=True)
class Environment:
    """An environment, by the functions that read its documents."""

    namespace: str
    name: str
    sources: Mapping[str, Source]
    open_logs: Callable[[LogRequest], Lines]
    arguments: Callable[[str, Sequence[str]], Sequence[str]] | None = None
    """Returns the arguments of a process for an action and its services; None if there are no actions."""
    read_stamp: Callable[[], str] = str
    """Returns a text that differs when the definition does."""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


@record(kw_only=True)
class Site:
    page: Callable[[], Mapping[str, object]]
    """Returns the document of the whole page: the version, and which environments there are."""
    find: Callable[[str, str], Environment | None]
    """Returns an environment by its namespace and name."""
    sources: Mapping[str, Source]
    """The topics that belong to no environment."""
