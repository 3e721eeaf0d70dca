"""The part of the model that full mode alone reads about where pods run, and how they are replaced.

Owns the dataclasses of schedules, ``deploy.mode``, ``deploy.placement``, ``deploy.update_config`` and devices; their
defaults are what a service without the key has.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as fields of a service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from composeplat.system.records import record


class Mode(StrEnum):
    """The kinds of controllers of Swarm, as Compose names them."""

    REPLICATED = "replicated"
    GLOBAL = "global"
    """A pod on each node."""
    REPLICATED_JOB = "replicated-job"
    GLOBAL_JOB = "global-job"

    @property
    def is_job(self) -> bool:
        return self in (Mode.REPLICATED_JOB, Mode.GLOBAL_JOB)

    @property
    def is_global(self) -> bool:
        """Whether the nodes decide the number of pods."""
        return self in (Mode.GLOBAL, Mode.GLOBAL_JOB)


@record(kw_only=True)
class Constraint:
    label: str
    """A label of nodes."""
    value: str
    is_equal: bool = True


@record(kw_only=True)
class Placement:
    constraints: tuple[Constraint, ...] = ()
    spread: tuple[str, ...] = ()
    """Labels of nodes whose values the pods are spread over."""
    max_per_node: int = 0
    """0 is no limit."""


@record(kw_only=True)
class UpdateConfig:
    """How pods are replaced; None is the workload's own."""

    parallelism: int | None = None
    """0 is all at once."""
    start_first: bool | None = None
    ready_seconds: int = 0
    """How long a pod must be ready before the next one is replaced."""
    rolls_back: bool = False
    """Whether what ran before runs again if a deploy fails."""


UTC_ZONE = "Etc/UTC"
#: After hours of sleep, nobody expects the run of last night.
MAX_DELAY_S = 600


class Concurrency(StrEnum):
    """What happens when a run is due while the one before lasts."""

    ALLOW = "allow"
    FORBID = "forbid"
    REPLACE = "replace"


@record(kw_only=True)
class Schedule:
    """When the runs of a service start."""

    cron: str
    """Empty if only a person starts a run."""
    timezone: str = UTC_ZONE
    concurrency: Concurrency = Concurrency.ALLOW
    max_delay_s: int | None = MAX_DELAY_S
    """A run that could not start by then is left out; None is never."""
    is_manual: bool = True
    """Whether a person may start a run."""


@record(kw_only=True)
class Scheduling:
    mode: Mode = Mode.REPLICATED
    schedule: Schedule | None = None
    placement: Placement = field(default_factory=Placement)
    update: UpdateConfig = field(default_factory=UpdateConfig)
    devices: Mapping[str, int] = field(default_factory=dict)
    """The number of each extended resource, such as ``nvidia.com/gpu``."""

    @property
    def ends(self) -> bool:
        """Whether the pods end by themselves, whatever the policy of restarts says."""
        return self.schedule is not None or self.mode.is_job
