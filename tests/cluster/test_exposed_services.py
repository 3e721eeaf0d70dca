"""Addresses of LoadBalancers and NodePorts, as Services and nodes say them."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.exposed_services import find_exposed, has_load_balancers
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import NAMESPACE, Answer, Server, given, refusal

SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services?labelSelector=dev.platform.com/environment%3Dshop"
NODES = "/api/v1/nodes"
NODE = {
    "spec": {},
    "status": {"addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "fd00::1"}]},
}


def service(kind: str, status: Object | None = None, **port: Any) -> Object:
    labels = {"dev.platform.com/service": "web"}
    spec = {"type": kind, "ports": [{"port": 53, "targetPort": 5353, "protocol": "UDP", **port}]}
    return {"metadata": {"name": "web-exposed", "labels": labels}, "spec": spec, "status": status or {}}


def balanced(*ingress: Object) -> Object:
    return service("LoadBalancer", {"loadBalancer": {"ingress": list(ingress)}})


@pytest.mark.parametrize(
    ("found", "nodes", "expected"),
    [
        (service("ClusterIP"), given(), []),
        (service("LoadBalancer"), given(), []),
        (balanced({"ip": "192.0.2.1"}), given(), ["udp://192.0.2.1:53"]),
        (balanced({"hostname": "lb.example.com"}), given(), ["udp://lb.example.com:53"]),
        (service("NodePort", nodePort=30053), given(NODE), ["udp://[fd00::1]:30053"]),
        (service("NodePort", nodePort=30053), refusal(403, "no"), ["udp://NODE:30053"]),
        (service("NodePort"), given(NODE), []),
    ],
)
def test_addresses(found: Object, nodes: Answer, expected: list[str]) -> None:
    """A LoadBalancer has the addresses that it was given, a NodePort that of a node."""
    with Server(answers={NODES: nodes}, otherwise=given(found)) as server, Api(server.access) as api:
        addresses = find_exposed(api, NAMESPACE, "shop")

    assert [address.url for address in addresses] == expected
    assert all((address.service, address.port, address.protocol) == ("web", 5353, "udp") for address in addresses)


@pytest.mark.parametrize(
    ("nodes", "groups", "expected"),
    [
        (given(NODE), b'{"groups": [{"name": "apps"}]}', False),
        (given(NODE), b'{"groups": [{"name": "metallb.io"}]}', True),
        (given({"spec": {"providerID": "k3s://n"}}), b"{}", True),
        (refusal(403, "no"), b"{}", True),
    ],
)
def test_who_gives_addresses(nodes: Answer, groups: bytes, *, expected: bool) -> None:
    """A cloud, by the nodes, or a program, by its API; a user who may not ask is not warned."""
    with Server(answers={NODES: nodes, "/apis": Answer(groups)}) as server, Api(server.access) as api:
        assert has_load_balancers(api) is expected
