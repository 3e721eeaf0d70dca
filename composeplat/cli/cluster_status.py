"""``platform cluster status``: whether the local cluster runs, its parts and addresses, and its use of the disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import typer

from composeplat import progress
from composeplat.cli.console import table, write_json, write_message, write_output
from composeplat.diagnostics import Exit
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.disk_use import IMAGE_PURPOSES, Disk, disk_use, read_disk, read_limit
from composeplat.progress import format_bytes

#: What answers at each port of this machine, by the name of its option.
_ADDRESSES = {
    "api": ("API server", "https://127.0.0.1:{}"),
    "registry": ("registry", "localhost:{}"),
    "https": ("endpoints", "https://localhost:{}"),
    "http": ("redirect to the endpoints", "http://localhost:{}"),
}
_FREE = "free"


def run(*, simulated: bool, as_json: bool) -> None:
    cluster = local_cluster(os.environ, simulated=int(simulated))
    found = cluster.status()
    with progress.step("measuring what the cluster takes on the disk", is_transient=True):
        used = disk_use(cluster.layout)
    disk, limit = read_disk(cluster.layout), read_limit(cluster.layout)
    images = sum(used.get(purpose, 0) for purpose in IMAGE_PURPOSES)
    if as_json:
        data = {
            "schema": "platform/cluster/1",
            "running": found.running,
            "kubeconfig": str(cluster.layout.kubeconfig),
            "parts": found.parts or {},
            "ports": cluster.host_ports,
            "disk": {
                "folder": str(cluster.layout.folder),
                "used": used,
                "free": disk.free,
                "images": images,
                "limit": limit or None,
                "nearly_full": disk.is_nearly_full,
            },
        }
        write_json(data)
    else:
        _show(cluster, found.parts or {}, is_running=found.running)
        _show_disk(used, disk, images, limit)
    if not found.running or found.broken:
        raise typer.Exit(int(Exit.MISSING))


def _show(
    cluster: LocalCluster,
    parts: Mapping[str, Mapping[str, Any]],
    *,
    is_running: bool,
) -> None:
    if is_running:
        states = [(name, _state(part), str(part["starts"])) for name, part in parts.items()]
        addresses = [
            (_ADDRESSES[name][0], _ADDRESSES[name][1].format(port)) for name, port in cluster.host_ports.items()
        ]
        write_output(table([("PART", "STATE", "STARTS"), *states]) + "\n")
        write_output(table([("SERVES", "AT"), *addresses]) + "\n")
    else:
        write_message(f"{cluster.title} is not running: platform cluster start\n")


def _show_disk(used: Mapping[str, int], disk: Disk, images: int, limit: int) -> None:
    if not used:
        return
    rows = [(purpose, format_bytes(size)) for purpose, size in used.items()]
    if limit:
        rows.append(("images and caches", f"{format_bytes(images)} of at most {format_bytes(limit)}"))
    write_output(table([("DISK", "SIZE"), *rows, (_FREE, format_bytes(disk.free))]))
    if disk.is_nearly_full:
        write_message(f"the disk is nearly full: {format_bytes(disk.reserve)} should be free\n")
        write_message("hint: delete files of your own, or volumes: platform cluster prune --all --volumes\n")


def _state(part: Mapping[str, Any]) -> str:
    if part["ready"]:
        return "ready"
    if part["running"]:
        return "starting"
    return "ended" if part["starts"] else "waiting"
