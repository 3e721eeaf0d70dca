"""Rules about servers that listen at the name of their own service.

Owns how these are recognized, and the text that listens everywhere instead.
In Docker the name of a service is the address of its container. Here it leads to the cluster IP of its Service, at
which no program can listen, or, where a health check asks by that name, to the loopback address of the pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.names import clean
from composeplat.plan.services import KAFKA_LISTENERS, is_headless

#: All addresses of a container: 0.0.0.0.
_EVERYWHERE = str(IPv4Address(0))
#: Variables of Kafka, of ZooKeeper, whose own entry is the address of its server, of Spark and of Elasticsearch.
_VARIABLE = re.compile(
    rf"{KAFKA_LISTENERS.pattern}|ZOO(?:KEEPER)?_SERVERS|SPARK_MASTER_(?:HOST|IP)|(?:network|http|transport)\.(?:bind_)?host",
    re.ASCII,
)
#: Options of Redpanda, CockroachDB, YugabyteDB and the like; those with 'advertise' are for others.
_OPTION = re.compile(
    r"(?<![\w-])(--(?:kafka|listen|http|sql|pandaproxy|rpc|rpc[-_]bind|schema-registry)[-_]addr(?:ess(?:es)?)?)[\s=]+(\S+)",
    re.ASCII,
)


def check_listeners(checker: Checker) -> None:
    for service in checker.project.services.values():
        if is_headless(service) or _has_address(service):
            continue
        for key, shown in _own_listeners(service):
            name = clean(service.name)
            message = f"makes it listen at '{name}', its own name{shown}, which in a cluster is not the pod's address"
            hint = f"write {_EVERYWHERE} there, or leave it out; the name is for the addresses that are advertised"
            checker.add("own-name-listener", ("services", service.name, *key), message, hint)


def _has_address(service: Service) -> bool:
    """Whether the pod knows its own address by this name, which its ``hostname`` has in full mode."""
    return service.workload_kind != "StatefulSet" and service.container.names.hostname == clean(service.name)


def _own_listeners(service: Service) -> Iterator[tuple[tuple[str, ...], str]]:
    for variable, value in service.variables.items():
        if _VARIABLE.fullmatch(variable) and listen_everywhere(value, service) != value:
            yield ("environment", variable), ""
    for key, args in (("entrypoint", service.entrypoint), ("command", service.command)):
        options = _OPTION.findall("\n".join(args or ()))
        if own := [option for option, value in options if listen_everywhere(value, service) != value]:
            yield (key,), f" ({', '.join(own)})"


def listen_everywhere(text: str, service: Service) -> str:
    """Replace the own name of a service in a list of addresses."""
    name = re.escape(clean(service.name))
    return re.sub(rf"(?:(?<=//)|(?<![^,;=\s])){name}(?=:\d|[,;\s]|\Z)", _EVERYWHERE, text, flags=re.ASCII)
