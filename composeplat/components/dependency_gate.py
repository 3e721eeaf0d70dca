"""Hold a service back until what it depends on meets its condition.

Owns the hooks that Pulumi calls before it creates or changes a service's workload: never in a preview, and never for a
workload that stays as it is.
Whether a condition is met is :mod:`composeplat.cluster.dependencies`' to say.

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
from composeplat.cluster.conditions import is_condition_met, workload_status
from composeplat.cluster.dependencies import DependencyState, dependency_state
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Watcher, probe_port
from composeplat.codes import CauseCode
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.system.deadline import Deadline

_TICK = 0.15
#: Longer than `platform` itself waits for a cluster that does not answer, as it has more to say of that.
_UNREACHABLE_FOR = 90.0


class DependencyFailed(Exception):
    """A dependency will not meet its condition."""


@dataclass(slots=True, kw_only=True)
class DependencyGate:
    """The waiting of one deployment."""

    plan: Plan
    access: Access
    watcher: Watcher
    deadline: Deadline
    existing: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Workloads that were there before: what is deleted to be made anew must be gone first."""
    told: Callable[[str, str], None] = field(default=lambda _service, _words: None)
    """Is told what a service waits for."""
    failed: Callable[[str, Cause], None] = field(default=lambda _service, _cause: None)
    """Is told why a dependency failed, and then why the service that waits for it is not made."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    _services: dict[str, ServicePlan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._services = {service.name: service for service in self.plan.services}

    def hooks(self, service: ServicePlan, prefix: str) -> pulumi.ResourceHookBinding | None:
        """The hooks of a service's workload; none where it waits for nothing and nothing can be in its way."""
        edges = [edge for edge in self.plan.edges if edge.service == service.name]
        in_the_way = self.existing.get(service.workload, False)
        if not edges and not in_the_way:
            return None

        async def before(args: pulumi.ResourceHookArgs) -> None:
            if in_the_way and not args.old_inputs:
                await self._until_gone(service)
            for edge in edges:
                await self._until_met(edge)

        hook = pulumi.ResourceHook(f"{prefix}-wait-{service.cluster_name}", before)
        return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])

    async def _until_met(self, edge: Edge) -> None:
        seen, state = self.watcher.rounds, DependencyState()
        while True:
            snapshot = self.watcher.latest
            # A view from before this moment may show the dependency as it was.
            if snapshot is not None and self.watcher.rounds > seen + 1:
                state = await self._state(edge, snapshot)
                if state.cause is not None:
                    self.failed(edge.dependency, state.cause)
                if state.is_met or (state.clause and not edge.required):
                    return
                self.told(edge.service, f"waits for {edge.dependency}: {state.message}")
            why = state.clause or self._why_not_any_more(edge, state.message)
            if why:
                raise self._refuse(edge, why)
            await asyncio.sleep(_TICK)

    async def _state(self, edge: Edge, snapshot: Snapshot) -> DependencyState:
        dependency = self._services[edge.dependency]
        standing = workload_status(dependency.workload_kind, dependency.cluster_name, snapshot)
        port = dependency.port_to_probe(edge.condition)
        if port is None or not standing.pods or not is_condition_met(standing, edge.condition):
            return dependency_state(standing, edge.condition)
        asked = asyncio.get_running_loop().run_in_executor(None, self._ask_port, standing.pods[0], port)
        return dependency_state(standing, edge.condition, port if await asked is False else None)

    def _why_not_any_more(self, edge: Edge, message: str) -> str:
        """Why a dependency is waited for no longer; empty where it is."""
        if self.cancelled.is_set():
            return "which is not waited for any more: interrupted"
        if self.watcher.unreachable and time.monotonic() - self.watcher.unreachable_since > _UNREACHABLE_FOR:
            return f"which can't be looked at: {self.watcher.unreachable}"
        if self.deadline.has_passed_for(edge.dependency):
            seconds = self.deadline.seconds_for(edge.dependency)
            return f"which is not {_ADJECTIVES[edge.condition]} after {seconds:.0f} s ({message})"
        return ""

    def _refuse(self, edge: Edge, why: str) -> DependencyFailed:
        """Note why a service is held back for good, as data: Pulumi knows it as a text of many lines only."""
        message = f"waits for {edge.dependency}, {why}"
        self.failed(edge.service, Cause(code=CauseCode.DEPENDENCY, message=message))
        return DependencyFailed(f"{edge.service} {message}")

    def _ask_port(self, pod: str, port: int) -> bool | None:
        with Api(self.access) as api:
            return probe_port(api, self.plan.namespace, pod, port)

    async def _until_gone(self, service: ServicePlan) -> None:
        """Wait until the workload that is being replaced is away: an object that is going takes no changes."""
        key = service.workload
        seen = self.watcher.rounds
        while not self.deadline.has_passed and not self.cancelled.is_set():
            snapshot = self.watcher.latest
            if snapshot is not None and self.watcher.rounds > seen + 1:
                found = snapshot.workloads.get(key)
                if found is None or "deletionTimestamp" not in found["metadata"]:
                    return
                self.told(service.name, "waits until the one before has ended")
            await asyncio.sleep(_TICK)


_ADJECTIVES = {
    "service_started": "started",
    "service_healthy": "healthy",
    "service_completed_successfully": "completed",
}
