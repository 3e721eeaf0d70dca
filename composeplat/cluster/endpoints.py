"""The addresses of an environment, as deployed.

Owns how addresses are read from Ingresses and HTTPRoutes.
Must not know the definition: it may have changed since the deploy.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable

from composeplat.cluster.api import ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_lists import Lists
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watching import environment_selector
from composeplat.system.records import record

INGRESS = ("networking.k8s.io/v1", "Ingress")
ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")


@record(kw_only=True)
class Address:
    endpoint: str
    url: str
    service: str
    """The name of the cluster service that it routes to."""
    port: int

    @property
    def is_endpoint(self) -> bool:
        return self.url.startswith("https:")

    @property
    def protocol(self) -> str:
        return "tcp" if self.is_endpoint else self.url.partition(":")[0]


def find_addresses(lists: Lists, namespace: str, environment: str) -> list[Address]:
    selector = environment_selector(environment)
    found = [*lists.items(kind_path(*INGRESS, namespace) + selector)]
    try:
        found += lists.items(kind_path(*ROUTE, namespace) + selector)
    except ApiError as error:
        # A cluster without the Gateway API has no routes, and not every user may list them.
        if error.status not in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            raise
    return read_addresses(found)


def read_addresses(objects: Iterable[Object]) -> list[Address]:
    """Read the addresses of Ingresses and HTTPRoutes, sorted by name and path."""
    found = dict.fromkeys(address for item in objects for address in _addresses_of(item))
    return sorted(found, key=lambda address: (address.endpoint, address.url, address.service, address.port))


def _addresses_of(item: Object) -> Iterable[Address]:
    name, spec = str(item["metadata"]["name"]), item.get("spec") or {}
    for rule in spec.get("rules") or []:
        if "host" in rule:
            for path in (rule.get("http") or {}).get("paths") or []:
                backend = path["backend"]["service"]
                port = (backend.get("port") or {}).get("number", 0)
                yield _address(name, rule["host"], path.get("path", "/"), backend["name"], port)
            continue
        for host in spec.get("hostnames") or []:
            for match in rule.get("matches") or [{}]:
                path = (match.get("path") or {}).get("value", "/")
                for backend in rule.get("backendRefs") or []:
                    yield _address(name, host, path, backend["name"], backend.get("port", 0))


def _address(endpoint: str, host: str, path: str, service: str, port: int) -> Address:
    url = f"https://{host}{path if path != '/' else ''}"
    return Address(endpoint=endpoint, url=url, service=service, port=port)
