"""When a rollout is over: no service is waited for, and all have been ready for long enough.

Owns how long is long enough, and which services have to be looked at again for it: with a thousand of them, looking at
all whenever one becomes ready would take longer than what they do.
Must not wait, nor know what has failed or changed: :mod:`~composeplat.engine.monitor` says it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from composeplat.cluster.conditions import ServiceStatus, WorkloadState, service_status
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.engine.ready_pods import ReadyPods
from composeplat.plan.desired import ServicePlan
from composeplat.system.records import record

#: A deployment does not wait for the end of a Job, but reports one that fails within this time after its start.
_JOB_STABLE_S = 10.0
#: A service without a health check counts as ready while it runs. A crashing one runs for a moment too, and its node
#: reports once a second, so all have to stay ready for this time.
_STABLE_S = 1.5

HasChanged = Callable[[ServicePlan], bool]


@record(kw_only=True)
class _Ready:
    """What a snapshot shows in which no service is waited for: only time has to pass."""

    runs_jobs: bool
    job_pods: frozenset[str]
    only_runs: bool
    """Whether a service counts as ready because it runs."""
    pods: frozenset[str]
    """Those of such services."""


class RolloutEnd:
    def __init__(self) -> None:
        self._pods = ReadyPods()
        self._since: float | None = None
        """Since when no service is waited for."""
        self._awaited = ""
        """The service that was waited for last."""
        self._done: dict[str, Object | None] = {}
        """Service -> its workload as it was when it was not waited for. An object that stays is the same."""
        self._looked_at: tuple[Snapshot, Sequence[ServicePlan]] | None = None
        self._ready: _Ready | None = None
        """What was found in it."""

    def note(self, snapshot: Snapshot) -> None:
        """Note which pods are ready, also before anything is waited for."""
        self._pods.note(snapshot)

    def is_over(self, services: Sequence[ServicePlan], has_changed: HasChanged, snapshot: Snapshot) -> bool:
        """Return whether a rollout of services is over; ``has_changed`` says which this deployment has changed."""
        self.note(snapshot)
        if self._looked_at is None or self._looked_at[0] is not snapshot or self._looked_at[1] != services:
            self._looked_at, self._ready = (snapshot, services), self._find_ready(services, has_changed, snapshot)
        if self._ready is None:
            self._since = None
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        since = self._since

        def have_been_ready_for(names: frozenset[str]) -> float:
            return now - self._pods.all_since(names, snapshot, otherwise=since)

        return (not self._ready.runs_jobs or have_been_ready_for(self._ready.job_pods) >= _JOB_STABLE_S) and (
            not self._ready.only_runs or have_been_ready_for(self._ready.pods) >= _STABLE_S
        )

    def _find_ready(
        self, services: Sequence[ServicePlan], has_changed: HasChanged, snapshot: Snapshot
    ) -> _Ready | None:
        """Return what a snapshot shows if no service is waited for, else None."""
        # It is mostly the last awaited one that is not ready yet.
        for service in sorted(services, key=lambda service: service.name != self._awaited):
            workload = snapshot.workloads.get(service.workload)
            is_known = service.name in self._done and self._done[service.name] is workload
            if not is_known and self._waits_for(service, _status(service, snapshot)):
                return None
            self._done[service.name] = workload
        # A pod can be lost before its workload shows it, so the last look is at all of them.
        statuses = {service.name: _status(service, snapshot) for service in services}
        if any(self._waits_for(service, statuses[service.name]) for service in services):
            return None
        jobs = [s.name for s in services if has_changed(s) and _is_started_job(s, statuses[s.name])]
        running = [s.name for s in services if has_changed(s) and _only_runs(s)]
        return _Ready(
            runs_jobs=bool(jobs),
            job_pods=frozenset(pod for name in jobs for pod in statuses[name].pods),
            only_runs=bool(running),
            pods=frozenset(pod for name in running for pod in statuses[name].pods),
        )

    def _waits_for(self, service: ServicePlan, status: ServiceStatus) -> bool:
        if status.is_done or status.state is WorkloadState.FAILED or _is_started_job(service, status):
            return False
        self._awaited = service.name
        self._done.pop(service.name, None)
        return True


def _status(service: ServicePlan, snapshot: Snapshot) -> ServiceStatus:
    return service_status(*service.workload, service.cluster_name, snapshot)


def _is_started_job(service: ServicePlan, status: ServiceStatus) -> bool:
    return status.state is WorkloadState.STARTED and service.workload_kind == "Job"


def _only_runs(service: ServicePlan) -> bool:
    """Return whether a service counts as ready while it runs."""
    return service.workload_kind not in ("Job", "CronJob") and not service.has_health_check
