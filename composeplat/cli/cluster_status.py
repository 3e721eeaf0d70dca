"""``platform cluster status``: whether the local cluster runs, its parts and addresses, and its use of the disk.

Owns the text and the JSON. Must not measure anything: the room ``local`` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import typer

from composeplat import progress
from composeplat.cli.console import table, write_json, write_message, write_output
from composeplat.cluster.api import Api
from composeplat.diagnostics import ComposeplatError, Exit
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.disk_use import IMAGE_PURPOSES, Disk, disk_use, read_disk
from composeplat.local.etcd_space import EtcdSpace, read_space
from composeplat.local.running_settings import read_settings
from composeplat.local.states import Status
from composeplat.local.volume_use import ENFORCES_SIZES, VolumeUse, volume_uses
from composeplat.local.volumes import VOLUMES
from composeplat.progress import format_bytes
from composeplat.system.records import record

#: What answers at each port of this machine, by the name of its option.
_ADDRESSES = {
    "api": ("API server", "https://127.0.0.1:{}"),
    "registry": ("registry", "localhost:{}"),
    "https": ("endpoints", "https://localhost:{}"),
    "http": ("redirect to the endpoints", "http://localhost:{}"),
}
_FREE = "free"
_NOT_ENFORCED = "not enforced: a volume can fill the disk"


def run(*, simulated: bool, as_json: bool) -> None:
    cluster = local_cluster(os.environ, simulated=int(simulated))
    status = cluster.status()
    with progress.step("measuring what the cluster takes on the disk", is_transient=True):
        used, volumes = disk_use(cluster.layout), _find_volumes(cluster, status)
    found = _Found(
        status=status,
        storage_classes={} if simulated else ENFORCES_SIZES,
        volumes=volumes,
        objects=read_space(cluster.layout.etcd_space_file) if status.running else None,
        used=used,
        disk=read_disk(cluster.layout),
        limit=read_settings(cluster.layout).disk_limit,
    )
    if as_json:
        write_json(_data(cluster, found))
    else:
        if status.running:
            _show(cluster, status.parts or {})
            _show_volumes(found)
        else:
            nodes = " --simulated N" if simulated else ""
            write_message(f"{cluster.title} is not running: platform cluster start{nodes}\n")
        _show_disk(found)
        _show_objects(found.objects)
    if not status.running or status.broken:
        raise typer.Exit(int(Exit.MISSING))


@record(kw_only=True)
class _Found:
    status: Status
    storage_classes: Mapping[str, bool]
    volumes: list[VolumeUse] | None
    objects: EtcdSpace | None
    used: Mapping[str, int]
    disk: Disk
    limit: int

    @property
    def images(self) -> int:
        return sum(self.used.get(purpose, 0) for purpose in IMAGE_PURPOSES)


def _data(cluster: LocalCluster, found: _Found) -> dict[str, Any]:
    return {
        "schema": "platform/cluster/1",
        "running": found.status.running,
        "kubeconfig": str(cluster.layout.kubeconfig),
        "parts": found.status.parts or {},
        "ports": cluster.host_ports,
        "storage_classes": {name: {"enforces_sizes": holds} for name, holds in found.storage_classes.items()},
        "volumes": None if found.volumes is None else [asdict(volume) for volume in found.volumes],
        "objects": _objects_data(found.objects),
        "disk": {
            "folder": str(cluster.layout.folder),
            "used": found.used,
            "free": found.disk.free,
            "images": found.images,
            "limit": found.limit or None,
            "nearly_full": found.disk.is_nearly_full,
        },
    }


def _show(cluster: LocalCluster, parts: Mapping[str, Mapping[str, Any]]) -> None:
    states = [(name, _state(part), str(part["starts"])) for name, part in parts.items()]
    addresses = [(_ADDRESSES[name][0], _ADDRESSES[name][1].format(port)) for name, port in cluster.host_ports.items()]
    write_output(table([("PART", "STATE", "STARTS"), *states]) + "\n")
    write_output(table([("SERVES", "AT"), *addresses]) + "\n")


def _find_volumes(cluster: LocalCluster, found: Status) -> list[VolumeUse] | None:
    """Return the volumes; none where the API server does not answer, which the parts show."""
    if not (found.parts or {}).get("kube-apiserver", {}).get("ready"):
        return None
    try:
        with Api(cluster.access) as api:
            volumes = api.items(VOLUMES)
    except (ComposeplatError, OSError):
        return None
    return volume_uses(volumes, cluster.layout.volumes, found.pid)


def _show_volumes(found: _Found) -> None:
    classes = [(name, "enforced" if holds else _NOT_ENFORCED) for name, holds in found.storage_classes.items()]
    if classes:
        write_output(table([("STORAGE CLASS", "SIZES OF VOLUMES"), *classes]) + "\n")
    rows = [
        (f"{volume.namespace}/{volume.claim}", volume.storage_class, _size(volume)) for volume in found.volumes or []
    ]
    if rows:
        write_output(table([("VOLUME", "CLASS", "SIZE"), *rows]) + "\n")


def _size(volume: VolumeUse) -> str:
    used = "unknown" if volume.used is None else format_bytes(volume.used)
    return f"{used} of {'at most ' if volume.is_enforced else ''}{format_bytes(volume.size)}"


def _objects_data(objects: EtcdSpace | None) -> dict[str, Any] | None:
    if objects is None:
        return None
    return {"size": objects.size, "used": objects.in_use, "limit": objects.limit, "full": objects.is_full}


def _show_objects(objects: EtcdSpace | None) -> None:
    if objects and (objects.is_full or objects.is_nearly_full):
        sizes = f"{format_bytes(objects.size)} of at most {format_bytes(objects.limit)}"
        if objects.is_full:
            write_message(f"etcd is full, {sizes}: no object can be written until the cleaner has made space\n")
        else:
            write_message(f"etcd is nearly full: {sizes}\n")
        write_message("hint: platform cluster logs cleaner; delete objects of your own: platform destroy\n")


def _show_disk(found: _Found) -> None:
    if not found.used:
        return
    rows = [(purpose, format_bytes(size)) for purpose, size in found.used.items()]
    if found.limit:
        rows.append(("images and caches", f"{format_bytes(found.images)} of at most {format_bytes(found.limit)}"))
    write_output(table([("DISK", "SIZE"), *rows, (_FREE, format_bytes(found.disk.free))]))
    if found.disk.is_nearly_full:
        write_message(f"the disk is nearly full: {format_bytes(found.disk.reserve)} should be free\n")
        write_message("hint: delete files of your own, or volumes: platform cluster prune --all --volumes\n")


def _state(part: Mapping[str, Any]) -> str:
    if part["ready"]:
        return "ready"
    if part["running"]:
        return "starting"
    return "ended" if part["starts"] else "waiting"
