"""The classes of Pulumi's Kubernetes SDK, by kind.

Owns when they are imported: on first use, since importing all takes seconds.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pulumi

from composeplat.plan.desired import Manifest

_CLASSES = {
    ("apps/v1", "DaemonSet"): "pulumi_kubernetes.apps.v1",
    ("apps/v1", "Deployment"): "pulumi_kubernetes.apps.v1",
    ("apps/v1", "StatefulSet"): "pulumi_kubernetes.apps.v1",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "pulumi_kubernetes.autoscaling.v2",
    ("batch/v1", "CronJob"): "pulumi_kubernetes.batch.v1",
    ("batch/v1", "Job"): "pulumi_kubernetes.batch.v1",
    ("networking.k8s.io/v1", "Ingress"): "pulumi_kubernetes.networking.v1",
    ("networking.k8s.io/v1", "NetworkPolicy"): "pulumi_kubernetes.networking.v1",
    ("v1", "ConfigMap"): "pulumi_kubernetes.core.v1",
    ("v1", "PersistentVolumeClaim"): "pulumi_kubernetes.core.v1",
    ("v1", "Secret"): "pulumi_kubernetes.core.v1",
    ("v1", "Service"): "pulumi_kubernetes.core.v1",
}


def register_object(name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Register an object with the class of its kind, else as a custom resource."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    rest = {_snake(key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    module = _CLASSES.get((version, kind))
    if module is None:
        custom: Any = import_module("pulumi_kubernetes.apiextensions").CustomResource
        custom_resource: pulumi.CustomResource = custom(name, api_version=version, kind=kind, opts=opts, **rest)
        return custom_resource
    typed: Any = getattr(import_module(module), kind)
    registered: pulumi.CustomResource = typed(name, opts=opts, **rest)
    return registered


def load_classes(versions_and_kinds: set[tuple[str, str]]) -> None:
    """Import classes early, while the process waits for something else."""
    for module in {_CLASSES[kind] for kind in versions_and_kinds if kind in _CLASSES}:
        import_module(module)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
