"""Sleep: scale the workloads of an environment to zero, and up again in the order of their dependencies.

Owns the annotation that records the previous number of pods on each workload. Scaling up removes every trace of it.
Must not know Pulumi: sleep neither reads nor changes the state.
One request sets the replicas and the annotation, so that a kill at any moment leaves a workload awake or recorded.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, service_status
from composeplat.cluster.dependencies import dependency_cause, dependency_state, pod_to_probe
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.probes import find_silent
from composeplat.cluster.snapshot import (
    TEMPLATE_GENERATION,
    WORKLOAD_KINDS,
    Object,
    condition_of,
    has_ended,
    service_of,
)
from composeplat.cluster.watching import Watcher, environment_selector
from composeplat.codes.causes import CauseCode
from composeplat.compose.check_extensions import SCALED_KINDS
from composeplat.engine.dev_workloads import is_dev_workload, read_replicas, replicas_patch
from composeplat.engine.monitor import Monitor
from composeplat.engine.preflight import KINDS, Key, LiveState, api_path, belongs_to
from composeplat.names import ASLEEP_ANNOTATION
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.progress import Phase
from composeplat.system.deadline import Deadline

_TRIES = 10
_POLL_INTERVAL_S = 0.15
#: Others may write the annotation, and Python parses no number of any length.
_MAX_DIGITS = 9
_ENDED = ("Complete", "Failed", "FailureTarget")


def remembered_replicas(head: Object) -> int | None:
    """The number of pods of a workload before sleep; none for a workload that is awake."""
    text = (head["metadata"].get("annotations") or {}).get(ASLEEP_ANNOTATION)
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 1


def sleeping_workloads(live_state: LiveState, environment: str) -> dict[Key, int]:
    """The sleeping workloads of an environment, each with its number of pods before sleep."""
    found = {
        key: remembered_replicas(head)
        for key, head in live_state.object_metadata.items()
        if key[0] in WORKLOAD_KINDS and belongs_to(head, environment) and not is_dev_workload(head)
    }
    return {key: count for key, count in found.items() if count is not None}


def scaled_down_by_others(plan: Plan, workloads: Mapping[Key, Object]) -> list[str]:
    """Name the services without pods that no `sleep` has scaled down, and that have pods in the file."""
    planned = {
        (desired.kind, desired.name): desired.manifest for desired in plan.objects if desired.kind in SCALED_KINDS
    }
    return [
        service.name
        for service in plan.services
        if (found := workloads.get(service.workload)) is not None
        and service.workload in planned
        and remembered_replicas(found) is None
        and read_replicas(found) == 0 < read_replicas(planned[service.workload])
    ]


def sleeping_workloads_of(plan: Plan, live_state: LiveState, services: Collection[str]) -> list[Key]:
    """The sleeping workloads of some services of a plan."""
    workloads = {service.workload for service in plan.services if service.name in services}
    return [key for key in sleeping_workloads(live_state, plan.environment) if key in workloads]


def can_sleep(workload: Object) -> bool:
    """Return whether a workload has pods to remove: a finished Job has none, nor has a workload without replicas."""
    if "deletionTimestamp" in workload["metadata"] or read_replicas(workload) == 0:
        return False
    return not any(condition_of(workload, kind) for kind in _ENDED)


def read_workloads(api: Api, plan: Plan) -> dict[Key, Object]:
    """Read the workloads of an environment, except dev workloads."""
    found = {}
    for kind in WORKLOAD_KINDS:
        path = kind_path(KINDS[kind], kind, plan.namespace) + environment_selector(plan.environment)
        for item in _listed(api, path, is_needed=kind in plan.workload_kinds):
            if belongs_to(item, plan.environment) and not is_dev_workload(item):
                found[kind, str(item["metadata"]["name"])] = {**item, "kind": kind}
    return found


def _listed(api: Api, path: str, *, is_needed: bool) -> list[Object]:
    """List objects; of a kind that the plan does not have, none if they may not be listed."""
    try:
        return api.items(path)
    except ApiError as error:
        if is_needed or error.status != http.client.FORBIDDEN:
            raise
        return []


def running_pods(pods: Iterable[Object], environment: str, but: Collection[str]) -> list[Object]:
    """Return the pods of an environment that have not ended, except those of some services, by cluster name."""
    return [
        pod
        for pod in pods
        if belongs_to(pod, environment)
        # One-off pods are of no service.
        and service_of(pod) not in ("", *but)
        and not has_ended(pod)
    ]


def scale_down(api: Api, namespace: str, key: Key, replicas: int) -> None:
    change = {"metadata": {"annotations": {ASLEEP_ANNOTATION: str(replicas)}}, **replicas_patch(key[0], 0)}
    api.patch(api_path(key[0], namespace, key[1]), change)


def scale_up(api: Api, namespace: str, key: Key, replicas: int) -> None:
    """Scale a workload up, unless someone else has, and remove every trace of its sleep."""
    path = api_path(key[0], namespace, key[1])
    change: Object = {"metadata": {"annotations": {ASLEEP_ANNOTATION: None}}}
    if replicas and read_replicas(api.get(path)) == 0:
        change |= replicas_patch(key[0], replicas)
    api.patch(path, change)
    remove_scaling_owner(api, path)


def remove_sleep_mark(api: Api, namespace: str, key: Key, *, is_certain: bool) -> None:
    """Remove the annotation from a workload that something else scaled up."""
    path = api_path(key[0], namespace, key[1])
    live = api.find(path)
    if live is not None and remembered_replicas(live) is not None and (is_certain or read_replicas(live)):
        api.patch(path, {"metadata": {"annotations": {ASLEEP_ANNOTATION: None}}})
        remove_scaling_owner(api, path)


def remove_scaling_owner(api: Api, path: str) -> None:
    """Remove the field manager that owns the replicas: it would be a conflict for plain Pulumi."""
    edit_managed_fields(api, path, lambda fields: [entry for entry in fields if not is_sleep_entry(entry)])


def edit_managed_fields(api: Api, path: str, edit: Callable[[list[Object]], list[Object]]) -> None:
    """Change who owns the fields of an object, unless nobody would be left."""
    for _ in range(_TRIES):
        live = api.get(path)
        fields = live["metadata"].get("managedFields") or []
        kept = edit(fields)
        if not kept or kept == fields:
            return
        version = live["metadata"]["resourceVersion"]
        try:
            api.patch(path, {"metadata": {"managedFields": kept, "resourceVersion": version}})
        except ApiError as error:
            # A controller has changed the workload since it was read.
            if error.status != http.client.CONFLICT:
                raise


def is_sleep_entry(entry: Object) -> bool:
    """Return whether an entry of the managed fields owns nothing but the fields that sleep sets."""
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
    metadata = fields.get("f:metadata", {})
    spec = fields.get("f:spec", {})
    return (
        set(fields) <= {"f:spec", "f:metadata"}
        and set(spec) <= {"f:replicas", "f:suspend", "f:template"}
        and ("f:template" not in spec or _is_of_node_selector(spec["f:template"]))
        and set(metadata) <= {"f:annotations"}
        and set(metadata.get("f:annotations", {})) <= {".", f"f:{ASLEEP_ANNOTATION}", f"f:{TEMPLATE_GENERATION}"}
    )


def _is_of_node_selector(template: Mapping[str, Any]) -> bool:
    return set(template) == {"f:spec"} and set(template["f:spec"]) == {"f:nodeSelector"}


@dataclass(slots=True, kw_only=True)
class WakeUp:
    """Scales services up, or starts them in another way, each as soon as its dependencies meet their conditions."""

    plan: Plan
    api: Api
    monitor: Monitor
    watcher: Watcher
    deadline: Deadline
    check: Callable[[], None]
    """Called regularly; raises if the wake-up can't continue."""
    asleep: dict[str, tuple[Key, int]]
    """Service -> its workload, and its number of pods before sleep."""
    start: Callable[[Key, int], None] | None = None
    """Starts a workload in another way than by scaling it up."""
    done: str = "woken"
    held: str = "stays asleep"
    _services: dict[str, ServicePlan] = field(default_factory=dict)
    _begun: int = 0

    def run(self, *, in_order: bool) -> None:
        """Wake all services, or those whose dependencies meet their conditions; the others are failures.

        Each service has a deadline of its own, and one that is late fails while the wait for the others lasts.
        """
        self._services = {service.name: service for service in self.plan.services}
        self._begun = self.watcher.request_round()
        while self.asleep:
            for name in [service for service in self._services if service in self.asleep]:
                if not in_order or self._may_wake(name):
                    self._wake(name)
            held = {name for name in self.asleep if name in self.monitor.causes}
            if held == set(self.asleep):
                return
            for name in self.asleep.keys() - held:
                if self.deadline.has_passed_for(name):
                    message = f"still waits after {self.deadline.seconds_for(name):.0f} s, and {self.held}"
                    cause = Cause(code=CauseCode.TIMEOUT, message=message, hint="give it more time with --timeout")
                    self.monitor.fail(name, cause)
            self.check()
            time.sleep(_POLL_INTERVAL_S)

    def _wake(self, name: str) -> None:
        key, replicas = self.asleep.pop(name)
        if self.start:
            self.start(key, replicas)
        else:
            scale_up(self.api, self.plan.namespace, key, replicas)
        self.monitor.applied[name] = self.watcher.request_round()
        self.monitor.emit(name, Phase.WAITING, self.done)

    def _may_wake(self, name: str) -> bool:
        if name in self.monitor.causes:
            return False
        return all(self._is_met(edge) for edge in self.plan.edges if edge.service == name)

    def _is_met(self, edge: Edge) -> bool:
        dependency = self._services[edge.dependency]
        owner = self._owner(dependency)
        if owner in self.asleep:
            cause = self.monitor.causes.get(owner)
            if cause is not None and edge.required:
                self._hold(edge, f"which {self.held}")
            return cause is not None and not edge.required
        rounds, snapshot = self.watcher.rounds, self.watcher.latest
        # An older snapshot shows the dependency before it was woken.
        if snapshot is None or rounds < self.monitor.applied.get(owner, self._begun):
            return False
        status = service_status(*dependency.workload, dependency.cluster_name, snapshot)
        if status.state is WorkloadState.ABSENT:
            # The dependency is not deployed, so there is nothing to wait for.
            return True
        state = dependency_state(status, edge.condition, self._silent_ports(dependency, edge, status))
        if state.cause is not None:
            self.monitor.fail(edge.dependency, state.cause)
        if state.clause and edge.required:
            self._hold(edge, state.clause)
        elif state.message:
            self.monitor.emit_waiting(edge.service, f"waits for {edge.dependency}: {state.message}")
        return state.allows(required=edge.required)

    def _owner(self, service: ServicePlan) -> str:
        """The service whose pods a service runs in."""
        if not service.pod_of:
            return service.name
        return next((s.name for s in self._services.values() if s.cluster_name == service.pod_of), service.name)

    def _hold(self, edge: Edge, why: str) -> None:
        self.monitor.fail(edge.service, dependency_cause(edge.dependency, why))

    def _silent_ports(self, dependency: ServicePlan, edge: Edge, status: ServiceStatus) -> tuple[int, ...]:
        """The ports of which one should answer, and none does."""
        ports, pod = dependency.ports_to_probe(edge.condition), pod_to_probe(status, edge.condition)
        return find_silent(self.api, self.plan.namespace, pod, ports) if pod else ()


def service_names(plan: Plan, keys: Collection[Key]) -> list[str]:
    """The services in the pods of workloads; a workload that has left the definition keeps its own name."""
    names: dict[str, list[str]] = {}
    for service in plan.services:
        names.setdefault(service.workload_name, []).append(service.name)
    return [name for key in keys for name in names.get(key[1], [key[1]])]


def by_service(plan: Plan, counts: Mapping[Key, int]) -> dict[str, tuple[Key, int]]:
    """Of workloads and their numbers of pods: the service that a workload is of -> both.

    The services that run in its pods are left out: their workload wakes when the dependencies of its own service allow.
    """
    return {
        service.name: (service.workload, counts[service.workload])
        for service in plan.services
        if not service.pod_of and service.workload in counts
    }
