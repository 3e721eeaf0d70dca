"""Where an environment answers, as the cluster has it: what was deployed counts, not what would be now.

Owns reading addresses out of Ingresses and HTTPRoutes.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from dataclasses import dataclass

from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.snapshot import Object
from composeplat.cluster.watching import environment_selector

INGRESS = ("networking.k8s.io/v1", "Ingress")
ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    endpoint: str
    url: str
    service: str
    """The name of the cluster service that is led to."""
    port: int


def find_addresses(api: Api, namespace: str, environment: str) -> list[Address]:
    selector = environment_selector(environment)
    found = api.items(kind_path(*INGRESS, namespace) + selector)
    try:
        found += api.items(kind_path(*ROUTE, namespace) + selector)
    except ApiError as error:
        # A cluster without the Gateway API has none, nor has one whose user may not see them.
        if error.status not in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            raise
    return read_addresses(found)


def read_addresses(objects: Iterable[Object]) -> list[Address]:
    """The addresses of Ingresses and HTTPRoutes, by name, shorter paths first."""
    found = [one for item in objects for one in _of(item)]
    return sorted(dict.fromkeys(found), key=lambda one: (one.endpoint, one.url, one.service, one.port))


def _of(item: Object) -> Iterable[Address]:
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
