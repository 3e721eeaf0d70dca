"""An environment asleep: its workloads scaled to nothing, each remembering how many pods it had.

Owns the one mark of it, an annotation on each workload, and that nothing else is left of it once it is awake.
Must not know Pulumi: the state is not asked, and stays as it is.

Number and mark go in one request, so that a kill at any moment leaves each workload either awake or remembering.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, workload_status
from composeplat.cluster.dependencies import dependency_cause, dependency_state, pod_to_probe
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import service_of
from composeplat.cluster.watching import Watcher, environment_selector, probe_port
from composeplat.codes import CauseCode
from composeplat.engine.dev_workloads import WORKLOADS, is_dev_workload, read_replicas, replicas_patch
from composeplat.engine.monitor import Monitor
from composeplat.engine.preflight import KINDS, Key, LiveState, Object, api_path, belongs_to
from composeplat.names import OURS
from composeplat.plan.desired import Edge, Plan, ServicePlan
from composeplat.progress import Phase
from composeplat.system.deadline import Deadline

#: How many pods a workload had before it was put to sleep; a Job has one.
ASLEEP = f"{OURS}/asleep"
_TRIES = 10
_TICK = 0.15
_ENDED = ("Complete", "Failed", "FailureTarget")


def remembered(head: Object) -> int | None:
    """How many pods a workload had before it was put to sleep; none where it is awake."""
    text = (head["metadata"].get("annotations") or {}).get(ASLEEP)
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() else 1


def sleeping_workloads(live_state: LiveState, environment: str) -> dict[Key, int]:
    """The workloads of an environment that are asleep, and how many pods each had."""
    found = {
        key: remembered(head)
        for key, head in live_state.object_metadata.items()
        if key[0] in WORKLOADS and belongs_to(head, environment) and not is_dev_workload(head)
    }
    return {key: count for key, count in found.items() if count is not None}


def sleeping_workloads_of(plan: Plan, live_state: LiveState, services: Collection[str]) -> list[Key]:
    """Of some services of a plan, the workloads that are asleep."""
    workloads = {one.workload for one in plan.services if one.name in services}
    return [key for key in sleeping_workloads(live_state, plan.environment) if key in workloads]


def can_sleep(workload: Object) -> bool:
    """Say whether there is something to take away: a Job that has ended has no pods, nor has one of no replicas."""
    if "deletionTimestamp" in workload["metadata"] or read_replicas(workload) == 0:
        return False
    conditions = workload.get("status", {}).get("conditions") or []
    return not any(one["type"] in _ENDED and one["status"] == "True" for one in conditions)


def workloads_of(api: Api, namespace: str, environment: str) -> dict[Key, Object]:
    """The workloads of an environment, but for development containers."""
    found = {}
    for kind in WORKLOADS:
        for item in api.items(kind_path(KINDS[kind], kind, namespace) + environment_selector(environment)):
            if belongs_to(item, environment) and not is_dev_workload(item):
                found[kind, str(item["metadata"]["name"])] = {**item, "kind": kind}
    return found


def pods_left(api: Api, namespace: str, environment: str, but: Collection[str]) -> int:
    """How many pods of an environment have not ended, but for those of some services, by their cluster names."""
    pods = api.items(kind_path("v1", "Pod", namespace) + environment_selector(environment))
    return sum(
        belongs_to(pod, environment)
        and service_of(pod) not in but
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        for pod in pods
    )


def scale_down(api: Api, namespace: str, key: Key, replicas: int) -> None:
    change = {"metadata": {"annotations": {ASLEEP: str(replicas)}}, **replicas_patch(key[0], 0)}
    api.patch(api_path(key[0], namespace, key[1]), change)


def scale_up(api: Api, namespace: str, key: Key, replicas: int) -> None:
    """Give a workload its pods back, unless someone has given it some, and leave no sign that it was asleep."""
    path = api_path(key[0], namespace, key[1])
    change: Object = {"metadata": {"annotations": {ASLEEP: None}}}
    if replicas and read_replicas(api.get(path)) == 0:
        change |= replicas_patch(key[0], replicas)
    api.patch(path, change)
    forget_scaling(api, path)


def note_awake(api: Api, namespace: str, key: Key, *, surely: bool) -> None:
    """Take the mark from a workload that something else has woken."""
    path = api_path(key[0], namespace, key[1])
    live = api.find(path)
    if live is not None and remembered(live) is not None and (surely or read_replicas(live)):
        api.patch(path, {"metadata": {"annotations": {ASLEEP: None}}})
        forget_scaling(api, path)


def forget_scaling(api: Api, path: str) -> None:
    """Leave no owner of the number of pods behind: plain Pulumi would be told of a conflict."""
    for _ in range(_TRIES):
        live = api.get(path)
        fields = live["metadata"].get("managedFields") or []
        kept = [one for one in fields if not is_of_sleep(one)]
        if not kept or kept == fields:
            return
        version = live["metadata"]["resourceVersion"]
        try:
            api.patch(path, {"metadata": {"managedFields": kept, "resourceVersion": version}})
        except ApiError as error:
            # Its controller has written meanwhile.
            if error.status != http.client.CONFLICT:
                raise


def is_of_sleep(entry: Object) -> bool:
    """Say whether an entry of an object's managed fields owns nothing but what sleeping and waking set."""
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
    metadata = fields.get("f:metadata", {})
    return (
        set(fields) <= {"f:spec", "f:metadata"}
        and set(fields.get("f:spec", {})) <= {"f:replicas", "f:suspend"}
        and set(metadata) <= {"f:annotations"}
        and set(metadata.get("f:annotations", {})) <= {".", f"f:{ASLEEP}"}
    )


@dataclass(slots=True, kw_only=True)
class WakeUp:
    """Wake services, each as soon as what it depends on meets its condition."""

    plan: Plan
    api: Api
    monitor: Monitor
    watcher: Watcher
    deadline: Deadline
    check: Callable[[], None]
    """Is called now and then; it raises where there is no going on."""
    asleep: dict[str, tuple[Key, int]]
    """Service -> its workload, and how many pods that had."""
    _services: dict[str, ServicePlan] = field(default_factory=dict)
    _begun: int = 0

    def run(self, *, in_order: bool) -> None:
        """Wake all, or all whose dependencies come to what they must; those that don't wake are told as failures."""
        self._services = {service.name: service for service in self.plan.services}
        self._begun = self.watcher.rounds
        while self.asleep:
            for name in [one for one in self._services if one in self.asleep]:
                if not in_order or self._may_wake(name):
                    self._wake(name)
            held = {name for name in self.asleep if name in self.monitor.causes}
            if held == set(self.asleep):
                return
            for name in self.asleep.keys() - held:
                if self.deadline.has_passed_for(name):
                    words = f"still waits after {self.deadline.seconds_for(name):.0f} s, and sleeps on"
                    cause = Cause(code=CauseCode.TIMEOUT, message=words, hint="give it longer with --timeout")
                    self.monitor.fail(name, cause)
            self.check()
            time.sleep(_TICK)

    def _wake(self, name: str) -> None:
        key, replicas = self.asleep.pop(name)
        scale_up(self.api, self.plan.namespace, key, replicas)
        self.monitor.applied[name] = self.watcher.rounds
        self.monitor.emit(name, Phase.WAITING, "woken")

    def _may_wake(self, name: str) -> bool:
        if name in self.monitor.causes:
            return False
        return all(self._is_met(edge) for edge in self.plan.edges if edge.service == name)

    def _is_met(self, edge: Edge) -> bool:
        if edge.dependency in self.asleep:
            cause = self.monitor.causes.get(edge.dependency)
            if cause is not None and edge.required:
                self._hold(edge, "which sleeps on")
            return cause is not None and not edge.required
        snapshot, rounds = self.watcher.latest, self.watcher.rounds
        # A view from before it was woken shows it as it was.
        if snapshot is None or rounds <= self.monitor.applied.get(edge.dependency, self._begun) + 1:
            return False
        dependency = self._services[edge.dependency]
        standing = workload_status(dependency.workload_kind, dependency.cluster_name, snapshot)
        if standing.state is WorkloadState.ABSENT:
            # It is not deployed, so there is nothing to wait for.
            return True
        state = dependency_state(standing, edge.condition, self._silent_port(dependency, edge, standing))
        if state.cause is not None:
            self.monitor.fail(edge.dependency, state.cause)
        if state.clause and edge.required:
            self._hold(edge, state.clause)
        elif state.message:
            self.monitor.emit(edge.service, Phase.WAITING, f"waits for {edge.dependency}: {state.message}")
        return state.allows(required=edge.required)

    def _hold(self, edge: Edge, why: str) -> None:
        self.monitor.fail(edge.service, dependency_cause(edge.dependency, why))

    def _silent_port(self, dependency: ServicePlan, edge: Edge, standing: ServiceStatus) -> int | None:
        """The port that has to answer and does not; none where none has to, or it does."""
        port = dependency.port_to_probe(edge.condition)
        pod = pod_to_probe(standing, edge.condition)
        if port is None or not pod:
            return None
        return port if probe_port(self.api, self.plan.namespace, pod, port) is False else None


def services_of(plan: Plan, keys: Collection[Key]) -> dict[Key, str]:
    """Workload -> the service it is of; one that the definition does not have any more goes by its own name."""
    known = {one.cluster_name: one.name for one in plan.services}
    return {key: known.get(key[1], key[1]) for key in keys}
