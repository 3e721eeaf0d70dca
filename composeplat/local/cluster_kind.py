"""Which local cluster is meant: the real one, or the simulated one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat.local.cluster import LocalCluster
from composeplat.local.layout import make_layout
from composeplat.local.running_settings import read_settings
from composeplat.local.simulated import SimulatedCluster


def local_cluster(
    environment: Mapping[str, str],
    *,
    ports: Mapping[str, int] | None = None,
    simulated: int = 0,
    build_network: str = "",
    egress: bool | None = None,
    image_cache: int = 0,
    disk_limit: int = 0,
) -> LocalCluster:
    """The local cluster, or the simulated one with a number of nodes.

    Unless given, ports are those of the last time, and networks those of the cluster that runs.
    """
    layout = make_layout(environment, simulated=simulated > 0)
    known = read_settings(layout)
    layout = replace(
        layout,
        build_network=build_network or known.build_network,
        egress=known.egress if egress is None else egress,
        image_cache=image_cache,
        disk_limit=disk_limit,
    )
    cluster = SimulatedCluster(layout, environment, simulated) if simulated else LocalCluster(layout, environment)
    cluster.choose_ports(ports or {})
    return cluster
