"""The phase of each service during a deployment.

Owns the join of two streams, Pulumi's events and snapshots of the cluster, into one phase per service.
Must not wait, ask or print: it decides from its input alone, so that it is tested without Pulumi and without a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, service_status
from composeplat.cluster.failure_causes import deletion_cause
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.codes.causes import CauseCode
from composeplat.components.resource_names import ResourceName
from composeplat.engine.events import Events, Operation
from composeplat.engine.rollout_end import RolloutEnd
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.progress import Phase, ServiceProgress

_BEFORE_ALL_ROUNDS = 0
#: The same snapshot shows more with time, as causes depend on how long something has been so.
_JUDGED_AGAIN_S = 0.4
#: The next judgement of all services waits this many times the processor time of the last one.
_PAUSE_PER_JUDGEMENT = 20


ProgressHandler = Callable[[ServiceProgress], None]


@dataclass(slots=True, kw_only=True)
class Monitor:
    plan: Plan
    on_progress: ProgressHandler
    chosen: frozenset[str]
    """The services of this deployment."""
    started: float = field(default_factory=time.monotonic)
    causes: dict[str, Cause] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)
    """Service -> the number of the watcher's first round that shows its workload as applied."""
    _emitted: dict[str, tuple[Phase, str]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    only_images: bool = False
    """Whether images are built and nothing is deployed."""
    _end: RolloutEnd = field(default_factory=RolloutEnd)
    retries: dict[str, Cause] = field(default_factory=dict)
    """Job -> the cause of its last failed try, while it tries again."""
    _judged_snapshot: Snapshot | None = None
    """What the last judgement was of."""
    _judged: tuple[int, int] = (0, 0)
    """Its round, and the number of applied services."""
    _judged_at: float = 0.0
    """When all services were judged last."""
    _not_judged_before: float = 0.0
    _judged_workloads: dict[str, Object | None] = field(default_factory=dict)
    """Service -> its workload as it was judged last."""
    _names: dict[str, str] = field(init=False)
    """Cluster name -> service."""
    _in_same_pod: dict[str, list[str]] = field(init=False)
    """Service -> the services in its pods, itself too."""

    def __post_init__(self) -> None:
        self._names = {service.cluster_name: service.name for service in self.plan.services}
        by_workload: dict[tuple[str, str], list[str]] = {}
        for service in self.plan.services:
            by_workload.setdefault(service.workload, []).append(service.name)
        self._in_same_pod = {service.name: by_workload[service.workload] for service in self.plan.services}

    def emit(self, service: str, phase: Phase, message: str = "") -> None:
        """Emit the phase of a service if it is new; a failed service stays failed."""
        if self._emitted.get(service) == (phase, message) or self._emitted.get(service, (None,))[0] is Phase.FAILED:
            return
        begun = self._since.setdefault(service, time.monotonic())
        self._emitted[service] = (phase, message)
        self.on_progress(
            ServiceProgress(service=service, phase=phase, message=message, seconds=time.monotonic() - begun)
        )

    def emit_waiting(self, service: str, message: str) -> None:
        """Emit what a workload waits for, which holds back all services of its pods."""
        self.emit(service, Phase.WAITING, message)
        for name in self._others_in_same_pod(service):
            self.emit(name, Phase.WAITING, _of_the_pod(service, message))

    def fail(self, service: str, cause: Cause) -> None:
        """Fail a service; a dependency that fails it holds back the others of its pods too."""
        if service not in self.causes:
            self.causes[service] = cause
            self.emit(service, Phase.FAILED, cause.message)
        if cause.code is CauseCode.DEPENDENCY:
            for name in self._others_in_same_pod(service) - self.causes.keys():
                self.causes[name] = replace(cause, message=_of_the_pod(service, cause.message))
                self.emit(name, Phase.FAILED, self.causes[name].message)

    def _others_in_same_pod(self, service: str) -> set[str]:
        return {name for name in self._in_same_pod.get(service, ()) if name != service and name in self.chosen}

    def _unfailed_services(self) -> list[ServicePlan]:
        """The chosen services that have not failed."""
        return [
            service for service in self.plan.services if service.name in self.chosen and service.name not in self.causes
        ]

    def handle(self, urn: str, events: Events, request_round: Callable[[], int]) -> None:
        """Note what Pulumi's events say about a resource; ``request_round`` returns the first round that shows it."""
        name = ResourceName.from_urn(urn)
        service = self._chosen_service(name.key) if name is not None else None
        if name is None or service is None or urn in events.failed:
            return
        kind = name.key.kind
        if self.only_images and kind is not ResourceKind.IMAGE:
            return
        change = events.changes.get(urn)
        is_unchanged = change is not None and change.operation is Operation.SAME
        if urn not in events.done:
            if change is not None and not is_unchanged:
                self.emit(service, Phase.BUILDING if kind is ResourceKind.IMAGE else Phase.APPLYING)
        elif kind is ResourceKind.WORKLOAD:
            # Any round shows the state of an unchanged workload.
            self._note_applied(service, None if is_unchanged else request_round())
        elif kind is ResourceKind.IMAGE and change is not None and not is_unchanged:
            self.emit(service, Phase.BUILT)

    def _note_applied(self, service: str, shown_by: int | None) -> None:
        """Note for all services of a pod that it was applied; None is an unchanged one."""
        for name in sorted(self.chosen.intersection(self._in_same_pod[service])):
            if shown_by is None and self.applied.get(name) == _BEFORE_ALL_ROUNDS:
                continue
            self.applied[name] = _BEFORE_ALL_ROUNDS if shown_by is None else shown_by
            self.emit(
                name, *((Phase.UNCHANGED, "") if shown_by is None else (Phase.WAITING, "applied, waiting to be ready"))
            )

    def note_unchanged(self, services: Iterable[str]) -> None:
        """Note services that Pulumi is not given, as they are as in the last run."""
        for name in sorted(services):
            self._note_applied(name, None)

    def emit_unchanged(self, statuses: Mapping[str, ServiceStatus]) -> None:
        """Emit the status of each service if nothing was applied."""
        for service in self._unfailed_services():
            self._note_applied(service.name, None)
        for service in self._unfailed_services():
            self._emit_status(service, statuses[service.name])

    def _chosen_service(self, key: ResourceKey) -> str | None:
        if not key.kind.is_of_service:
            return None
        name = self._names.get(key.name)
        return name if name in self.chosen else None

    def judge_news(self, snapshot: Snapshot | None, rounds: int) -> None:
        """Judge all services from time to time, and in between those whose workload has changed."""
        now = time.monotonic()
        has_news = snapshot is not self._judged_snapshot or (rounds, len(self.applied)) != self._judged
        if now >= self._not_judged_before and (has_news or now - self._judged_at > _JUDGED_AGAIN_S):
            self.judge_services(snapshot, rounds)
        elif snapshot is not None and has_news:
            self._judge(self._changed_services(snapshot), snapshot, rounds)

    def judge_services(self, snapshot: Snapshot | None, rounds: int) -> None:
        """Judge every service whose workload is shown as applied by the last round."""
        if snapshot is None:
            return
        # Time of the processor: one of few services that had to wait for it is no reason for a pause.
        began = time.thread_time()
        self._judge(self._unfailed_services(), snapshot, rounds)
        self._judged_at = time.monotonic()
        self._not_judged_before = self._judged_at + _PAUSE_PER_JUDGEMENT * (time.thread_time() - began)

    def _changed_services(self, snapshot: Snapshot) -> list[ServicePlan]:
        """The services whose workload is another object than at their last judgement."""
        known, current = self._judged_workloads, snapshot.workloads
        return [
            service
            for service in self._unfailed_services()
            if service.name not in known or current.get(service.workload) is not known[service.name]
        ]

    def _judge(self, services: Iterable[ServicePlan], snapshot: Snapshot, rounds: int) -> None:
        self._end.note(snapshot)
        self._judged_snapshot, self._judged = snapshot, (rounds, len(self.applied))
        for service in services:
            if self.applied.get(service.name, rounds + 1) > rounds:
                continue
            self._judged_workloads[service.name] = snapshot.workloads.get(service.workload)
            status = service_status(*service.workload, service.cluster_name, snapshot)
            if status.state is WorkloadState.FAILED and status.cause is not None and not status.is_done:
                self.fail(service.name, status.cause)
            else:
                self._emit_status(service, status)
            if status.retry is not None:
                self.retries[service.name] = status.retry

    def _emit_status(self, service: ServicePlan, status: ServiceStatus) -> None:
        if status.is_done:
            self.emit(service.name, Phase.READY, status.message)
        else:
            self.emit(service.name, Phase.WAITING, status.message)

    def is_over(self, snapshot: Snapshot | None, rounds: int) -> bool:
        """Return whether the deployment is over: all services are ready or have failed, and Jobs have started."""
        if snapshot is None or not self.is_shown(rounds):
            return False
        return self._end.is_over(self._unfailed_services(), self._has_changed, snapshot)

    def is_shown(self, rounds: int) -> bool:
        """Return whether this round shows all services as applied."""
        return all(self.applied.get(name, rounds + 1) <= rounds for name in self.chosen)

    def _has_changed(self, service: ServicePlan) -> bool:
        """Return whether this deployment has changed a service."""
        return self.applied.get(service.name) != _BEFORE_ALL_ROUNDS

    def fail_deleted(self, snapshot: Snapshot | None, rounds: int) -> None:
        """Fail the services whose workload was applied, and is gone: nothing makes it again.

        For the time after Pulumi's run, which may delete a workload to create it again, as another deploy may.
        """
        if snapshot is None:
            return
        for service in self._unfailed_services():
            is_applied = self.applied.get(service.name, rounds + 1) <= rounds
            cause = deletion_cause(*service.workload, snapshot) if is_applied else None
            if cause is not None:
                self.fail(service.name, cause)

    def unready(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """The status of each service that is not ready."""
        return {name: status for name, status in self.statuses(snapshot).items() if not status.is_done}

    def statuses(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """How the services stand that have not failed."""
        return {
            service.name: service_status(*service.workload, service.cluster_name, snapshot or Snapshot())
            for service in self._unfailed_services()
        }


def _of_the_pod(service: str, predicate: str) -> str:
    return f"is in the pods of {service}, which {predicate}"
