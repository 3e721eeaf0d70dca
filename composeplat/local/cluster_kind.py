"""Which local cluster is meant: the real one, or the simulated one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from composeplat.local.cluster import LocalCluster
from composeplat.local.layout import IMAGE_CACHE_BYTES, OWN_NETWORK, Layout, make_layout
from composeplat.local.simulated import SimulatedCluster


def local_cluster(
    environment: Mapping[str, str],
    *,
    ports: Mapping[str, int] | None = None,
    simulated: int = 0,
    build_network: str = "",
    egress: bool | None = None,
    image_cache: int = IMAGE_CACHE_BYTES,
    disk_limit: int = 0,
) -> LocalCluster:
    """The local cluster, or the simulated one with a number of nodes.

    Unless given, ports are those of the last time, and networks those of the cluster that runs.
    """
    layout = make_layout(environment, simulated=simulated > 0)
    known = _running_networks(layout)
    layout = replace(
        layout,
        build_network=build_network or known.get("build_network", OWN_NETWORK),
        egress=known.get("egress", True) if egress is None else egress,
        image_cache=image_cache,
        disk_limit=disk_limit,
    )
    cluster = SimulatedCluster(layout, environment, simulated) if simulated else LocalCluster(layout, environment)
    cluster.choose_ports(ports or {})
    return cluster


def _running_networks(layout: Layout) -> dict[str, Any]:
    """The networks of the running cluster; none where no cluster runs, or the file can't be read."""
    try:
        known = json.loads(layout.networks_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
