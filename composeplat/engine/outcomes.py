"""What an operation is asked for, and what comes of it: data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from composeplat.cluster.failure_causes import Cause
from composeplat.compose.options import DEFAULT_TIMEOUT_S
from composeplat.diagnostics import ComposeplatError, Report
from composeplat.engine.events import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployOptions:
    """What a deploy, or a preview of it, is asked for."""

    services: tuple[str, ...] = ()
    """None means all."""
    wait: bool = True
    timeout: float = DEFAULT_TIMEOUT_S
    rerun_jobs: bool = False
    refresh: bool = False
    replaced_volumes: tuple[str, ...] = ()
    take_over: bool = False
    """Whether an environment that was made from another project may become this one's."""
    safe_checkpoints: bool = False
    build: bool | None = None
    """All images (True), none (False), or those that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that went wrong, in words, with what shows it."""

    service: str
    cause: Cause
    lines: tuple[str, ...] = ()
    source: str = ""
    """Whose lines they are."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    changes: list[Change] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Volumes that stay."""
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    urls: tuple[str, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    """Service -> what its image is known by."""
    services: tuple[str, ...] = ()
    """Those that were put to sleep or woken."""
    developed: tuple[str, ...] = ()
    """Those that are under development, and were left alone."""
    seconds: float = 0.0


class Refused(ComposeplatError):
    """Something stands in the way, in the definition or in the cluster; the report says what."""

    def __init__(self, report: Report) -> None:
        super().__init__("nothing was changed")
        self.report = report
