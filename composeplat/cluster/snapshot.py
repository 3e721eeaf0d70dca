"""The objects of a namespace at one moment, and how their fields are read.

Owns the type of an object of the API, and how pods, their containers and their owners are found in objects.
Must not judge them: :mod:`~composeplat.cluster.conditions` and :mod:`~composeplat.cluster.failure_causes` do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from composeplat.names import NO_NODE_LABEL, OWN_CONTAINER_PREFIX, RUN_LABEL, SERVICE_LABEL, SERVICES_ANNOTATION

#: The API server sets it on a DaemonSet whose template changes.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

#: The kinds with a pod template that an environment can have, each with its version of the API.
WORKLOAD_KINDS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}

Object = dict[str, Any]
"""An object of the Kubernetes API, or a part of one."""
T = TypeVar("T")

#: Of a Deployment and of its ReplicaSets.
_REVISION = "deployment.kubernetes.io/revision"
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True)
class Snapshot:
    """The objects of one environment in its namespace."""

    workloads: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    """By kind and name."""
    replica_sets: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    events: list[Object] = field(default_factory=list)
    age: Callable[[str], float] = field(default=lambda _: 0.0)
    """For how many seconds a condition has been seen, by a key; the first call starts the count."""
    time: float = 0.0
    """When it was made by the clock of the API server, in seconds since 1970; 0 if that is not known."""
    has_autoscaler: bool | None = False
    """Whether the cluster has an autoscaler; None if that can't be read."""
    _found: dict[Callable[[Snapshot], Any], Any] = field(init=False, default_factory=dict, compare=False)

    def once(self, find: Callable[[Snapshot], T]) -> T:
        """Return what a function finds in this snapshot; it is called once, as each of a thousand services asks."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    def age_of(self, uid: str) -> float:
        """For how many seconds a pod or claim has been there; 0 of anything else."""
        created = self.once(_creation_times).get(uid)
        return self.time - created if created else 0.0

    @property
    def unready_pods(self) -> list[Object]:
        """The pods that are neither ready nor completed."""
        return self.once(_unready_pods)

    def pods_of(self, uid: str) -> list[Object]:
        """The pods of an owner."""
        return self.once(_pods_by_owner).get(uid, [])

    def pod(self, name: str) -> Object | None:
        return self.once(_pods_by_name).get(name)

    def claim(self, name: str) -> Object | None:
        return self.once(_claims_by_name).get(name)

    def replica_sets_of(self, uid: str) -> list[Object]:
        return self.once(_replica_sets_by_owner).get(uid, [])

    def pods_of_all_revisions(self, workload: Object) -> list[Object]:
        """Return the pods of a workload and of its ReplicaSets."""
        uid = workload["metadata"]["uid"]
        owners = [uid, *(found["metadata"]["uid"] for found in self.replica_sets_of(uid))]
        return [pod for owner in owners for pod in self.pods_of(owner)]

    def current_replica_sets(self, workload: Object) -> list[Object]:
        """Return the ReplicaSets of the current revision of a Deployment."""
        owned = self.replica_sets_of(workload["metadata"]["uid"])
        return [found for found in owned if _revision_of(found) == _revision_of(workload)]

    def events_of(self, uid: str) -> list[Object]:
        return self.once(_events_by_object).get(uid, [])


def _unready_pods(snapshot: Snapshot) -> list[Object]:
    return [pod for pod in snapshot.pods if not is_ready_or_completed(pod)]


def _pods_by_owner(snapshot: Snapshot) -> dict[str, list[Object]]:
    return _indexed(snapshot.pods, owner_uid)


def _pods_by_name(snapshot: Snapshot) -> dict[str, Object]:
    return {pod["metadata"]["name"]: pod for pod in snapshot.pods}


def _claims_by_name(snapshot: Snapshot) -> dict[str, Object]:
    return {claim["metadata"]["name"]: claim for claim in snapshot.claims}


def _replica_sets_by_owner(snapshot: Snapshot) -> dict[str, list[Object]]:
    return _indexed(snapshot.replica_sets, owner_uid)


def _events_by_object(snapshot: Snapshot) -> dict[str, list[Object]]:
    return _indexed(snapshot.events, lambda event: event.get("involvedObject", {}).get("uid", ""))


def has_ending_pods(snapshot: Snapshot) -> bool:
    """Return whether pods on nodes are being deleted, which frees what they have."""
    return any("deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName") for pod in snapshot.pods)


def _indexed(objects: Iterable[Object], key: Callable[[Object], str]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for item in objects:
        found.setdefault(key(item), []).append(item)
    return found


def _revision_of(item: Object) -> object:
    return item["metadata"].get("annotations", {}).get(_REVISION)


def owner_uid(item: Object) -> str:
    return next((o["uid"] for o in item["metadata"].get("ownerReferences") or [] if o.get("controller")), "")


def pod_names(pods: list[Object]) -> tuple[str, ...]:
    return tuple(pod["metadata"]["name"] for pod in pods)


def is_on_no_node(workload: Object) -> bool:
    """Return whether the pods of a DaemonSet need a node that is none: it has no number of pods that could be 0."""
    return NO_NODE_LABEL in (workload["spec"].get("template", {}).get("spec", {}).get("nodeSelector") or {})


def without_no_node(spec: Object) -> Object:
    """Return the spec of a pod without the fields that keep it from all nodes."""
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key != NO_NODE_LABEL}
    rest = {key: value for key, value in spec.items() if key != "nodeSelector"}
    return {**rest, "nodeSelector": selector} if selector else rest


def main_container(pod: Object) -> str:
    """The name of the container of a pod's service; the first container may be one that others added."""
    return str(container_of(pod["spec"], service_of(pod))["name"])


def container_statuses(pod: Object) -> list[Object]:
    """The status of the containers, those of services first: the kubelet sorts them by name, with those of others."""
    found: list[Object] = pod.get("status", {}).get("containerStatuses") or []
    return sorted(found, key=lambda status: status["name"] not in services_of(pod)) if len(found) > 1 else found


def _own_statuses(pod: Object) -> list[Object]:
    """The status of the containers of services, without those that others added; all where none is of a service."""
    found = container_statuses(pod)
    return [status for status in found if status["name"] in services_of(pod)] or found


def with_status_of(pod: Object, container: str) -> Object:
    """Return a pod with the status of one container: others may be of other services, or added by a service mesh."""
    statuses = [status for status in container_statuses(pod) if status["name"] == container]
    return {**pod, "status": {**pod.get("status", {}), "containerStatuses": statuses}}


def init_container_statuses(pod: Object) -> list[Object]:
    """The status of the containers that run before the others."""
    found: list[Object] = pod.get("status", {}).get("initContainerStatuses") or []
    return found


def logged_init_statuses(pod: Object) -> list[Object]:
    """The status of those that may write what someone wants to read: hooks, and what others added."""
    return [status for status in init_container_statuses(pod) if not status["name"].startswith(OWN_CONTAINER_PREFIX)]


def is_init_container(pod: Object, container: str) -> bool:
    return any(found["name"] == container for found in pod["spec"].get("initContainers") or ())


def service_of(pod: Object) -> str:
    """The cluster name of a pod's service."""
    return _label(pod, SERVICE_LABEL)


def services_of(pod: Object) -> tuple[str, ...]:
    """The cluster names of the services in a pod, which can be several."""
    listed = (pod["metadata"].get("annotations") or {}).get(SERVICES_ANNOTATION, "")
    return tuple(str(listed).split(",")) if listed else (service_of(pod),)


def others_in_pods(workload: Object) -> list[str]:
    """Return the other services in the pods of a workload, which have containers of their names."""
    spec = workload["spec"]["jobTemplate"]["spec"] if "jobTemplate" in workload["spec"] else workload["spec"]
    template = spec.get("template") or {}
    containers = {container["name"] for container in template.get("spec", {}).get("containers") or ()}
    listed = dict.fromkeys(services_of({"metadata": template.get("metadata") or {}}))
    return [service for service in listed if service != workload["metadata"]["name"] and service in containers]


def service_of_container(pod: Object, container: str) -> str:
    """The cluster name of the service that a container is of; one that others added counts as the pod's service."""
    return container if container in services_of(pod) else service_of(pod)


def is_of_others(pod: Object, container: str) -> bool:
    """Whether a container beside those of services is of none of them."""
    spec = pod["spec"]
    # Those that run beside the others may be among the init containers.
    beside = [found for found in spec.get("initContainers") or [] if found.get("restartPolicy") == "Always"]
    names = {str(found["name"]) for found in (*spec["containers"], *beside)}
    own = names.intersection(services_of(pod))
    return bool(own) and container in names - own


def container_of(spec: Object, service: str) -> Object:
    """The container of a service in the spec of a pod."""
    containers: list[Object] = spec["containers"]
    return next((found for found in containers if found["name"] == service), containers[0])


def statuses_of(pod: Object, service: str) -> list[Object]:
    """The status of the containers of a service in a pod."""
    found = container_statuses(pod)
    is_shared = len(services_of(pod)) > 1
    return [status for status in found if service_of_container(pod, status["name"]) == service] if is_shared else found


def run_service_of(pod: Object) -> str:
    """The cluster name of the service that a one-off pod was made from; empty for other pods."""
    return _label(pod, RUN_LABEL)


def _label(pod: Object, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def condition_of(item: Object, kind: str) -> Object | None:
    """Return the condition of a type if it is true."""
    conditions = item.get("status", {}).get("conditions") or []
    return next((found for found in conditions if (found["type"], found["status"]) == (kind, "True")), None)


def end_of_job(job: Object) -> Object | None:
    """Return the condition by which a Job has completed or failed."""
    return condition_of(job, "Complete") or condition_of(job, "Failed")


def is_ready(pod: Object) -> bool:
    return condition_of(pod, "Ready") is not None


def ready_since(pod: Object) -> datetime:
    """Return when a pod became ready, or ceased to be; the earliest time if it never was."""
    conditions = pod.get("status", {}).get("conditions") or []
    return max((parse_time(c.get("lastTransitionTime")) for c in conditions if c["type"] == "Ready"), default=_NEVER)


def _creation_times(snapshot: Snapshot) -> dict[str, float]:
    found = (item["metadata"] for item in (*snapshot.pods, *snapshot.claims))
    return {head["uid"]: parse_time(head.get("creationTimestamp")).timestamp() for head in found if "uid" in head}


def parse_time(text: str | None) -> datetime:
    """Parse a time of the API; without one, the earliest time."""
    return datetime.fromisoformat(text) if text else _NEVER


def is_completed(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Succeeded")


def is_ready_or_completed(pod: Object) -> bool:
    return is_ready(pod) or is_completed(pod)


def has_ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_running(pod: Object) -> bool:
    return any("running" in c.get("state", {}) for c in _own_statuses(pod)) or is_completed(pod)


def held_by_others(pod: Object) -> tuple[str, ...]:
    """The containers of others that keep a pod running although those of services have ended; empty if none does."""
    own = _own_statuses(pod)
    if not own or not all("terminated" in status.get("state", {}) for status in own):
        return ()
    return tuple(status["name"] for status in container_statuses(pod) if "running" in status.get("state", {}))


def last_termination(pod: Object) -> Object | None:
    for container in _own_statuses(pod):
        for state in (container.get("state", {}), container.get("lastState", {})):
            if state.get("terminated"):
                ended: Object = state["terminated"]
                return ended
    return None


def scheduling_failure(pod: Object) -> str | None:
    """Return the scheduler's message if no node can run a pod; None otherwise, and before it was tried."""
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or "")
    return None


def probe_failures(pod: Object, snapshot: Snapshot, container: str = "") -> list[Object]:
    """Return the events of failed readiness probes: of all containers, or of one; those that name none count too."""
    events = snapshot.events_of(pod["metadata"]["uid"])
    places = ("", f"spec.containers{{{container}}}")
    return [
        event
        for event in events
        if event.get("reason") == "Unhealthy"
        and "Readiness" in str(event.get("message", ""))
        and (not container or event["involvedObject"].get("fieldPath", "") in places)
    ]


def event_time(event: Object) -> str:
    """Return when an event happened last, as text that sorts; only some have fractions of a second."""
    series = event.get("series") or {}
    moments = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return re.sub(r"\.\d+", "", next((str(moment) for moment in moments if moment), ""))


def event_count(events: list[Object]) -> int:
    return sum(int(e.get("count") or e.get("series", {}).get("count") or 1) for e in events)
