"""The fields of a pod that come from the keys of containers in full mode, apart from its security contexts."""

from __future__ import annotations

from composeplat.compose.pod_model import ContainerOptions, Platform
from composeplat.plan.desired import Manifest


def add_pod_options(spec: Manifest, options: ContainerOptions) -> None:
    """Add the fields of the options to a pod's spec."""
    if options.host_users is not None:
        spec["hostUsers"] = options.host_users
    if options.runtime:
        spec["runtimeClassName"] = options.runtime
    if options.platform != Platform():
        spec["affinity"] = {**_node_affinity(options.platform), **spec.get("affinity", {})}


def _node_affinity(platform: Platform) -> Manifest:
    labels = {"kubernetes.io/arch": platform.architecture, "kubernetes.io/os": platform.os}
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items() if value]
    selector = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
