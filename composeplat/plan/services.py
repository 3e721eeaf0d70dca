"""Cluster services: the DNS name of each service, and which of its ports lead where."""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.compose.model import Port, Service
from composeplat.compose.origins import Checker, port_path
from composeplat.names import clean, is_dns_label, is_label_key
from composeplat.plan.desired import Identity, Manifest


def container_ports(service: Service) -> tuple[tuple[int, str], ...]:
    return tuple(dict.fromkeys((port.target, port.protocol) for port in service.ports))


def service_ports(service: Service) -> dict[tuple[int, str], Port]:
    """Port of the cluster service -> what it leads to.

    A container's own port always leads to itself, as it does between Compose services; a published one is added, but
    not to a headless service, whose name leads to the pods themselves.
    """
    ports: dict[tuple[int, str], Port] = {}
    for port in service.ports:
        ports.setdefault((port.target, port.protocol), port)
    for port in service.ports:
        if port.published is not None and service.endpoint_mode != "dnsrr":
            ports.setdefault((port.published, port.protocol), port)
    return ports


def is_headless(service: Service) -> bool:
    """Say whether a service's name leads to its pods themselves: without ports, or with dnsrr."""
    return not service.ports or service.endpoint_mode == "dnsrr"


def plan_cluster_service(service: Service, identity: Identity, *, has_endpoint: bool = False) -> Manifest:
    """Give every service its DNS name.

    A headless one resolves before its pods are ready, so that pods can meet and check themselves by name; where an
    endpoint leads to it, it does not, as traffic must reach ready pods only.
    """
    name = clean(service.name)
    ports = service_ports(service)
    spec: Manifest = {}
    if is_headless(service):
        spec["clusterIP"] = "None"
        if has_readiness_check(service) and not has_endpoint:
            spec["publishNotReadyAddresses"] = True
    else:
        spec["type"] = "ClusterIP"
    spec["selector"] = identity.selector(name)
    if ports:
        spec["ports"] = [_service_port(number, port) for (number, _), port in ports.items()]
    return {"apiVersion": "v1", "kind": "Service", "metadata": identity.service_metadata(name, name), "spec": spec}


def has_readiness_check(service: Service) -> bool:
    """Say whether a service's pods are ready only once they pass a health check."""
    return service.health_check is not None and service.health_check.readiness


def own_name_aliases(service: Service) -> list[Manifest]:
    """Entries of a pod's hosts file: its own name, where its health check asks by that.

    A name with an address of its own leads to ready pods only, so the check that makes a pod ready would never pass.
    """
    name = clean(service.name)
    if is_headless(service) or service.health_check is None:
        return []
    # Not within another name, nor as the first part of a longer one.
    own = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", re.ASCII)
    if not any(own.search(word) for word in service.health_check.command):
        return []
    return [{"ip": "127.0.0.1", "hostnames": [name]}]


def add_image_ports(spec: Manifest, ports: Iterable[tuple[int, str]]) -> Manifest:
    """List the ports that an image exposes; the Service stays headless.

    A Service with a cluster IP would be deleted and recreated whenever an image starts to expose a port.
    """
    listed = [_service_port(number, Port(target=number, protocol=protocol)) for number, protocol in ports]
    return {**spec, "ports": listed} if listed else spec


def _service_port(number: int, port: Port) -> Manifest:
    name = port.name if _has_own_name(number, port) else _made_name(number, port)
    made: Manifest = {"name": name, "port": number, "targetPort": port.target}
    made["protocol"] = port.protocol.upper()
    if is_label_key(port.app_protocol):
        made["appProtocol"] = port.app_protocol
    return made


def _has_own_name(number: int, port: Port) -> bool:
    return bool(port.name) and number == port.target and is_dns_label(port.name)


def _made_name(number: int, port: Port) -> str:
    return f"{port.protocol}-{number}"


def check_ports(checker: Checker, service: Service) -> None:
    ports = service_ports(service)
    names = {
        _made_name(number, port): (number, protocol)
        for (number, protocol), port in ports.items()
        if not _has_own_name(number, port)
    }
    for port in service.ports:
        path = port_path(service.name, port)
        own = (port.target, port.protocol)
        if port.published is not None and (port.published, port.protocol) in ports:
            holder = ports[(port.published, port.protocol)]
            if holder.target != port.target and holder.published == port.published:
                checker.add(
                    "name-conflict", path, "publishes the same port as another one", "publish one of them elsewhere"
                )
            elif holder.target != port.target:
                message = "publishes a port that in the cluster is the container's own port, which is used"
                checker.add("no-effect", path, message)
        elif port.published is not None and port.published != port.target:
            message = "publishes a port that with dnsrr leads nowhere inside the cluster; use the container's own"
            checker.add("no-effect", path, message)
        if port.name and names.setdefault(port.name, own) != own:
            checker.add("name-conflict", path, "has the name of another port", "rename one of them")
        if port.name and not is_dns_label(port.name):
            checker.add("no-effect", path, "has a name that Kubernetes does not take, and that is left out")
        if port.app_protocol and not is_label_key(port.app_protocol):
            checker.add("no-effect", path, "has an app_protocol that Kubernetes does not take, and that is left out")
