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
from dataclasses import dataclass
from typing import Any

from composeplat.dev.sync_rules import SyncPath
from composeplat.engine.dev_workloads import DEV_WORKLOAD_LABEL, ORIGINAL_ANNOTATION, OriginalWorkload
from composeplat.names import ENVIRONMENT_LABEL, OURS, shorten, slug
from composeplat.plan.desired import Identity, Manifest
from composeplat.plan.storage import FILES_VOLUME

Object = dict[str, Any]

ROOT = "/.platform"
AGENT = f"{ROOT}/bin/platform-agent"
SOCKET = f"{ROOT}/run/agent.sock"
SEEDS = f"{ROOT}/seeds"
_VOLUME = "/.platform-volume"
_TEMPLATE = f"{OURS}/up-template"
HELD_BY = f"{OURS}/up-held-by"
_BIN, _RUN, _KEPT = "platform-bin", "platform-run", "platform-kept"
#: What a development container has no use for: it is there to be broken.
_LEFT_OUT = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "args")
_GRACE = 3
#: Nobody in particular, for images that say by a number of their own whom they run as.
_NOBODY = 65532


def dev_workload_name(service: str) -> str:
    """The name of a dev workload, by the cluster name of its service."""
    return shorten(f"{service}-platform-up")


def claim_name(service: str) -> str:
    """The volume that keeps what is synced, from one time to the next."""
    return shorten(f"{service}-platform-files")


def folder_key(path: SyncPath) -> str:
    """Where on that volume a folder lies."""
    return slug(path.remote) or "root"


def selector(identity: Identity, service: str) -> str:
    return f"{DEV_WORKLOAD_LABEL}={service},{ENVIRONMENT_LABEL}={identity.environment}"


def original_of(dev_workload: Object) -> OriginalWorkload | None:
    try:
        read = json.loads((dev_workload["metadata"].get("annotations") or {})[ORIGINAL_ANNOTATION])
        return OriginalWorkload(kind=str(read["kind"]), name=str(read["name"]), replicas=int(read["replicas"]))
    except (KeyError, ValueError, TypeError):
        return None


def template_of(dev_workload: Object) -> str:
    """What tells of which pods it was made the dev workload."""
    return str((dev_workload["metadata"].get("annotations") or {}).get(_TEMPLATE, ""))


def fingerprint(workload: Object) -> str:
    """What tells one pod template from another."""
    return hashlib.sha256(json.dumps(workload["spec"]["template"], sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a dev workload is made from besides its original."""

    identity: Identity
    service: str
    """The cluster name of the service."""
    paths: tuple[SyncPath, ...]
    helper: str
    """The image that has the agent."""
    claims: Collection[str] = ()
    """The claims that there are."""
    size: str = "5Gi"
    keeps_limits: bool = False
    """Whether the namespace counts limits: it refuses containers without any then."""


def make_claim(wanted: Wanted) -> Manifest:
    metadata = wanted.identity.service_metadata(claim_name(wanted.service), wanted.service)
    metadata["labels"][DEV_WORKLOAD_LABEL] = wanted.service
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wanted.size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def make_dev_workload(workload: Object, original: OriginalWorkload, wanted: Wanted, *, replicas: int) -> Manifest:
    """A Deployment with the pods of a workload, made fit for development."""
    metadata = wanted.identity.service_metadata(
        dev_workload_name(wanted.service),
        wanted.service,
        {ORIGINAL_ANNOTATION: original.to_text(), _TEMPLATE: fingerprint(workload)},
    )
    metadata["labels"][DEV_WORKLOAD_LABEL] = wanted.service
    template = copy.deepcopy(workload["spec"]["template"])
    head = template.setdefault("metadata", {})
    head.pop("creationTimestamp", None)
    labels = {**head.get("labels", {}), DEV_WORKLOAD_LABEL: wanted.service}
    # A Job's own marks would make the dev workload's pods count as the Job's.
    head["labels"] = {key: value for key, value in labels.items() if "job-name" not in key and "-uid" not in key}
    template["spec"] = _pod(template["spec"], workload, wanted)
    matched = {**wanted.identity.selector(wanted.service), DEV_WORKLOAD_LABEL: wanted.service}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": matched},
        "strategy": {"type": "Recreate"},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pod(spec: Object, workload: Object, wanted: Wanted) -> Object:
    spec["restartPolicy"] = "Always"
    spec["terminationGracePeriodSeconds"] = _GRACE
    spec.pop("activeDeadlineSeconds", None)
    folders = [path for path in wanted.paths if not path.is_file]
    container = spec["containers"][0]
    user = {key: container[key] for key in ("image", "imagePullPolicy", "securityContext") if key in container}
    for key in _LEFT_OUT:
        container.pop(key, None)
    if not wanted.keeps_limits:
        (container.get("resources") or {}).pop("limits", None)
    shared = {key: container[key] for key in ("resources",) if container.get(key)}
    confined = _confine(spec, container)
    marked = [word for path in folders for word in ("--volume", f"{SEEDS}/{folder_key(path)}")]
    container["command"] = [AGENT, "hold", "--socket", SOCKET, *marked]
    container["volumeMounts"] = _mounts(container, wanted.paths)
    spec["volumes"] = _volumes(spec, workload, wanted)
    first = [_install(folders, wanted.helper, confined), *(_seed(path, user) for path in folders)]
    spec["initContainers"] = [{**one, **shared} for one in first]
    return spec


def _confine(spec: Object, container: Object) -> Object:
    """Let the pod's user write to its volumes; gives whom the agent is installed by.

    That is root, for volumes may belong to root, unless the pod must not have any: then the volumes are its group's.
    """
    security = spec.setdefault("securityContext", {})
    own = {**security, **(container.get("securityContext") or {})}
    is_restricted = bool(own.get("runAsNonRoot"))
    user = own.get("runAsUser") or (_NOBODY if is_restricted else 0)
    if user:
        security.setdefault("fsGroup", own.get("runAsGroup") or user)
        security.setdefault("fsGroupChangePolicy", "OnRootMismatch")
    if not is_restricted:
        return {"runAsUser": 0, "runAsNonRoot": False}
    return {
        "runAsUser": user,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def _mounts(container: Object, paths: Iterable[SyncPath]) -> list[Object]:
    synced = {path.remote for path in paths}
    others = [
        mount
        for mount in container.get("volumeMounts") or []
        if mount["name"] != FILES_VOLUME and mount["mountPath"].rstrip("/") not in synced
    ]
    folders = [
        {"name": _KEPT, "mountPath": path.remote, "subPath": folder_key(path)} for path in paths if not path.is_file
    ]
    ours = [
        {"name": _BIN, "mountPath": f"{ROOT}/bin", "readOnly": True},
        {"name": _RUN, "mountPath": f"{ROOT}/run"},
        {"name": _KEPT, "mountPath": SEEDS, "subPath": "seeds"},
    ]
    # What is mounted below another path has to come after it.
    return [*ours, *sorted([*others, *folders], key=lambda mount: mount["mountPath"])]


def _volumes(spec: Object, workload: Object, wanted: Wanted) -> list[Object]:
    volumes = [volume for volume in spec.get("volumes") or [] if volume["name"] != FILES_VOLUME]
    for template in workload["spec"].get("volumeClaimTemplates") or []:
        name = template["metadata"]["name"]
        # The first pod's own: what the service has stored is there in development too.
        claim = f"{name}-{workload['metadata']['name']}-0"
        source = {"persistentVolumeClaim": {"claimName": claim}} if claim in wanted.claims else {"emptyDir": {}}
        volumes.append({"name": name, **source})
    return [
        *volumes,
        {"name": _BIN, "emptyDir": {}},
        {"name": _RUN, "emptyDir": {}},
        {"name": _KEPT, "persistentVolumeClaim": {"claimName": claim_name(wanted.service)}},
    ]


def _install(folders: Iterable[SyncPath], helper: str, confined: Object) -> Object:
    """Bring the agent, and make the folders that anyone may write into: who the image's user is, it alone knows."""
    made = [f"{_VOLUME}/{folder_key(path)}" for path in folders]
    return {
        "name": "platform-agent",
        "image": helper,
        "command": ["/platform-agent", "install", f"{ROOT}/bin", f"{_VOLUME}/seeds", *made],
        "securityContext": confined,
        "volumeMounts": [{"name": _BIN, "mountPath": f"{ROOT}/bin"}, {"name": _KEPT, "mountPath": _VOLUME}],
    }


def _seed(path: SyncPath, user: Mapping[str, Any]) -> Object:
    """Let the image's own content of a folder be where the folder will be, once; as the image's user."""
    key = folder_key(path)
    marker = f"{_VOLUME}/seeds/{key}"
    return {
        "name": shorten(f"platform-seed-{key}"),
        **user,
        "command": [AGENT, "seed", marker, path.remote, f"{_VOLUME}/{key}"],
        "volumeMounts": [
            {"name": _BIN, "mountPath": f"{ROOT}/bin", "readOnly": True},
            {"name": _KEPT, "mountPath": _VOLUME},
        ],
    }
