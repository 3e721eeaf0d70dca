"""What of a cluster is still used: the images of its workloads, and the claims of environments that have workloads.

Owns the kinds that count. Must not delete anything: that is asked for first.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, has_ended
from composeplat.names import ENVIRONMENT_LABEL

_PODS = (("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("apps/v1", "ControllerRevision"))
#: A claim that is younger may be that of a deploy whose workloads are not there yet.
_MIN_AGE = timedelta(minutes=10)


def list_workloads(api: Api) -> list[Object]:
    return [item for kind, version in WORKLOAD_KINDS.items() for item in api.items(kind_path(version, kind))]


def used_images(api: Api) -> set[str]:
    """The images of all workloads and pods, also of earlier revisions and of those that sleep."""
    pods = [item for version, kind in _PODS for item in api.items(kind_path(version, kind))]
    return {image for item in (*list_workloads(api), *pods) for image in _images(item)}


def _images(part: Any) -> Iterator[str]:
    """Yield every value of a key ``image`` in an object."""
    if isinstance(part, list):
        for item in part:
            yield from _images(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("image", "imageID", "reference") and isinstance(value, str):
                yield value
            else:
                yield from _images(value)


def abandoned_claims(api: Api) -> list[Object]:
    """List the claims of environments that have no workload any more: those that ``platform destroy`` keeps.

    One that a pod of others mounts, such as that of a backup, is used.
    """
    alive = {environment_of(item) for item in list_workloads(api)}
    pods = (pod for pod in api.items(kind_path("v1", "Pod")) if not has_ended(pod))
    mounted = {(pod["metadata"]["namespace"], name) for pod in pods for name in _claims(pod)}
    ours = [claim for claim in api.items(kind_path("v1", "PersistentVolumeClaim")) if environment_of(claim)[1]]
    return [
        claim
        for claim in ours
        if environment_of(claim) not in alive
        and (claim["metadata"]["namespace"], claim["metadata"]["name"]) not in mounted
        and _is_old(claim)
    ]


def _claims(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"]["claimName"])


def environment_of(item: Object) -> tuple[str, str]:
    """The namespace and name of an object's environment; no name where it has none."""
    metadata = item["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(ENVIRONMENT_LABEL, "")


def _is_old(item: Object) -> bool:
    return datetime.now(UTC) - datetime.fromisoformat(item["metadata"]["creationTimestamp"]) > _MIN_AGE
