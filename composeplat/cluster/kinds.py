"""The paths of objects and of lists in the Kubernetes API, by their kind.

Owns the plural of each kind that is used. Must not know what a kind is for.
"""

from __future__ import annotations

from typing import Any

#: Kind -> its plural, as in paths.
PLURALS = {
    "APIService": "apiservices",
    "ClusterRole": "clusterroles",
    "ConfigMap": "configmaps",
    "ControllerRevision": "controllerrevisions",
    "CronJob": "cronjobs",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "Event": "events",
    "HTTPRoute": "httproutes",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "Job": "jobs",
    "LimitRange": "limitranges",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "ReplicaSet": "replicasets",
    "ResourceQuota": "resourcequotas",
    "RuntimeClass": "runtimeclasses",
    "Secret": "secrets",
    "Service": "services",
    "StatefulSet": "statefulsets",
    "StorageClass": "storageclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def named_list_path(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Return the path of the list of one object, which can be watched."""
    return f"{kind_path(api_version, kind, namespace)}?fieldSelector=metadata.name%3D{name}"


def object_path(manifest: dict[str, Any]) -> str:
    """Return the path of an object, by its manifest."""
    metadata = manifest["metadata"]
    return f"{kind_path(manifest['apiVersion'], manifest['kind'], metadata.get('namespace', ''))}/{metadata['name']}"


def kind_path(api_version: str, kind: str, namespace: str = "") -> str:
    root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{PLURALS[kind]}"
