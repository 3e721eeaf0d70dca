"""Which local cluster is meant: the real one, or the simulated one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat.local.cluster import LocalCluster
from composeplat.local.layout import OWN_NETWORK, make_layout
from composeplat.local.simulated import SimulatedCluster


def local_cluster(
    environment: Mapping[str, str],
    *,
    ports: Mapping[str, int] | None = None,
    simulated: int = 0,
    build_network: str = OWN_NETWORK,
) -> LocalCluster:
    """The local cluster, or the simulated one with a number of nodes; ports are those of the last time unless given."""
    layout = replace(make_layout(environment, simulated=simulated > 0), build_network=build_network)
    cluster = SimulatedCluster(layout, environment, simulated) if simulated else LocalCluster(layout, environment)
    cluster.choose_ports(ports or {})
    return cluster
