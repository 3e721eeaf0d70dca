"""Cluster services: the DNS name of each service, and its ports.

Owns which ports a cluster service has, when it is headless, and the checks of ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.compose.model import Port, Service
from composeplat.compose.network_model import HOST_NETWORK
from composeplat.compose.origins import Checker, port_path
from composeplat.names import clean, is_dns_label, is_label_key, is_service_name
from composeplat.plan.desired import Manifest
from composeplat.plan.identity import Identity


def container_ports(service: Service) -> tuple[tuple[int, str], ...]:
    return tuple(dict.fromkeys((port.target, port.protocol) for port in service.ports))


def service_ports(service: Service) -> dict[tuple[int, str], Port]:
    """Map the ports of the cluster service, by number and protocol, to their targets.

    A container port keeps its number, as between Compose services. Published ports are added, but not to a headless
    service, whose name resolves to the pods.
    """
    ports: dict[tuple[int, str], Port] = {}
    for port in service.ports:
        ports.setdefault((port.target, port.protocol), port)
    for port in service.ports:
        if port.published is not None and service.endpoint_mode != "dnsrr":
            ports.setdefault((port.published, port.protocol), port)
    return ports


def is_headless(service: Service) -> bool:
    """Check whether the name of a service resolves to its pods: without ports, or with dnsrr."""
    return not service.ports or service.endpoint_mode == "dnsrr"


def has_early_name(service: Service, *, has_endpoint: bool, is_member: bool) -> bool:
    """Check whether the name of a service leads to pods that are not ready too.

    That of a headless service does, so that its pods find each other, and check themselves, by name. With an endpoint
    it does not: traffic must reach ready pods only. The members of a cluster are ready only once they have met.
    """
    return has_readiness_check(service) and (is_member or (is_headless(service) and not has_endpoint))


def plan_cluster_service(service: Service, identity: Identity, *, has_early_name: bool) -> Manifest:
    """Plan the cluster service, which gives a service its DNS name."""
    name = clean(service.name)
    ports = service_ports(service)
    spec: Manifest = {}
    if is_headless(service):
        spec["clusterIP"] = "None"
    else:
        spec["type"] = "ClusterIP"
    if has_early_name:
        spec["publishNotReadyAddresses"] = True
    spec["selector"] = identity.selector(clean(service.pod_owner))
    if ports:
        spec["ports"] = [_service_port(number, port) for (number, _), port in ports.items()]
    return {"apiVersion": "v1", "kind": "Service", "metadata": identity.service_metadata(name, name), "spec": spec}


def has_readiness_check(service: Service) -> bool:
    """Check whether a health check decides the readiness of a service's pods."""
    return service.health_check is not None and service.health_check.readiness


def own_name_aliases(service: Service, *, has_early_name: bool) -> list[Manifest]:
    """Plan an entry of the pod's hosts file for its own names that its health check uses, or as its only controller.

    A name that leads to ready pods only would keep the check from passing that makes a pod ready. The names of the
    other services in the pod are its own too.
    """
    own = [] if has_early_name else _names_of_services(service)
    names = [name for name in own if _checks_itself(service, name) or _is_own_controller(service, name)]
    others = [clean(member) for member in service.pod.members if member != service.name]
    names += [name for name in others if _checks_itself(service, name)]
    return [{"ip": "127.0.0.1", "hostnames": names}] if names else []


def _names_of_services(service: Service) -> list[str]:
    """Return the names that lead to a service by a Service: not a host name that its pods have themselves."""
    of_pods = "" if service.workload_kind == "StatefulSet" else service.container.names.hostname
    further = (name for name in service.networking.aliases if is_service_name(name) and name != of_pods)
    return list(dict.fromkeys((clean(service.name), *further)))


def _checks_itself(service: Service, name: str) -> bool:
    args = service.health_check.command if service.health_check is not None else ()
    return any(name in arg for arg in args) and _has_host(args, name)


def _is_own_controller(service: Service, name: str) -> bool:
    """Check for a Kafka broker that is its only controller, which it reaches at a port that it need not list.

    One that listens at its own name must not listen at the loopback address alone.
    """
    if is_headless(service):
        return False
    variables = {variable.upper(): value for variable, value in service.variables.items()}
    hosts = (set(_HOST.findall(value)) for variable, value in variables.items() if _CONTROLLERS.fullmatch(variable))
    listeners = (value for variable, value in variables.items() if KAFKA_LISTENERS.fullmatch(variable))
    return {name} in hosts and not any(f"//{name}:" in value for value in listeners)


#: The text before a word that is no host: a program's place, a part of a path, a user, a database, a process.
_NO_HOST = re.compile(
    r"(?:(?:^|[|&;(`\n]|\0-c\0)\s*|(?<!/)/|(?:user|dbname|database)=|(?:^|[\s\0])"
    r"(?:-[UudD]|--user(?:name)?|--db(?:name)?|--database|service|pgrep|pidof|pkill|killall)[\s\0=]+)\Z",
    re.ASCII,
)
_MAX_BEFORE = 40
#: The variables with which images of Kafka set its controllers, and the addresses that it listens at.
_CONTROLLERS = re.compile(r"(?:\w+_)?CONTROLLER_QUORUM_(?:VOTERS|BOOTSTRAP_SERVERS)", re.ASCII)
KAFKA_LISTENERS = re.compile(r"KAFKA_(?:CFG_)?LISTENERS", re.ASCII)
_HOST = re.compile(r"([\w.-]+):\d", re.ASCII)


def _has_host(args: Iterable[str], name: str) -> bool:
    """Check for a name that may be a host, and is no part of a longer one."""
    text = "\0".join(args)
    # Compiling this pattern takes as long as half of all else that plans a service.
    for found in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)(:\d)?", text, re.ASCII):
        if found[1] or not _NO_HOST.search(text[max(found.start() - _MAX_BEFORE, 0) : found.start()]):
            return True
    return False


def add_image_ports(spec: Manifest, ports: Iterable[tuple[int, str]]) -> Manifest:
    """Add the ports that an image exposes to the spec of a headless Service.

    It stays headless: a Service with a cluster IP would have to be recreated when an image begins to expose a port.
    """
    listed = [_service_port(number, Port(target=number, protocol=protocol)) for number, protocol in ports]
    return {**spec, "ports": listed} if listed else spec


def _service_port(number: int, port: Port) -> Manifest:
    name = port.name if _has_own_name(number, port) else _default_name(number, port)
    fields: Manifest = {"name": name, "port": number, "targetPort": port.target}
    fields["protocol"] = port.protocol.upper()
    if is_label_key(port.app_protocol):
        fields["appProtocol"] = port.app_protocol
    return fields


def _has_own_name(number: int, port: Port) -> bool:
    return bool(port.name) and number == port.target and is_dns_label(port.name)


def _default_name(number: int, port: Port) -> str:
    return f"{port.protocol}-{number}"


def check_ports(checker: Checker, service: Service) -> None:
    ports = service_ports(service)
    names = {
        _default_name(number, port): (number, protocol)
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
            message = "publishes a port that with dnsrr does not exist inside the cluster; use the container's own"
            checker.add("no-effect", path, message)
        if port.name and names.setdefault(port.name, own) != own:
            checker.add("name-conflict", path, "has the name of another port", "rename one of them")
        if port.name and not is_dns_label(port.name):
            checker.add("no-effect", path, "has a name that is invalid for Kubernetes, and is left out")
        if port.app_protocol and not is_label_key(port.app_protocol):
            checker.add("no-effect", path, "has an app_protocol that is invalid for Kubernetes, and is left out")


def check_ports_of_nodes(checker: Checker) -> None:
    """Report services that have the same port of their nodes: their pods can't run on one node."""
    services = checker.project.services
    holders: dict[tuple[int, str], str] = {}
    for service in services.values():
        owner = services.get(service.pod_owner, service)
        if service.is_job or owner.networking.mode != HOST_NETWORK or owner.replicas == 0:
            continue
        for port in service.ports:
            holder = holders.setdefault((port.target, port.protocol), owner.name)
            if holder != owner.name:
                message = f"has a port of its node that '{holder}' has too: their pods can't run on one node"
                hint = "give one of them another port, or keep them on different nodes with placement.constraints"
                checker.add("needs-cluster-setting", port_path(service.name, port), message, hint)
