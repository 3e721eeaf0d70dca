"""The pod template of a workload, wherever its kind has it, and which kinds select their pods.

Owns that place: a CronJob's is within the template of its Jobs. Pure: manifests in, manifests out.
"""

from __future__ import annotations

from typing import Any

_Manifest = dict[str, Any]
#: Workloads with a selector of their own, which can't change.
SELECTING = ("Deployment", "StatefulSet", "DaemonSet")


def pod_template(workload: _Manifest) -> _Manifest:
    template: _Manifest = job_spec(workload)["template"]
    return template


def claims_in(spec: _Manifest) -> set[str]:
    """Return the claims that a pod of a spec mounts."""
    volumes = spec.get("volumes") or ()
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}


def job_spec(workload: _Manifest) -> _Manifest:
    """Return what has the pod template: the spec of a workload, or that of a CronJob's Jobs."""
    spec: _Manifest = workload["spec"]
    found: _Manifest = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
    return found


def with_pod_template(workload: _Manifest, template: _Manifest) -> _Manifest:
    spec = workload["spec"]
    changed = {**job_spec(workload), "template": template}
    if "jobTemplate" in spec:
        changed = {**spec, "jobTemplate": {**spec["jobTemplate"], "spec": changed}}
    return {**workload, "spec": changed}
