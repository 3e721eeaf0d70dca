"""How each service stands while a deployment goes on, and when all are as they should be.

Owns the joining of two streams, Pulumi's events and views of the cluster, into one standing for each service.
Decides from those alone; what is shown of it is the listener's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from composeplat.cluster.conditions import ServiceStatus, WorkloadState, workload_status
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.components.resource_names import ResourceName
from composeplat.engine.events import KEEP, Events
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.progress import Phase, ServiceProgress

#: A job that nobody waits for need not end before a deployment does; but one that fails soon is told.
_JOB_GRACE = 10.0
#: So long all stay ready where nothing but running makes a service so: what crashes at once runs for a moment too, and
#: its node looks once a second.
_SETTLED_AFTER = 1.5
_BEFORE_ALL_SNAPSHOTS = -2


Listener = Callable[[ServiceProgress], None]


@dataclass(slots=True, kw_only=True)
class Monitor:
    plan: Plan
    listener: Listener
    chosen: frozenset[str]
    """The services that this deployment is about."""
    started: float = field(default_factory=time.monotonic)
    causes: dict[str, Cause] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)
    """Service -> the round of views after which its workload was applied."""
    _emitted: dict[str, tuple[Phase, str]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    only_images: bool = False
    """Nothing but images is worked on."""
    _built: set[str] = field(default_factory=set)
    _calm_since: float | None = None
    retries: dict[str, Cause] = field(default_factory=dict)
    """Job -> why its last try failed, while it tries again."""

    def emit(self, service: str, phase: Phase, words: str = "") -> None:
        """Tell a service's phase where it is new; a service that has failed stays so."""
        if self._emitted.get(service) == (phase, words) or self._emitted.get(service, (None,))[0] is Phase.FAILED:
            return
        begun = self._since.setdefault(service, time.monotonic())
        self._emitted[service] = (phase, words)
        self.listener(ServiceProgress(service=service, phase=phase, message=words, seconds=time.monotonic() - begun))

    def fail(self, service: str, cause: Cause) -> None:
        if service not in self.causes:
            self.causes[service] = cause
            self.emit(service, Phase.FAILED, cause.message)

    def _going(self) -> list[ServicePlan]:
        """The services that this is about, but for those that have failed."""
        return [one for one in self.plan.services if one.name in self.chosen and one.name not in self.causes]

    def handle(self, urn: str, events: Events, rounds: int) -> None:
        """Note what Pulumi's events say about a resource."""
        name = ResourceName.from_urn(urn)
        service = self._chosen_service(name.key) if name is not None else None
        if name is None or service is None or urn in events.failed:
            return
        kind = name.key.kind
        if self.only_images and kind is not ResourceKind.IMAGE:
            return
        change = events.changes.get(urn)
        is_unchanged = change is not None and change.operation == KEEP
        if urn not in events.done:
            if change is not None and not is_unchanged:
                self.emit(service, Phase.BUILDING if kind is ResourceKind.IMAGE else Phase.APPLYING)
        elif kind is ResourceKind.WORKLOAD:
            # Any snapshot shows the state of an unchanged workload.
            self.applied[service] = _BEFORE_ALL_SNAPSHOTS if is_unchanged else rounds
            self.emit(service, *((Phase.UNCHANGED, "") if is_unchanged else (Phase.WAITING, "applied")))
        elif kind is ResourceKind.IMAGE and change is not None and not is_unchanged and urn not in self._built:
            # Pulumi reports a replacement once more when the image before it is gone.
            self._built.add(urn)
            self.emit(service, Phase.BUILT)

    def _chosen_service(self, key: ResourceKey) -> str | None:
        if not key.kind.is_of_service:
            return None
        found = (service.name for service in self.plan.services if service.cluster_name == key.name)
        name = next(found, None)
        return name if name in self.chosen else None

    def judge_services(self, snapshot: Snapshot | None, rounds: int) -> None:
        """Judge every service whose workload was applied before this view."""
        if snapshot is None:
            return
        for service in self._going():
            if self.applied.get(service.name, rounds) + 1 >= rounds:
                continue
            standing = workload_status(service.workload_kind, service.cluster_name, snapshot)
            if standing.state is WorkloadState.FAILED and standing.cause is not None and not standing.is_done:
                self.fail(service.name, standing.cause)
            else:
                self._emit_status(service, standing)
            if standing.retry is not None:
                self.retries[service.name] = standing.retry

    def _emit_status(self, service: ServicePlan, standing: ServiceStatus) -> None:
        if standing.is_done:
            self.emit(service.name, Phase.READY, standing.message)
        else:
            self.emit(service.name, Phase.WAITING, standing.message)

    def is_over(self, snapshot: Snapshot | None, rounds: int) -> bool:
        """Say whether nothing is to be waited for any more: all are ready or have failed, and jobs run at least."""
        if snapshot is None or any(self.applied.get(name, 0) + 1 >= rounds for name in self.chosen):
            return False
        running = False
        going = self._going()
        for service in going:
            standing = workload_status(service.workload_kind, service.cluster_name, snapshot)
            if standing.state is WorkloadState.STARTED and service.workload_kind == "Job":
                running = True
            elif standing.state is not WorkloadState.FAILED and not standing.is_done:
                self._calm_since = None
                return False
        if self._calm_since is None:
            self._calm_since = time.monotonic()
        settled = _JOB_GRACE if running else _SETTLED_AFTER if any(map(self._only_runs, going)) else 0.0
        return time.monotonic() - self._calm_since >= settled

    def _only_runs(self, service: ServicePlan) -> bool:
        """Say whether a service that has changed is taken for ready as soon as it runs."""
        return (
            service.workload_kind != "Job"
            and not service.has_health_check
            and self.applied.get(service.name) != _BEFORE_ALL_SNAPSHOTS
        )

    def unready(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """What is still not as it should be."""
        return {name: standing for name, standing in self.standings(snapshot).items() if not standing.is_done}

    def standings(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """How the services stand that have not failed."""
        return {
            service.name: workload_status(service.workload_kind, service.cluster_name, snapshot or Snapshot())
            for service in self._going()
        }
