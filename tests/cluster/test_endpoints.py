"""Addresses, as Ingresses and HTTPRoutes say them."""

from __future__ import annotations

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.endpoints import Address, find_addresses, read_addresses
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import NAMESPACE, Server, given, refusal

INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
ROUTES = f"/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes"


def backend(service: str) -> Object:
    return {"service": {"name": service, "port": {"number": 80}}}


INGRESS = {
    "metadata": {"name": "site"},
    "spec": {
        "rules": [
            {
                "host": "site.example.com",
                "http": {
                    "paths": [{"path": "/api", "backend": backend("api")}, {"path": "/", "backend": backend("web")}]
                },
            }
        ]
    },
}
ROUTE = {
    "metadata": {"name": "site"},
    "spec": {
        "hostnames": ["site.example.com"],
        "rules": [
            {"matches": [{"path": {"value": "/api"}}], "backendRefs": [{"name": "api", "port": 80}]},
            {"matches": [{"path": {"value": "/"}}], "backendRefs": [{"name": "web", "port": 80}]},
        ],
    },
}
BOTH = [
    Address(endpoint="site", url="https://site.example.com", service="web", port=80),
    Address(endpoint="site", url="https://site.example.com/api", service="api", port=80),
]


@pytest.mark.parametrize("item", [pytest.param(INGRESS, id="ingress"), pytest.param(ROUTE, id="route")])
def test_addresses(item: Object) -> None:
    """Each path is an address, the shortest first."""
    assert read_addresses([item]) == BOTH


@pytest.mark.parametrize("status", [404, 403])
def test_no_gateway_api(status: int) -> None:
    """A cluster without the Gateway API, or one that does not show it, has Ingresses all the same."""
    with Server({INGRESSES: given(INGRESS), ROUTES: refusal(status, "no")}) as server, Api(server.access) as api:
        assert find_addresses(api, NAMESPACE, "shop") == BOTH
    assert server.paths[0] == f"{INGRESSES}?labelSelector=dev.platform.com/environment%3Dshop"


def test_a_broken_cluster() -> None:
    """Another answer is an error."""
    answers = {INGRESSES: given(INGRESS), ROUTES: refusal(500, "broken")}
    with Server(answers) as server, Api(server.access) as api, pytest.raises(ApiError, match="broken"):
        find_addresses(api, NAMESPACE, "shop")


def test_several_hosts() -> None:
    """Each rule of an Ingress is read, also after one with a host."""
    rules = [{"host": host, "http": {"paths": [{"path": "/", "backend": backend("web")}]}} for host in ("a.b", "c.d")]

    found = read_addresses([{"metadata": {"name": "site"}, "spec": {"rules": rules}}])

    assert [address.url for address in found] == ["https://a.b", "https://c.d"]
