"""Hold a service back until its dependencies meet their conditions.

Owns the hooks that Pulumi calls before it creates or changes a workload: never in a preview, and never for a workload
that stays as it is.
In a program, it also lets dependencies ask again for images that an earlier run could not pull.
Must not judge a condition: :mod:`composeplat.cluster.dependencies` does, for a wake-up too.

Hooks run on the program's own event loop, so they sleep there and never block it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pulumi

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import service_status
from composeplat.cluster.dependencies import DependencyState, dependency_cause, dependency_state, pod_to_probe
from composeplat.cluster.failure_causes import deletion_cause
from composeplat.cluster.probes import find_silent
from composeplat.cluster.pull_retries import replace_pod, waits_to_pull
from composeplat.cluster.snapshot import Object, Snapshot, has_ended, services_of
from composeplat.cluster.unreachable_nodes import unreachable_node
from composeplat.cluster.watching import Watcher
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.system.deadline import Deadline, poll_async

_POLL_INTERVAL_S = 0.15
#: Longer than `platform` waits for a silent cluster, as its message says more than one of Pulumi's.
_MAX_UNREACHABLE_S = 90.0
#: Set when Pulumi cancels the run of a program, which ends the waits of all its stacks.
PROGRAM_CANCELLED = threading.Event()


class DependencyFailed(Exception):
    """A dependency will not meet its condition."""


@dataclass(slots=True, kw_only=True)
class DependencyGate:
    """The dependencies of one deployment, and for how long its services wait for them."""

    plan: Plan
    access: Access
    watcher: Watcher
    deadline: Deadline
    existing: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Workloads from before the deploy: one that is replaced must be gone before its successor is created."""
    on_waiting: Callable[[str, str], None] = field(default=lambda _service, _message: None)
    """Called with a service and the reason it waits."""
    on_failure: Callable[[str, Cause], None] = field(default=lambda _service, _cause: None)
    """Called with a dependency that failed, and then with the service that is not created because of it."""
    before_create: Callable[[tuple[str, str]], None] | None = None
    """Called in a thread with kind and name of a workload that may be created now."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    restarts_deadline: bool = False
    """Let the time begin with each wait: before it, a program builds images and makes resources of its own."""
    retries_pulls: bool = False
    """Let pods of dependencies ask again for images that they could not pull; `platform` does so before its run."""
    hook_suffix: str = ""
    """The names of hooks are unique in a program; those of components are not, below parents of different types."""
    _services: dict[str, ServicePlan] = field(default_factory=dict)
    _edges: dict[str, list[Edge]] = field(default_factory=dict)
    """By the service that waits."""
    _retries: dict[str, asyncio.Future[int]] = field(default_factory=dict)
    """Dependency -> the replacement of its pods that wait for their image."""

    def __post_init__(self) -> None:
        self._services = {service.name: service for service in self.plan.services}
        for edge in self.plan.edges:
            self._edges.setdefault(edge.service, []).append(edge)

    def hooks(self, service: ServicePlan, prefix: str) -> pulumi.ResourceHookBinding | None:
        """Return the hooks of a service's workload; None if there is nothing to wait for."""
        edges = self._edges.get(service.name, [])
        may_be_replaced = self.existing.get(service.workload, False)
        if not edges and not may_be_replaced and self.before_create is None:
            return None

        async def before(args: pulumi.ResourceHookArgs) -> None:
            if self.restarts_deadline:
                self.deadline.restart()
            if may_be_replaced and not args.old_inputs:
                await self._wait_until_gone(service)
            for edge in edges:
                await self._wait_until_met(edge)
            if self.before_create is not None and not args.old_inputs:
                await asyncio.get_running_loop().run_in_executor(None, self.before_create, service.workload)
            if may_be_replaced and not args.old_inputs and service.workload_kind == "Job":
                await self._wait_until_ended(service)

        hook = pulumi.ResourceHook(f"{prefix}-wait-{service.cluster_name}{self.hook_suffix}", before)
        return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])

    async def _wait_until_met(self, edge: Edge) -> None:
        shown_by, state = self.watcher.request_round(), DependencyState()

        async def is_met() -> bool:
            nonlocal shown_by, state
            snapshot = self._snapshot_of(shown_by)
            if snapshot is not None and self.retries_pulls:
                shown_by = max(shown_by, await self._retry_pulls(edge.dependency, snapshot))
                snapshot = self._snapshot_of(shown_by)
            if snapshot is not None:
                state = await self._state(edge, snapshot)
                if state.cause is not None:
                    self.on_failure(edge.dependency, state.cause)
                if state.allows(required=edge.required):
                    return True
                if state.message:
                    self.on_waiting(edge.service, f"waits for {edge.dependency}: {state.message}")
            clause = state.clause or self._reason_to_stop()
            if clause:
                raise self._refuse(edge, clause)
            return False

        if not await poll_async(is_met, self.deadline, interval_s=_POLL_INTERVAL_S, name=edge.dependency):
            raise self._refuse(edge, self._late_clause(edge, state))

    def _late_clause(self, edge: Edge, state: DependencyState) -> str:
        """Return why the wait ends with its deadline, also where the cluster has shown nothing until then."""
        if not state.message and self.watcher.unreachable:
            return f"whose status can't be read: {self.watcher.unreachable}"
        seconds, reason = self.deadline.seconds_for(edge.dependency), f" ({state.message})" if state.message else ""
        return f"which is not {edge.condition.adjective} after {seconds:.0f} s{reason}"

    def _snapshot_of(self, shown_by: int) -> Snapshot | None:
        """Return the latest snapshot; None before the round that shows the cluster as it was when the wait began."""
        # Asked for in any case: the watcher starts with the first request.
        rounds, latest = self.watcher.rounds, self.watcher.latest
        return latest if rounds >= shown_by else None

    async def _state(self, edge: Edge, snapshot: Snapshot) -> DependencyState:
        dependency = self._services[edge.dependency]
        # It was applied before, as Pulumi creates it first.
        deleted = deletion_cause(*dependency.workload, snapshot)
        if deleted is not None:
            return DependencyState(clause=deleted.clause, cause=deleted)
        status = service_status(*dependency.workload, dependency.cluster_name, snapshot)
        ports, pod = dependency.ports_to_probe(edge.condition), pod_to_probe(status, edge.condition)
        if not ports or not pod:
            return dependency_state(status, edge.condition)
        asking = asyncio.get_running_loop().run_in_executor(None, self._find_silent, pod, ports)
        return dependency_state(status, edge.condition, await asking)

    async def _retry_pulls(self, dependency: str, snapshot: Snapshot) -> int:
        """Replace the pods of a dependency that an earlier run left without their image, once for all that wait for it.

        Return the first round that shows it; 0 if no pod was replaced.
        """
        if dependency not in self._retries:
            name = self._services[dependency].cluster_name
            waiting = [pod for pod in snapshot.pods if name in services_of(pod) and waits_to_pull(pod)]
            self._retries[dependency] = asyncio.ensure_future(asyncio.to_thread(self._replace, waiting))
        return await self._retries[dependency]

    def _replace(self, pods: list[Object]) -> int:
        if not pods:
            return 0
        with Api(self.access) as api:
            for pod in pods:
                replace_pod(api, pod)
        return self.watcher.request_round()

    def _reason_to_stop(self) -> str:
        """Return why the wait for a dependency ends before its deadline, as a clause; empty while it lasts."""
        is_cancelled = self.cancelled.is_set()
        if self.watcher.unreachable:
            is_over = is_cancelled or time.monotonic() - self.watcher.unreachable_since > _MAX_UNREACHABLE_S
            return f"whose status can't be read: {self.watcher.unreachable}" if is_over else ""
        return "which is not waited for any more: interrupted" if is_cancelled else ""

    def _refuse(self, edge: Edge, clause: str) -> DependencyFailed:
        """Report the cause as data, and return the error that makes Pulumi skip the workload."""
        cause = dependency_cause(edge.dependency, clause)
        self.on_failure(edge.service, cause)
        return DependencyFailed(f"{edge.service} {cause.message}")

    def _find_silent(self, pod: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        with Api(self.access) as api:
            return find_silent(api, self.plan.namespace, pod, ports)

    async def _wait_until_gone(self, service: ServicePlan) -> None:
        """Wait until the old workload is gone: an object that is being deleted accepts no changes."""

        def is_left(snapshot: Snapshot) -> bool:
            workload = snapshot.workloads.get(service.workload)
            return workload is not None and "deletionTimestamp" in workload["metadata"]

        await self._wait_while(is_left, service, "waits until its old workload is gone")

    async def _wait_until_ended(self, service: ServicePlan) -> None:
        """Wait for the pods of an old Job: its program must not run twice at once.

        Those of other kinds have the same names, or are replaced by the workload. A node that is gone ends none.
        """

        def is_left(snapshot: Snapshot) -> bool:
            return any(_runs_for(pod, service.workload) for pod in snapshot.pods)

        await self._wait_while(is_left, service, "waits until its old pods have ended")

    async def _wait_while(self, is_left: Callable[[Snapshot], bool], service: ServicePlan, text: str) -> None:
        shown_by = self.watcher.request_round()

        async def is_over() -> bool:
            snapshot = self._snapshot_of(shown_by)
            if snapshot is not None:
                if not is_left(snapshot):
                    return True
                self.on_waiting(service.name, text)
            return self.cancelled.is_set()

        await poll_async(is_over, self.deadline, interval_s=_POLL_INTERVAL_S)


def _runs_for(pod: Object, workload: tuple[str, str]) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    is_its = any((owner["kind"], owner["name"]) == workload for owner in owners)
    return is_its and not has_ended(pod) and not unreachable_node(pod)
