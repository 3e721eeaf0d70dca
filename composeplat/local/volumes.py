"""The volumes of the local cluster: made for claims, grown with them, removed with them.

Owns both storage classes, and the event about a volume that can't be made. Must not know how a size is held: that is
:mod:`~composeplat.local.sized_volumes`.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.quotas import parse_quantity
from composeplat.cluster.snapshot import Object
from composeplat.local import sized_volumes
from composeplat.local.layout import PROVISIONER, SIZED_CLASS, STORAGE_CLASS
from composeplat.local.live_objects import LiveObjects
from composeplat.local.private_folder import remove_folder

CLAIMS = kind_path("v1", "PersistentVolumeClaim")
VOLUMES = kind_path("v1", "PersistentVolume")
_CLASSES = (STORAGE_CLASS, SIZED_CLASS)
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_CHOSEN_NODE = "volume.kubernetes.io/selected-node"


def is_waiting(claim: Object) -> bool:
    """Return whether a claim is ours to fill: of our class, without a volume, with a pod that wants it."""
    metadata, spec = claim["metadata"], claim.get("spec", {})
    return (
        spec.get("storageClassName") in _CLASSES
        and not spec.get("volumeName")
        and not metadata.get("deletionTimestamp")
        and bool(metadata.get("annotations", {}).get(_CHOSEN_NODE))
    )


def is_to_grow(claim: Object) -> bool:
    """Return whether a claim asks for more than its volume has; such a change is allowed by our classes."""
    has = claim.get("status", {}).get("capacity", {}).get("storage", "")
    return (
        claim["spec"].get("storageClassName") in _CLASSES
        and claim.get("status", {}).get("phase") == "Bound"
        and parse_quantity(has) < parse_quantity(_requested(claim))
    )


def _requested(claim: Object) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])


def volume_for(claim: Object, folder: Path) -> Object:
    """The volume that fills a claim: a folder on this node."""
    metadata, storage_class = claim["metadata"], claim["spec"]["storageClassName"]
    name = f"pvc-{metadata['uid']}"
    path = sized_volumes.data_folder(folder / name) if storage_class == SIZED_CLASS else folder / name
    in_hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [metadata["annotations"][_CHOSEN_NODE]]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": _requested(claim)},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": storage_class,
            "local": {"path": str(path)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_hostname]}]}},
            "claimRef": _reference(claim),
        },
    }


def _reference(claim: Object) -> Object:
    named = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def is_released(volume: Object) -> bool:
    """Return whether a volume that was made here is to be removed: people make volumes of our classes too."""
    return (
        (volume["metadata"].get("annotations") or {}).get(_PROVISIONED_BY) == PROVISIONER
        and volume["spec"].get("storageClassName") in _CLASSES
        and "local" in volume["spec"]
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and volume.get("status", {}).get("phase") in ("Released", "Failed")
    )


class Volumes:
    def __init__(self, api: Api, objects: LiveObjects, folder: Path) -> None:
        self.api = api
        self.objects = objects
        self.folder = folder

    def reconcile(self) -> None:
        claims = self.objects.items(CLAIMS)
        for claim in filter(is_waiting, claims):
            with self._reported(claim):
                self._make_or_give_back(claim)
        for claim in filter(is_to_grow, claims):
            with self._reported(claim):
                self._grow(claim)
        self._remove_released(self.objects.items(VOLUMES))

    def _make_or_give_back(self, claim: Object) -> None:
        """Make a volume; without one the claim goes back to the scheduler, which fails the pod and tries again."""
        try:
            self._make(claim)
        except OSError:
            metadata = claim["metadata"]
            path = kind_path("v1", "PersistentVolumeClaim", metadata["namespace"])
            self.api.patch(f"{path}/{metadata['name']}", {"metadata": {"annotations": {_CHOSEN_NODE: None}}})
            raise

    def _make(self, claim: Object) -> None:
        volume = volume_for(claim, self.folder)
        folder = self.folder / str(volume["metadata"]["name"])
        if volume["spec"]["storageClassName"] == SIZED_CLASS:
            sized_volumes.make(folder, int(parse_quantity(_requested(claim))))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            # As block storage has it, so that images work with both.
            folder.chmod(0o755)
        with contextlib.suppress(ApiError):
            self.api.create(volume)

    def _grow(self, claim: Object) -> None:
        name, metadata = str(claim["spec"]["volumeName"]), claim["metadata"]
        if claim["spec"]["storageClassName"] == SIZED_CLASS:
            sized_volumes.grow(self.folder / name, int(parse_quantity(_requested(claim))))
        capacity = {"capacity": {"storage": _requested(claim)}}
        self.api.patch(f"{VOLUMES}/{name}", {"spec": capacity})
        path = kind_path("v1", "PersistentVolumeClaim", metadata["namespace"])
        self.api.patch(f"{path}/{metadata['name']}/status", {"status": capacity})

    def _remove_released(self, volumes: Iterable[Object]) -> None:
        for volume in filter(is_released, volumes):
            folder, path = self.folder / volume["metadata"]["name"], Path(volume["spec"]["local"]["path"])
            if path == sized_volumes.data_folder(folder):
                sized_volumes.remove(folder)
            elif path == folder:
                remove_folder(path)
            self.api.delete(f"{VOLUMES}/{volume['metadata']['name']}")

    @contextlib.contextmanager
    def _reported(self, claim: Object) -> Iterator[None]:
        """Report the failure of one claim, and continue with others."""
        try:
            yield
        except OSError as error:
            sys.stderr.write(f"volume of claim {claim['metadata']['name']}: {error}\n")
            self.api.apply(failure_event(claim, error))


def failure_event(claim: Object, error: OSError) -> Object:
    """Describe why a claim has no volume, or no larger one, as an event, which a deploy shows."""
    metadata = claim["metadata"]
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    why = "the disk of the local cluster has no space for it: platform cluster status" if is_full else str(error)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.provisioning", "namespace": metadata["namespace"]},
        "type": "Warning",
        "reason": "ProvisioningFailed",
        "message": why,
        "source": {"component": PROVISIONER},
        "involvedObject": _reference(claim),
    }
