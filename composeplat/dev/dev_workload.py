"""The dev workload of a service, as data: the service's own pods, changed for development.

Owns the manifests of the dev workload and of its sync volume, and the annotations by which the original is restored.
Must not know the API: live objects come in, manifests go out, so that each change is tested without a cluster.

The dev workload records the original, so that any later run can restore it: the process that started it may be gone.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, container_of, without_no_node
from composeplat.dev.sync_rules import SyncPath
from composeplat.engine.dev_workloads import ORIGINAL_ANNOTATION, OriginalWorkload
from composeplat.names import DEV_WORKLOAD_LABEL, ENVIRONMENT_LABEL, LABEL_PREFIX, is_dns_name, shorten, slug
from composeplat.plan.desired import Manifest
from composeplat.plan.identity import Identity
from composeplat.plan.shared_pods import volume_in_pod_of_another
from composeplat.plan.storage import FILES_VOLUME
from composeplat.plan.templates import pod_template
from composeplat.system.records import record

ROOT = "/.platform"
AGENT = f"{ROOT}/bin/platform-agent"
SOCKET = f"{ROOT}/run/agent.sock"
SEEDS = f"{ROOT}/seeds"
_SEEDS_FOLDER = "seeds"
_VOLUME = "/.platform-volume"
_TEMPLATE_ANNOTATION = f"{LABEL_PREFIX}/up-template"
_BIN, _RUN, _SYNCED = "platform-bin", "platform-run", "platform-kept"
#: Probes and hooks that would restart a container whose program the developer breaks.
_REMOVED_KEYS = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "args")
_TERMINATION_GRACE_S = 3
#: For images that name their user by a number of their own.
_UNPRIVILEGED_UID = 65532
#: The limit of the API server.
_MAX_REPLICAS = 2**31 - 1


def dev_workload_name(service: str) -> str:
    """Return the name of a dev workload, by the cluster name of its service."""
    return shorten(f"{service}-platform-up")


def sync_volume_name(service: str) -> str:
    """Return the name of the claim that keeps synced files from one session to the next."""
    return shorten(f"{service}-platform-files")


def folder_key(path: SyncPath) -> str:
    """Return the folder of a sync path on the sync volume."""
    key = slug(path.remote) or "root"
    # The markers have that folder; no path has a NUL.
    return slug(f"{path.remote}\0") if key == _SEEDS_FOLDER else key


def selector(identity: Identity, service: str) -> str:
    return f"{DEV_WORKLOAD_LABEL}={service},{ENVIRONMENT_LABEL}={identity.environment}"


def recorded_original(dev_workload: Object) -> OriginalWorkload | None:
    """Return the workload that a dev workload replaces; None if the annotation, which others may write, names none."""
    try:
        read = json.loads((dev_workload["metadata"].get("annotations") or {})[ORIGINAL_ANNOTATION])
        found = OriginalWorkload(kind=str(read["kind"]), name=str(read["name"]), replicas=int(read["replicas"]))
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    is_workload = found.kind in WORKLOAD_KINDS and is_dns_name(found.name)
    return found if is_workload and 0 <= found.replicas <= _MAX_REPLICAS else None


def recorded_template(dev_workload: Object) -> str:
    """Return the fingerprint of the pod template that a dev workload was made from."""
    return str((dev_workload["metadata"].get("annotations") or {}).get(_TEMPLATE_ANNOTATION, ""))


def fingerprint(workload: Object) -> str:
    """Return the fingerprint of a workload's pod template."""
    return hashlib.sha256(json.dumps(_own_template(workload), sort_keys=True).encode()).hexdigest()[:16]


def _own_template(workload: Object) -> Object:
    """Return the pod template without what keeps a DaemonSet from all nodes while the dev workload replaces it."""
    template = pod_template(workload)
    return {**template, "spec": without_no_node(template["spec"])}


@record(kw_only=True)
class DevWorkloadInputs:
    """The input for a dev workload, besides its original."""

    identity: Identity
    service: str
    """The cluster name of the service whose pods these are."""
    container: str = ""
    """The cluster name of the service to develop, if it runs in the pods of another one."""
    paths: tuple[SyncPath, ...]
    helper: str
    """The image with the agent."""
    helper_pull_policy: str = ""
    """Empty for that of the cluster."""
    claims: Collection[str] = ()
    """The claims in the namespace."""
    size: str = "5Gi"
    keeps_limits: bool = False
    """The namespace may refuse containers without limits."""


def make_sync_volume(inputs: DevWorkloadInputs) -> Manifest:
    metadata = inputs.identity.service_metadata(sync_volume_name(inputs.service), inputs.service)
    metadata["labels"][DEV_WORKLOAD_LABEL] = inputs.service
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": inputs.size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def make_dev_workload(
    workload: Object, original: OriginalWorkload, inputs: DevWorkloadInputs, *, replicas: int
) -> Manifest:
    """Make a Deployment with the pods of a workload, changed for development."""
    metadata = inputs.identity.service_metadata(
        dev_workload_name(inputs.service),
        inputs.service,
        {ORIGINAL_ANNOTATION: original.to_text(), _TEMPLATE_ANNOTATION: fingerprint(workload)},
    )
    metadata["labels"][DEV_WORKLOAD_LABEL] = inputs.service
    template = copy.deepcopy(_own_template(workload))
    head = template.setdefault("metadata", {})
    head.pop("creationTimestamp", None)
    labels = {**head.get("labels", {}), DEV_WORKLOAD_LABEL: inputs.service}
    # With the labels of a Job, its controller would count these pods as its own.
    head["labels"] = {key: value for key, value in labels.items() if "job-name" not in key and "-uid" not in key}
    template["spec"] = _pod(template["spec"], workload, inputs)
    matched = {**inputs.identity.selector(inputs.service), DEV_WORKLOAD_LABEL: inputs.service}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": matched},
        "strategy": {"type": "Recreate"},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pod(spec: Object, workload: Object, inputs: DevWorkloadInputs) -> Object:
    spec["restartPolicy"] = "Always"
    spec["terminationGracePeriodSeconds"] = _TERMINATION_GRACE_S
    spec.pop("activeDeadlineSeconds", None)
    folders = [path for path in inputs.paths if not path.is_file]
    container = container_of(spec, inputs.container)
    user: Object = {key: container[key] for key in ("image", "imagePullPolicy", "securityContext") if key in container}
    for key in _REMOVED_KEYS:
        container.pop(key, None)
    if not inputs.keeps_limits:
        (container.get("resources") or {}).pop("limits", None)
    shared = {key: container[key] for key in ("resources",) if container.get(key)}
    confined = _confine(spec, container)
    volumes = [arg for path in folders for arg in ("--volume", f"{SEEDS}/{folder_key(path)}")]
    container["command"] = [AGENT, "hold", "--socket", SOCKET, *volumes]
    container["volumeMounts"] = _mounts(container, inputs)
    spec["volumes"] = _volumes(spec, workload, inputs)
    first = [_install(folders, inputs, confined), *(_seed(path, user) for path in folders)]
    spec["initContainers"] = [*spec.get("initContainers", []), *({**container, **shared} for container in first)]
    return spec


def _confine(spec: Object, container: Object) -> Object:
    """Let the pod's user write to the sync volume; return the security context of the container that makes its folders.

    It is root's, as a new volume belongs to root. Only in a pod that must not run as root, volumes belong to a group of
    it: this opens the folders of a service's own volumes to the group, and PostgreSQL does not start on such.
    """
    security = spec.setdefault("securityContext", {})
    own = {**security, **(container.get("securityContext") or {})}
    if not own.get("runAsNonRoot"):
        return {"runAsUser": 0, "runAsNonRoot": False}
    user = own.get("runAsUser") or _UNPRIVILEGED_UID
    security.setdefault("fsGroup", own.get("runAsGroup") or user)
    security.setdefault("fsGroupChangePolicy", "OnRootMismatch")
    return {
        "runAsUser": user,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def _mounts(container: Object, inputs: DevWorkloadInputs) -> list[Object]:
    paths = inputs.paths
    synced = {path.remote for path in paths}
    others = [
        mount
        for mount in container.get("volumeMounts") or []
        if mount["name"] != _files_volume(inputs) and mount["mountPath"].rstrip("/") not in synced
    ]
    folders = [
        {"name": _SYNCED, "mountPath": path.remote, "subPath": folder_key(path)} for path in paths if not path.is_file
    ]
    ours = [
        {"name": _BIN, "mountPath": f"{ROOT}/bin", "readOnly": True},
        {"name": _RUN, "mountPath": f"{ROOT}/run"},
        {"name": _SYNCED, "mountPath": SEEDS, "subPath": _SEEDS_FOLDER},
    ]
    # A mount below another path has to come after it.
    return [*ours, *sorted([*others, *folders], key=lambda mount: mount["mountPath"])]


def _files_volume(inputs: DevWorkloadInputs) -> str:
    own = inputs.container in ("", inputs.service)
    return FILES_VOLUME if own else volume_in_pod_of_another(FILES_VOLUME, inputs.container)


def _volumes(spec: Object, workload: Object, inputs: DevWorkloadInputs) -> list[Object]:
    volumes = [volume for volume in spec.get("volumes") or [] if volume["name"] != _files_volume(inputs)]
    for template in workload["spec"].get("volumeClaimTemplates") or []:
        name = template["metadata"]["name"]
        # The claim of the first pod: the stored data of the service is there in development too.
        claim = f"{name}-{workload['metadata']['name']}-0"
        source = {"persistentVolumeClaim": {"claimName": claim}} if claim in inputs.claims else {"emptyDir": {}}
        volumes.append({"name": name, **source})
    return [
        *volumes,
        {"name": _BIN, "emptyDir": {}},
        {"name": _RUN, "emptyDir": {}},
        {"name": _SYNCED, "persistentVolumeClaim": {"claimName": sync_volume_name(inputs.service)}},
    ]


def _install(folders: Iterable[SyncPath], inputs: DevWorkloadInputs, confined: Object) -> Object:
    """Copy the agent, and make folders that anyone may write to: only the image knows its user."""
    made = [f"{_VOLUME}/{folder_key(path)}" for path in folders]
    return {
        "name": "platform-agent",
        "image": inputs.helper,
        **({"imagePullPolicy": inputs.helper_pull_policy} if inputs.helper_pull_policy else {}),
        "command": ["/platform-agent", "install", f"{ROOT}/bin", f"{_VOLUME}/{_SEEDS_FOLDER}", *made],
        "securityContext": confined,
        "volumeMounts": [{"name": _BIN, "mountPath": f"{ROOT}/bin"}, {"name": _SYNCED, "mountPath": _VOLUME}],
    }


def _seed(path: SyncPath, user: Mapping[str, Any]) -> Object:
    """Copy the image's own content of a folder to the sync volume, once, as the image's user."""
    key = folder_key(path)
    marker = f"{_VOLUME}/{_SEEDS_FOLDER}/{key}"
    return {
        "name": shorten(f"platform-seed-{key}"),
        **user,
        "command": [AGENT, "seed", marker, path.remote, f"{_VOLUME}/{key}"],
        "volumeMounts": [
            {"name": _BIN, "mountPath": f"{ROOT}/bin", "readOnly": True},
            {"name": _SYNCED, "mountPath": _VOLUME},
        ],
    }
