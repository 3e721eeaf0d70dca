"""New pods of a workload with the same settings.

Owns the annotation that replaces them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object, service_of
from composeplat.cluster.watching import environment_selector
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.names import LABEL_PREFIX

#: The annotation of pods that a change of it replaces. No definition has it, so that no deploy sees a difference.
RESTARTED_ANNOTATION = f"{LABEL_PREFIX}/restarted-at"


def replace_pods(api: Api, namespace: str, environment: str, workload: Object) -> None:
    """Replace the pods of a workload, in the way of its update policy."""
    kind, name = workload["kind"], workload["metadata"]["name"]
    if (workload["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        # Its pods are replaced only once they are deleted.
        path = kind_path("v1", "Pod", namespace)
        for pod in api.items(path + environment_selector(environment)):
            if service_of(pod) == name and belongs_to(pod, environment):
                api.delete(f"{path}/{pod['metadata']['name']}")
        return
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    change = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_ANNOTATION: moment}}}}}
    api.patch(api_path(kind, namespace, name), change)
