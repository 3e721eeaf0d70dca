"""The phase of each service during a deployment, and when the deployment is over.

Owns the join of two streams, Pulumi's events and snapshots of the cluster, into one phase per service.
Must not wait, ask or print: it decides from its input alone, so that it is tested without Pulumi and without a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, service_status
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.components.resource_names import ResourceName
from composeplat.engine.events import Events, Operation
from composeplat.engine.ready_pods import ReadyPods
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.progress import Phase, ServiceProgress
from composeplat.system.records import record

#: A deployment does not wait for the end of a Job, but reports one that fails within this time after its start.
_JOB_STABLE_S = 10.0
#: A service without a health check counts as ready while it runs. A crashing one runs for a moment too, and its node
#: reports once a second, so all have to stay ready for this time.
_STABLE_S = 1.5
_BEFORE_ALL_ROUNDS = 0
#: The same snapshot shows more with time, as causes depend on how long something has been so.
_JUDGED_AGAIN_S = 0.4
#: The next judgement of all services waits this many times as long as the last one took.
_PAUSE_PER_JUDGEMENT = 20


ProgressHandler = Callable[[ServiceProgress], None]


@record(kw_only=True)
class _ReadyServices:
    """What a snapshot shows in which no service is waited for: only time has to pass."""

    has_running_job: bool
    only_runs: bool
    """Whether a changed service counts as ready while it runs."""
    pods: frozenset[str]
    """Those of the services that only run."""
    job_pods: frozenset[str]


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
    _stable_since: float | None = None
    _ready_pods: ReadyPods = field(default_factory=ReadyPods)
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
    _done_workloads: dict[str, Object | None] = field(default_factory=dict)
    """Service -> its workload as it was seen to be ready."""
    _awaited: str = ""
    """The service that kept the last deployment from being over."""
    _last_ready: tuple[Snapshot, int, _ReadyServices | None] | None = None
    """A snapshot, the number of failed services then, and what :meth:`_ready_services` returned."""
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

    def fail(self, service: str, cause: Cause) -> None:
        if service not in self.causes:
            self.causes[service] = cause
            self.emit(service, Phase.FAILED, cause.message)

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
        began = time.monotonic()
        self._judge(self._unfailed_services(), snapshot, rounds)
        self._judged_at = time.monotonic()
        self._not_judged_before = self._judged_at + _PAUSE_PER_JUDGEMENT * (self._judged_at - began)

    def _changed_services(self, snapshot: Snapshot) -> list[ServicePlan]:
        """The services whose workload is another object than at their last judgement."""
        known, current = self._judged_workloads, snapshot.workloads
        return [
            service
            for service in self._unfailed_services()
            if service.name not in known or current.get(service.workload) is not known[service.name]
        ]

    def _judge(self, services: Iterable[ServicePlan], snapshot: Snapshot, rounds: int) -> None:
        self._ready_pods.note(snapshot)
        self._judged_snapshot, self._judged = snapshot, (rounds, len(self.applied))
        for service in services:
            if self.applied.get(service.name, rounds + 1) > rounds:
                continue
            self._judged_workloads[service.name] = snapshot.workloads.get(service.workload)
            status = self._status(service, snapshot)
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
        if snapshot is None or any(self.applied.get(name, rounds + 1) > rounds for name in self.chosen):
            return False
        self._ready_pods.note(snapshot)
        if self._last_ready is None or self._last_ready[0] is not snapshot or self._last_ready[1] != len(self.causes):
            self._last_ready = snapshot, len(self.causes), self._ready_services(snapshot)
        ready = self._last_ready[2]
        if ready is None:
            self._stable_since = None
            return False
        now = time.monotonic()
        if self._stable_since is None:
            self._stable_since = now
        stable_since = self._stable_since

        def have_been_ready_for(names: frozenset[str]) -> float:
            return now - self._ready_pods.all_since(names, snapshot, otherwise=stable_since)

        return (not ready.has_running_job or have_been_ready_for(ready.job_pods) >= _JOB_STABLE_S) and (
            not ready.only_runs or have_been_ready_for(ready.pods) >= _STABLE_S
        )

    def _ready_services(self, snapshot: Snapshot) -> _ReadyServices | None:
        """Return what a snapshot shows if no service is waited for, else None."""
        services = self._unfailed_services()
        # With many services, it is mostly the last awaited one that is not ready: the others are not looked at.
        for service in sorted(services, key=lambda service: service.name != self._awaited):
            workload = snapshot.workloads.get(service.workload)
            is_known = service.name in self._done_workloads and self._done_workloads[service.name] is workload
            if not is_known and self._waits_for(service, self._status(service, snapshot)):
                self._awaited = service.name
                return None
            self._done_workloads[service.name] = workload
        statuses = {service.name: self._status(service, snapshot) for service in services}
        for service in services:
            if self._waits_for(service, statuses[service.name]):
                self._awaited = service.name
                del self._done_workloads[service.name]
                return None
        running = [service.name for service in services if self._is_running_job(service, statuses[service.name])]
        only_run = [service.name for service in services if self._only_runs(service)]
        return _ReadyServices(
            has_running_job=bool(running),
            only_runs=bool(only_run),
            pods=frozenset(pod for name in only_run for pod in statuses[name].pods),
            job_pods=frozenset(pod for name in running for pod in statuses[name].pods),
        )

    def _status(self, service: ServicePlan, snapshot: Snapshot) -> ServiceStatus:
        return service_status(*service.workload, service.cluster_name, snapshot)

    def _waits_for(self, service: ServicePlan, status: ServiceStatus) -> bool:
        is_started_job = status.state is WorkloadState.STARTED and service.workload_kind == "Job"
        return not (is_started_job or status.state is WorkloadState.FAILED or status.is_done)

    def _is_running_job(self, service: ServicePlan, status: ServiceStatus) -> bool:
        """Return whether a Job that this deployment has changed runs."""
        is_job = status.state is WorkloadState.STARTED and service.workload_kind == "Job"
        return is_job and self._has_changed(service)

    def _only_runs(self, service: ServicePlan) -> bool:
        """Return whether a changed service counts as ready while it runs."""
        return (
            service.workload_kind not in ("Job", "CronJob")
            and not service.has_health_check
            and self._has_changed(service)
        )

    def _has_changed(self, service: ServicePlan) -> bool:
        """Return whether this deployment has changed a service."""
        return self.applied.get(service.name) != _BEFORE_ALL_ROUNDS

    def unready(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """The status of each service that is not ready."""
        return {name: status for name, status in self.statuses(snapshot).items() if not status.is_done}

    def statuses(self, snapshot: Snapshot | None) -> Mapping[str, ServiceStatus]:
        """How the services stand that have not failed."""
        return {
            service.name: service_status(*service.workload, service.cluster_name, snapshot or Snapshot())
            for service in self._unfailed_services()
        }
