"""Newer images of services whose pull policy has a time: a deploy replaces their pods, once those are old enough.

Owns which pods these are. A pod of such a service asks the registry when it starts, so that its age is that of its
image, and nothing else has to be recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime

from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object, container_statuses, has_ended, service_of
from composeplat.cluster.watching import pods_path
from composeplat.engine.pod_replacement import replace_pods
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.registry.image_config import READ_ERRORS, TIMEOUT_S, ImageConfig, RegistryAccess
from composeplat.system.deadline import Deadline

_ENDING = ("Job", "CronJob")


def update_images(stack: Stack, api: Api, plan: Plan, chosen: Collection[str]) -> None:
    """Replace the pods of services whose image is older than its policy allows, and newer in its registry."""
    timed = [s for s in plan.services if s.name in chosen and s.pull_period_s is not None and _runs_on(s)]
    if not timed:
        return
    pods = api.items(pods_path(plan.namespace, plan.environment))
    alive = [pod for pod in pods if belongs_to(pod, plan.environment) and not has_ended(pod)]
    # The times of pods are by the clocks of the cluster.
    now = datetime.fromtimestamp(api.server_time, UTC)
    for service in timed:
        old = list(_old_digests(service, alive, now))
        newest = _newest(stack, str(service.image)) if old else ""
        kind, name = service.workload
        # A service whose kind of workload changes gets new pods anyway.
        live = api.find(api_path(kind, plan.namespace, name)) if newest else None
        if live is not None and any(digest != newest for digest in old):
            stack.note(f"{service.name}: its image has changed in the registry, and its pods are replaced")
            replace_pods(api, plan.namespace, plan.environment, {**live, "kind": kind})


def _runs_on(service: ServicePlan) -> bool:
    return service.workload_kind not in _ENDING and isinstance(service.image, str)


def _old_digests(service: ServicePlan, pods: Iterable[Object], now: datetime) -> Iterator[str]:
    """Yield the digests of the images that a service's pods have had for longer than its policy allows."""
    for pod in pods:
        started = pod.get("status", {}).get("startTime")
        if service_of(pod) != service.workload_name or not started:
            continue
        age = (now - datetime.fromisoformat(started)).total_seconds()
        if service.pull_period_s is not None and age >= service.pull_period_s:
            yield from (
                status["imageID"].rpartition("@")[2]
                for status in container_statuses(pod)
                if status["name"] == service.cluster_name and "@" in status.get("imageID", "")
            )


def _newest(stack: Stack, image: str) -> str:
    """Read the digest that the registry has now; empty if it does not answer."""
    try:
        return ImageConfig(image, RegistryAccess({}, stack.variables), Deadline(TIMEOUT_S)).digest()
    except READ_ERRORS:
        stack.note(f"the registry of image '{image}' does not answer: its pods stay")
        return ""
