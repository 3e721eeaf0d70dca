"""Rules about servers that listen at the name of their own service, or look for themselves by it.

Owns how these are recognized, and the text that listens everywhere instead.
In Docker the name of a service is the address of its container. Here it leads to the cluster IP of its Service, at
which no program can listen, or, where a health check asks by that name, to the loopback address of the pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address

from composeplat.compatibility.port_rules import BY_POD
from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.names import clean
from composeplat.plan.clusters import expand_ranges
from composeplat.plan.services import KAFKA_LISTENERS, is_headless

#: All addresses of a container: 0.0.0.0.
_EVERYWHERE = str(IPv4Address(0))
#: Variables that may have all addresses: of Kafka, of ZooKeeper, whose own entry is that of its server, and of
#: Elasticsearch.
_ANY_ADDRESS = re.compile(
    rf"{KAFKA_LISTENERS.pattern}|ZOO(?:KEEPER)?_SERVERS|(?:network|http|transport)\.(?:bind_)?host", re.ASCII
)
#: Those of Cassandra and Spark need a single address.
_SINGLE_ADDRESS = re.compile(r"CASSANDRA_LISTEN_ADDRESS|SPARK_MASTER_(?:HOST|IP)", re.ASCII)
#: Options of Redpanda, CockroachDB, YugabyteDB and the like; those with 'advertise' are for others.
_OPTION = re.compile(
    r"(?<![\w-])(--(?:kafka|listen|http|sql|pandaproxy|rpc|rpc[-_]bind|schema-registry)[-_]addr(?:ess(?:es)?)?)[\s=]+(\S+)",
    re.ASCII,
)
#: The servers of MinIO, of which each has to find itself; numbers may be a range.
_MINIO_VARIABLE = "MINIO_VOLUMES"
_MINIO_SERVER = re.compile(r"(?<!\S)https?://([\w.{}-]+)(?::\d+)?/", re.ASCII)


def check_listeners(checker: Checker) -> None:
    for service in checker.project.services.values():
        if is_headless(service) or _has_address(service):
            continue
        name = service.name
        for key, shown in _own_listeners(service):
            message = f"makes it listen at '{name}', its own name{shown}, which in a cluster is not the pod's address"
            hint = f"write {_EVERYWHERE} there, or leave it out, as the name is for others; or {BY_POD}"
            checker.add("own-name-listener", ("services", service.name, *key), message, hint)
        for key in _own_entries(service):
            message = f"makes it look for itself at '{name}', its own name, which in a cluster is not the pod's address"
            checker.add("own-name-listener", ("services", service.name, *key), message, BY_POD)


def _has_address(service: Service) -> bool:
    """Whether the pod knows its own address by this name, which its ``hostname`` has in full mode."""
    return service.workload_kind != "StatefulSet" and service.container.names.hostname == clean(service.name)


def _own_listeners(service: Service) -> Iterator[tuple[tuple[str, ...], str]]:
    for variable, value in service.variables.items():
        is_address = _ANY_ADDRESS.fullmatch(variable) or _SINGLE_ADDRESS.fullmatch(variable)
        if is_address and listen_everywhere(value, service) != value:
            yield ("environment", variable), ""
    for key, args in (("entrypoint", service.entrypoint), ("command", service.command)):
        options = _OPTION.findall("\n".join(args or ()))
        if own := [option for option, value in options if listen_everywhere(value, service) != value]:
            yield (key,), f" ({', '.join(own)})"


def _own_entries(service: Service) -> Iterator[tuple[str, ...]]:
    """Yield the keys that list the servers of MinIO, this one among others."""
    texts: dict[tuple[str, ...], str]
    texts = {("environment", _MINIO_VARIABLE): service.variables.get(_MINIO_VARIABLE, "")}
    for key, args in (("entrypoint", service.entrypoint), ("command", service.command)):
        texts[(key,)] = " ".join(args) if args and "server" in args else ""
    for place, text in texts.items():
        hosts = {name for host in _MINIO_SERVER.findall(text) for name in expand_ranges(host)}
        if not hosts.isdisjoint((service.name, clean(service.name))) and len(hosts) > 1:
            yield place


def may_listen_everywhere(variable: str) -> bool:
    """Return whether a variable may have all addresses in the place of a name."""
    return _ANY_ADDRESS.fullmatch(variable) is not None


def listen_everywhere(text: str, service: Service) -> str:
    """Replace the own name of a service, as the file or a cluster has it, in a list of addresses."""
    names = "|".join(map(re.escape, (service.name, clean(service.name))))
    return re.sub(rf"(?:(?<=//)|(?<![^,;=\s]))(?:{names})(?=:\d|[,;\s]|\Z)", _EVERYWHERE, text, flags=re.ASCII)
