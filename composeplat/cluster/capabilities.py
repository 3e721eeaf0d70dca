"""What a cluster offers to an environment: storage and ingress classes, architectures, and the rules of the namespace.

Owns reading it: each question may fail, as not every user may list everything, and then has no answer but a note.
Must not change anything, or know the needs of an environment.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.exposed_services import has_load_balancers
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.quotas import (
    Amounts,
    LimitRange,
    Quota,
    parse_limit_ranges,
    parse_quotas,
    usage_by_environment,
)
from composeplat.names import ENVIRONMENT_LABEL
from composeplat.system.records import record

T = TypeVar("T")

_DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
_METRICS = "/apis/metrics.k8s.io/v1beta1"
_ENFORCED_LEVEL = "pod-security.kubernetes.io/enforce"


@record(kw_only=True)
class Classes:
    """The classes of a kind, and the default one; empty if there is none."""

    names: tuple[str, ...] = ()
    default: str = ""


@record(kw_only=True)
class Capabilities:
    """Each answer is None if the question failed."""

    storage: Classes | None = None
    ingress: Classes | None = None
    architectures: frozenset[str] | None = None
    pod_security: str | None = None
    """The level that the namespace enforces; empty for none."""
    quotas: tuple[Quota, ...] | None = None
    limit_ranges: tuple[LimitRange, ...] | None = None
    has_metrics: bool | None = None
    """Whether a metrics server is registered."""
    has_load_balancers: bool | None = None
    usage: Mapping[str, Amounts] | None = None
    """How much each environment uses of the quotas."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Questions:
    api: Api
    notes: list[str] = field(default_factory=list)
    is_reachable: bool = True

    def ask(self, subject: str, question: Callable[[], T]) -> T | None:
        """Ask the cluster; after a lost connection, no further question is asked."""
        if not self.is_reachable:
            return None
        try:
            return question()
        except ApiError as error:
            self.is_reachable = bool(error.status)
            self.notes.append(f"{subject} could not be read: {error}")
            return None


def read_capabilities(api: Api, namespace: str) -> Capabilities:
    questions = _Questions(api)
    path = partial(kind_path, "v1", namespace=namespace)
    storage = questions.ask(
        "storage classes", lambda: _classes(api, "storage.k8s.io/v1", "StorageClass", _DEFAULT_STORAGE)
    )
    ingress = questions.ask("ingress classes", lambda: read_ingress_classes(api))
    quotas = questions.ask("quotas", lambda: parse_quotas(api.items(path("ResourceQuota"))))
    return Capabilities(
        storage=storage,
        ingress=ingress,
        architectures=questions.ask("nodes", lambda: _architectures(api.items(kind_path("v1", "Node")))),
        pod_security=questions.ask("the namespace", lambda: _enforced_level(api, namespace)),
        quotas=quotas,
        limit_ranges=questions.ask("limit ranges", lambda: parse_limit_ranges(api.items(path("LimitRange")))),
        has_metrics=questions.ask("metrics", lambda: has_metrics(api)),
        has_load_balancers=questions.ask("load balancers", lambda: has_load_balancers(api)),
        usage=questions.ask("the use of quotas", lambda: _usage(api, path)) if quotas else {},
        notes=tuple(questions.notes),
    )


def read_ingress_classes(api: Api) -> Classes:
    return _classes(api, "networking.k8s.io/v1", "IngressClass", _DEFAULT_INGRESS)


def has_metrics(api: Api) -> bool:
    try:
        return api.find(_METRICS) is not None
    except ApiError as error:
        # It is registered, and may be starting; or this user may not ask.
        if error.status in (http.client.FORBIDDEN, http.client.SERVICE_UNAVAILABLE):
            return True
        raise


def _classes(api: Api, version: str, kind: str, annotation: str) -> Classes:
    metadata = [entry["metadata"] for entry in api.items(kind_path(version, kind))]
    defaults = [entry["name"] for entry in metadata if (entry.get("annotations") or {}).get(annotation) == "true"]
    return Classes(names=tuple(sorted(entry["name"] for entry in metadata)), default=defaults[0] if defaults else "")


def _architectures(nodes: Iterable[dict[str, Any]]) -> frozenset[str]:
    return frozenset(str(node["status"]["nodeInfo"]["architecture"]) for node in nodes)


def _enforced_level(api: Api, namespace: str) -> str:
    found = api.find(kind_path("v1", "Namespace") + f"/{namespace}") or {}
    labels = found.get("metadata", {}).get("labels") or {}
    return str(labels.get(_ENFORCED_LEVEL, ""))


def _usage(api: Api, path: Callable[[str], str]) -> dict[str, Amounts]:
    pods, services, claims = (
        api.items(f"{path(kind)}?labelSelector={quote(ENVIRONMENT_LABEL)}")
        for kind in ("Pod", "Service", "PersistentVolumeClaim")
    )
    return usage_by_environment(pods, services, claims)
