"""The registration of an object with Pulumi: its type, and which of its fields are secrets in the state.

Owns two ways to the same resource. With the classes of Pulumi's Kubernetes SDK, a program can read the outputs of an
object by their names. A deploy reads none, and importing the classes would take a fifth of its processor time, so it
registers the same type with the same inputs without them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:  # a start of the provider for other languages needs no plan
    from composeplat.plan.desired import Manifest

CLASSES = {
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
#: An object as a resource, for programs: of the class of its kind, with its outputs as attributes. Which class it is,
#: is known as the program runs.
KubernetesObject = Any
_SECRET = ("v1", "Secret")
_SECRET_FIELDS = ("data", "stringData")


@cache
def sdk_version() -> str:
    """Return the version of the Kubernetes SDK, which is that of its provider; Python parses a file for each answer."""
    return version("pulumi-kubernetes")


def register_object(name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Register an object by the name of its type."""
    version_and_kind = manifest["apiVersion"], manifest["kind"]
    secret_fields = _SECRET_FIELDS if version_and_kind == _SECRET else ()
    inputs = {key: pulumi.Output.secret(value) if key in secret_fields else value for key, value in manifest.items()}
    own = pulumi.ResourceOptions(version=sdk_version(), additional_secret_outputs=list(secret_fields))
    return pulumi.CustomResource(_type_name(*version_and_kind), name, inputs, pulumi.ResourceOptions.merge(own, opts))


def register_typed_object(name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Register an object with the class of its kind, else as a custom resource."""
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    rest = {snake_case(key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    module = CLASSES.get((api_version, kind))
    if module is None:
        custom: Any = import_module("pulumi_kubernetes.apiextensions").CustomResource
        custom_resource: pulumi.CustomResource = custom(name, api_version=api_version, kind=kind, opts=opts, **rest)
        return custom_resource
    typed: Any = getattr(import_module(module), kind)
    registered: pulumi.CustomResource = typed(name, opts=opts, **rest)
    return registered


def _type_name(api_version: str, kind: str) -> str:
    return f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"


def snake_case(name: str) -> str:
    """Return the name that the Python SDK has for a name in camel case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
