"""The options and the outcome of an operation: data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from composeplat.cluster.cause import Cause
from composeplat.compose.options import DEFAULT_TIMEOUT_S
from composeplat.diagnostics import ComposeplatError, Report
from composeplat.engine.events import Change, Violation
from composeplat.system.records import record


@record(kw_only=True)
class DeployOptions:
    """The options of a deploy or a preview."""

    services: tuple[str, ...] = ()
    """Empty for all services."""
    wait: bool = True
    timeout: float = DEFAULT_TIMEOUT_S
    rerun_jobs: bool = False
    refresh: bool = False
    replaced_volumes: tuple[str, ...] = ()
    take_over: bool = False
    """Whether the deploy may take over an environment of another project."""
    safe_checkpoints: bool = False
    build: bool | None = None
    """Build all images (True), none (False), or those that changed (None)."""
    rolled_back_to: int | None = None
    """The revision whose objects are deployed again."""
    adopted: frozenset[tuple[str, str]] = frozenset()
    """Objects of others, by kind and name, in whose place the deploy puts the plan's: ``platform import`` allows it."""

    @property
    def command(self) -> str:
        """The command of a deploy with these options."""
        return "deploy" if self.rolled_back_to is None else "rollback"


@record(kw_only=True)
class Failure:
    """The failure of one service, with log lines."""

    service: str
    cause: Cause
    lines: tuple[str, ...] = ()
    source: str = ""
    """The pod or build that wrote the lines."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    changes: list[Change] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Volumes that stay."""
    unused: list[str] = field(default_factory=list)
    """Of these, the volumes that the next deploy does not use."""
    deleted_volumes: list[str] = field(default_factory=list)
    """Volumes whose data is deleted."""
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    urls: tuple[str, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    """Service -> name and digest of its image."""
    services: tuple[str, ...] = ()
    """The services that were put to sleep or woken."""
    developed: tuple[str, ...] = ()
    """The services under development, which were not changed."""
    violations: list[Violation] = field(default_factory=list)
    """The violations that policy packs report."""
    seconds: float = 0.0

    @property
    def is_refused(self) -> bool:
        """Whether a policy refuses the operation."""
        return any(violation.is_mandatory for violation in self.violations)


class Refused(ComposeplatError):
    """The definition or the cluster does not allow the operation; the report has the reasons."""

    def __init__(self, report: Report, outcome: str = "nothing was changed") -> None:
        super().__init__(outcome)
        self.report = report
