"""The annotation of a pod that changes with the pods of its dependencies, for ``depends_on.*.restart``.

Owns what "a changed dependency" is: another pod template, with the image that was built, and with variables and files
by their fingerprints. The dependent then has another template too, so Kubernetes replaces its pods, and
the deploy's order does that after those of the dependency.
It is apart from the pod templates because it needs those of other services.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from composeplat.names import LABEL_PREFIX
from composeplat.plan.desired import DesiredObject, Edge, Manifest, ServicePlan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.plan.templates import pod_template, with_pod_template
from composeplat.system.records import record

RESTARTS_ANNOTATION = f"{LABEL_PREFIX}/dependencies-hash"
_HASH_CHARS = 32


@record
class TemplatesHash:
    """The late value of a hash of pod templates, which have late values themselves."""

    templates: tuple[Manifest, ...]

    def __str__(self) -> str:
        return hash_text(json.dumps(self.templates, sort_keys=True, default=str))


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]


def add_restarts(services: Iterable[ServicePlan], edges: Iterable[Edge]) -> tuple[ServicePlan, ...]:
    """Add the annotation to services that restart with a dependency; each comes after its dependencies."""
    needed: dict[str, list[str]] = {}
    for edge in edges:
        if edge.restart:
            needed.setdefault(edge.service, []).append(edge.dependency)
    planned: dict[str, ServicePlan] = {}
    pods: dict[tuple[str, str], Manifest] = {}
    for service in services:
        # In a cycle, which is an error, a dependency comes later.
        before = [planned[name].workload for name in sorted(needed.get(service.name, ())) if name in planned]
        templates = tuple(pods[workload] for workload in dict.fromkeys(before) if workload in pods)
        planned[service.name] = _annotated(service, TemplatesHash(templates)) if templates else service
        pods.update((service.workload, template) for template in _templates(planned[service.name]))
    return tuple(planned.values())


def _templates(service: ServicePlan) -> list[Manifest]:
    """Return the pod template of a service; none if it runs in the pods of another."""
    return [pod_template(d.manifest) for d in service.objects if d.key.kind is ResourceKind.WORKLOAD]


def _annotated(service: ServicePlan, value: TemplatesHash) -> ServicePlan:
    return replace(service, objects=tuple(_with_value(desired, value) for desired in service.objects))


def _with_value(desired: DesiredObject, value: TemplatesHash) -> DesiredObject:
    if desired.key.kind is not ResourceKind.WORKLOAD:
        return desired
    template = pod_template(desired.manifest)
    annotations = {**template["metadata"].get("annotations", {}), RESTARTS_ANNOTATION: value}
    metadata = {**template["metadata"], "annotations": dict(sorted(annotations.items()))}
    return replace(desired, manifest=with_pod_template(desired.manifest, {**template, "metadata": metadata}))
