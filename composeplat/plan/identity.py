"""How the objects of an environment are known: their namespace, their labels, and the selectors of pods.

Owns the labels. Must not know which objects there are: :mod:`~composeplat.plan.desired` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SERVICE_LABEL
from composeplat.system.records import record

_SELECTED_BY_CHARTS = ("app.kubernetes.io/name", "app.kubernetes.io/instance")


@record(kw_only=True)
class Identity:
    """The namespace and labels that identify the objects of an environment."""

    environment: str
    namespace: str

    def metadata(
        self,
        name: str,
        component: str,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels(component), **labels},
        }
        if annotations:
            metadata["annotations"] = dict(sorted(annotations.items()))
        return metadata

    def service_metadata(self, name: str, service: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the metadata of an object of a service; ``service`` is the cluster name."""
        return self.metadata(name, service, annotations, {SERVICE_LABEL: service})

    def labels(self, component: str) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": component,
            "app.kubernetes.io/instance": self.environment,
            "app.kubernetes.io/part-of": self.environment,
            "app.kubernetes.io/component": component,
            MANAGED_BY_LABEL: MANAGED_BY,
            ENVIRONMENT_LABEL: self.environment,
        }

    def service_labels(self, service: str) -> dict[str, str]:
        return {**self.labels(service), SERVICE_LABEL: service}

    def pod_labels(self, service: str) -> dict[str, str]:
        """Return the labels of a service's pods, without those that the Services of Helm charts select by."""
        labels = self.service_labels(service)
        return {key: value for key, value in labels.items() if key not in _SELECTED_BY_CHARTS}

    def selector(self, service: str) -> dict[str, str]:
        """Return the selector of a service's pods, which has few labels because it can never change.

        All have our own prefix: pods of a Helm release `shop` of chart `redis` have the other labels of such a service.
        """
        return {ENVIRONMENT_LABEL: self.environment, SERVICE_LABEL: service}
