"""Services under development, for a deploy: their own workloads have no pods while a dev workload replaces them.

Owns the labels of a dev workload, the plan without pods, and the kind that a service is deployed as.
Pure: objects and a plan come in, another plan goes out.
Must not create a dev workload: :mod:`composeplat.dev` does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, is_on_no_node, others_in_pods
from composeplat.engine.preflight import belongs_to
from composeplat.names import DEV_WORKLOAD_LABEL, LABEL_PREFIX, NO_NODE_LABEL
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.strategic_merge import merge
from composeplat.system.records import record

ORIGINAL_ANNOTATION = f"{LABEL_PREFIX}/up-original"
_SUSPENDED = ("Job", "CronJob")


@record(kw_only=True)
class OriginalWorkload:
    """The workload that a dev workload replaces, and its number of pods."""

    kind: str
    name: str
    replicas: int

    def to_text(self) -> str:
        return json.dumps({"kind": self.kind, "name": self.name, "replicas": self.replicas}, sort_keys=True)


def is_dev_workload(head: Object) -> bool:
    """Return whether an object belongs to development, and so to no plan."""
    return DEV_WORKLOAD_LABEL in (head["metadata"].get("labels") or {})


def dev_workloads_by_service(objects: Mapping[tuple[str, str], Object], environment: str) -> dict[str, str]:
    """Of objects by kind and name: the cluster name of a service under development -> its dev workload's name."""
    return {
        head["metadata"]["labels"][DEV_WORKLOAD_LABEL]: name
        for (kind, name), head in objects.items()
        if kind == "Deployment" and is_dev_workload(head) and belongs_to(head, environment)
    }


def ended_development(objects: Mapping[tuple[str, str], Object], plan: Plan) -> dict[str, str]:
    """The dev workloads whose service no plan has any more: its own objects, which they use, go with it."""
    planned = {service.cluster_name for service in plan.services}
    found = dev_workloads_by_service(objects, plan.environment)
    return {service: name for service, name in found.items() if service not in planned}


def as_deployed(service: ServicePlan, workloads: Mapping[tuple[str, str], Object]) -> ServicePlan:
    """The service with the kind and the pods that it has in the cluster: the definition may be of another deploy."""
    found = [key for key in workloads if key[1] == service.cluster_name]
    found = found or [
        key
        for key, workload in workloads.items()
        if service.cluster_name in others_in_pods(workload) and not is_dev_workload(workload)
    ]
    if not found or service.workload in found:
        return service
    kind, name = found[0]
    return replace(service, workload_kind=kind, pod_of="" if name == service.cluster_name else name)


def read_replicas(workload: Mapping[str, Any]) -> int:
    """The desired number of pods of a workload; one of a kind without such a number counts as one."""
    spec = workload["spec"]
    if workload["kind"] == "DaemonSet":
        return 0 if is_on_no_node(dict(workload)) else 1
    if workload["kind"] in _SUSPENDED:
        return 0 if spec.get("suspend") else 1
    return int(spec.get("replicas", 1))


def replicas_patch(kind: str, replicas: int) -> Object:
    """Return the patch that sets the number of pods of a workload."""
    if kind == "DaemonSet":
        selector = {NO_NODE_LABEL: None if replicas else "true"}
        return {"spec": {"template": {"spec": {"nodeSelector": selector}}}}
    return {"spec": {"suspend": replicas == 0}} if kind in _SUSPENDED else {"spec": {"replicas": replicas}}


def without_pods(plan: Plan, services: Collection[str]) -> Plan:
    """The plan with no pods for some services, by their cluster names."""
    return with_replicas(plan, dict.fromkeys(services, 0))


def with_replicas(plan: Plan, counts: Mapping[str, int]) -> Plan:
    """The plan with other numbers of pods for some services, by their cluster names."""

    def changed(desired: DesiredObject) -> DesiredObject:
        if desired.kind not in WORKLOAD_KINDS:
            return desired
        return replace(desired, manifest=merge(desired.manifest, replicas_patch(desired.kind, counts[desired.name])))

    services = tuple(
        replace(service, objects=tuple(map(changed, service.objects))) if service.cluster_name in counts else service
        for service in plan.services
    )
    return replace(plan, services=services)


def planned_original(plan: Plan, service: ServicePlan) -> OriginalWorkload:
    """What a dev workload of a service should remember, by the plan."""
    name = service.cluster_name
    return OriginalWorkload(kind=service.workload_kind, name=name, replicas=planned_replicas(plan, name))


def planned_replicas(plan: Plan, name: str) -> int:
    """The number of pods of a workload by the plan; one of no plan counts as one."""
    found = (
        desired.manifest
        for service in plan.services
        for desired in service.objects
        if desired.kind in WORKLOAD_KINDS and desired.name == name
    )
    return next(map(read_replicas, found), 1)


def workloads_without_pods(state: Mapping[str, Any], services: Collection[str]) -> dict[str, str]:
    """Of some services, those that the state has no pods for -> the URN of the workload."""
    found = {}
    for resource in state.get("resources") or []:
        manifest = resource.get("inputs") or {}
        name = str(manifest.get("metadata", {}).get("name"))
        is_workload = manifest.get("kind") in WORKLOAD_KINDS and not resource.get("delete")
        if is_workload and name in services and read_replicas(manifest) == 0:
            found[name] = str(resource["urn"])
    return found
