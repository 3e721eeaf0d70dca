"""The addresses of Services of type LoadBalancer and NodePort, as deployed, and whether a cluster gives them any.

Owns how addresses are read from these Services and from nodes.
Must not know the definition: it may have changed since the deploy.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.endpoints import Address
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_lists import Lists
from composeplat.cluster.snapshot import Object, service_of
from composeplat.cluster.watching import environment_selector

_NODE = "NODE"
"""Stands for the address of any node, if this user may not read them."""
_PREFERRED = ("ExternalIP", "InternalIP", "ExternalDNS", "Hostname")
#: API groups of programs that give addresses to Services where no cloud does.
_PROVIDERS = frozenset(("metallb.io", "purelb.io", "kube-vip.io", "loxilb.io", "openelb.io"))


def find_exposed(api: Api, namespace: str, environment: str, lists: Lists | None = None) -> list[Address]:
    """Read the addresses of Services, which may be in lists; a watch of nodes would have much news."""
    found = (lists or api).items(kind_path("v1", "Service", namespace) + environment_selector(environment))
    exposed = [item for item in found if item["spec"].get("type") in ("LoadBalancer", "NodePort")]
    is_asked = any(item["spec"]["type"] == "NodePort" for item in exposed)
    node = _node_address(api) if is_asked else _NODE
    return [address for item in exposed for address in exposed_addresses(item, node)]


def exposed_addresses(service: Object, node: str) -> Iterator[Address]:
    """Read the addresses of a Service: none for a LoadBalancer that waits for its own."""
    for port in service["spec"].get("ports") or []:
        protocol = str(port.get("protocol", "TCP")).lower()
        for host, number in _hosts(service, port, node):
            yield Address(
                endpoint=str(service["metadata"]["name"]),
                url=f"{protocol}://{f'[{host}]' if ':' in host else host}:{number}",
                service=service_of(service),
                port=port["targetPort"] if isinstance(port["targetPort"], int) else port["port"],
            )


def _hosts(service: Object, port: Object, node: str) -> Iterable[tuple[str, int]]:
    if service["spec"]["type"] == "NodePort":
        return [(node, port["nodePort"])] if port.get("nodePort") else []
    given = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
    return [(str(entry.get("ip") or entry.get("hostname")), port["port"]) for entry in given]


def _node_address(api: Api) -> str:
    nodes = _nodes(api)
    addresses = {
        found["type"]: found["address"] for node in nodes or () for found in node["status"].get("addresses") or []
    }
    return str(next((addresses[kind] for kind in _PREFERRED if addresses.get(kind)), _NODE))


def _nodes(api: Api) -> list[Object] | None:
    try:
        return api.items(kind_path("v1", "Node"))
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return None


def has_load_balancers(api: Api) -> bool:
    """Whether a cloud or a program seems to give addresses to Services; True if this user may not ask."""
    nodes = _nodes(api)
    if nodes is None or any((node.get("spec") or {}).get("providerID") for node in nodes):
        return True
    groups = api.find("/apis") or {}
    return any(str(group.get("name")) in _PROVIDERS for group in groups.get("groups") or [])
