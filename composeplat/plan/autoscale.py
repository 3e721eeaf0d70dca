"""The HorizontalPodAutoscaler of a service, which decides its number of pods.

Owns that the workload then has no number of its own: an apply would set it back.
"""

from __future__ import annotations

from composeplat.compose.extension_model import Resource, UsageTarget
from composeplat.compose.model import Service
from composeplat.compose.values import show_cpus, show_size
from composeplat.names import clean
from composeplat.plan.desired import DesiredObject, Manifest
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind


def replicas(service: Service) -> Manifest:
    """Return the field with the number of pods; empty if an autoscaler decides it."""
    return {} if service.extensions.autoscale else {"replicas": service.replicas}


def plan_autoscaler(service: Service, identity: Identity) -> list[DesiredObject]:
    """Plan the autoscaler, which comes after its workload."""
    autoscale = service.extensions.autoscale
    if autoscale is None:
        return []
    name = clean(service.name)
    manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": identity.service_metadata(name, name),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": service.workload_kind, "name": name},
            "minReplicas": autoscale.lowest,
            "maxReplicas": autoscale.highest,
            "metrics": [_metric(target) for target in autoscale.targets],
        },
    }
    workload = ResourceKey(ResourceKind.WORKLOAD, name)
    return [DesiredObject(key=ResourceKey(ResourceKind.AUTOSCALER, name), manifest=manifest, needs=(workload,))]


def _metric(target: UsageTarget) -> Manifest:
    if target.percent is not None:
        wanted: Manifest = {"type": "Utilization", "averageUtilization": target.percent}
    else:
        show = show_cpus if target.resource is Resource.CPU else show_size
        wanted = {"type": "AverageValue", "averageValue": show(target.amount or 0)}
    return {"type": "Resource", "resource": {"name": str(target.resource), "target": wanted}}
