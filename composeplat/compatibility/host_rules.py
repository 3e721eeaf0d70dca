"""Rules about host names: those by which services address another one whose name differs in a cluster.

Owns how such names are found and replaced; a message never quotes the text around one.
A name with an underscore is a host for Docker, and no Kubernetes object can have it. A ``container_name``, a
``hostname`` and an alias are hosts too, which no object has without full mode; so is a name that Compose gives to a
container, such as ``shop-db-1``, which no object ever has. The text that has such a name must change. So must one with
a host that only Docker has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping as Table

from composeplat.compatibility.port_rules import file_texts
from composeplat.compose.load import Loaded
from composeplat.compose.model import Service
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, find_node
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.parse.unsupported_keys import network_aliases
from composeplat.diagnostics import PathKey
from composeplat.names import clean, is_dns_label

#: A variable of such a name may be the host alone; elsewhere the same word may be the name of a database.
_HOST_VARIABLE = re.compile(r"HOST|ADDR|SERVER|UR[IL]|ENDPOINT|BROKER|NODE|PEER|UPSTREAM", re.IGNORECASE)
_LOOPBACK = "localhost"
_RUN_IT = "run what listens there as a service, or write an address that pods reach"
_OTHER_SERVER = (
    "write that of the cluster, usually kube-dns.kube-system.svc.cluster.local, where a service is"
    " NAME.NAMESPACE.svc.cluster.local"
)
#: Host -> what it is, and what there is instead.
_OF_DOCKER = {
    **dict.fromkeys(
        ("host.docker.internal", "gateway.docker.internal", "docker.for.mac.localhost", "172.17.0.1"),
        ("leads to this machine in Docker alone", _RUN_IT),
    ),
    "127.0.0.11": ("is Docker's DNS server", _OTHER_SERVER),
}
_HOST_OF_DOCKER = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, _OF_DOCKER))})(?![\w-]|\.\w)")
_COMMENT = re.compile(r"^\s*[#;].*", re.MULTILINE)
_HOST_OPTION = r"(?<![\w-])(?:-h|-H|--host|--hostname)[\s=]+"


def check_hosts(checker: Checker, renamed: Table[str, str]) -> None:
    """Report texts that have a host of ``renamed``, with the name that resolves."""
    for service in checker.project.services.values() if renamed else ():
        for where, text, path in _texts(checker, service):
            for name, host in renamed.items():
                if replace_host(text, where, name, host) != text:
                    source = "" if where in path else f" ({where})"
                    message = f"names the host '{name}'{source}, which is '{host}' in a cluster"
                    checker.add("unresolvable-host", path, message, f"write '{host}', or name the service so")


def check_docker_hosts(checker: Checker) -> None:
    """Report texts that have a host which only Docker has; in full mode ``extra_hosts`` may give it an address."""
    for service in checker.project.services.values():
        given = {name for name, _ in service.container.names.hosts}
        for where, text, path in _texts(checker, service):
            for host in dict.fromkeys(_HOST_OF_DOCKER.findall(_COMMENT.sub("", text))):
                if host not in given:
                    meaning, fix = _OF_DOCKER[host]
                    source = "" if where in path else f" ({where})"
                    checker.add("docker-only-host", path, f"names {host}{source}, which {meaning}", fix)


def renamed_hosts(loaded: Loaded) -> dict[str, str]:
    """Return the names that don't resolve in a cluster, with those that do."""
    services = loaded.project.services
    found = {name: clean(name) for name in services if clean(name) != name.lower()}
    reached = {*services, *map(clean, services)}
    for service in services:
        for name in _further_names(loaded.document, service):
            resolves = name.lower() in reached or (loaded.settings.full and is_dns_label(name.lower()))
            if name and not resolves:
                found.setdefault(name, clean(service))
        for name in _container_names(loaded, service):
            if name not in reached:
                found.setdefault(name, clean(service))
    return found


def _container_names(loaded: Loaded, service: str) -> tuple[str, str]:
    """Return the names that Compose gives to the first container of a service, and that its first version gave."""
    project = loaded.variables.lookup("COMPOSE_PROJECT_NAME")
    return f"{project}-{service}-1", f"{project}_{service}_1"


def _further_names(document: Node | None, service: str) -> Iterator[str]:
    """Yield the ``container_name`` of a service, its ``hostname`` without a domain, and its aliases in networks."""
    written = find_node(document, "services", service, "container_name")
    if isinstance(written, Scalar):
        yield written.text
    written = find_node(document, "services", service, "hostname")
    if isinstance(written, Scalar) and "." not in written.text and written.text != _LOOPBACK:
        yield written.text
    networks = find_node(document, "services", service, "networks")
    for _, network in networks if isinstance(networks, Mapping) else ():
        yield from (alias.text for alias in network_aliases(network))


def replace_host(text: str, where: str, name: str, host: str) -> str:
    """Replace a name where it is a host: in a URL, before a port, after an option, as the value of a variable."""
    if text == name and _HOST_VARIABLE.search(where):
        return host
    written = re.escape(name)
    pattern = rf"({_HOST_OPTION}|(?<=//)|(?<=@)|(?<![\w./@-])(?={written}:\d)){written}(?![\w-]|\.\w)"
    return re.sub(pattern, lambda found: found[1] + host, text)


def _texts(checker: Checker, service: Service) -> Iterator[tuple[str, str, PathKey]]:
    """Yield the texts that configure a service, with their names and places."""
    path = ("services", service.name)
    for variable, value in service.variables.items():
        yield variable, value, _variable_path(checker, service, variable)
    checked = service.health_check.command if service.health_check is not None else ()
    for key, args in (("entrypoint", service.entrypoint), ("command", service.command), ("healthcheck", checked)):
        yield key, "\n".join(args or ()), (*path, key)
    for index, mount in enumerate(service.mounts):
        yield from ((name, text, mount_path(service.name, index)) for name, text in file_texts(mount))


def _variable_path(checker: Checker, service: Service, variable: str) -> PathKey:
    path: PathKey = ("services", service.name, "environment")
    if variable not in service.environment:
        return ("services", service.name, "env_file", variable)
    return (*path, variable) if checker.origins.has(*path, variable) else path


def written_variable(environment: Node | None, name: str) -> str | None:
    """Return the text of a variable as the file has it, before substitution; none if the file does not set it."""
    if isinstance(environment, Mapping):
        value = environment.get(name)
        return value.written if isinstance(value, Scalar) else None
    items = environment.items if isinstance(environment, Sequence) else []
    texts = (item.written for item in items if isinstance(item, Scalar))
    return next((text.partition("=")[2] for text in texts if text.startswith(f"{name}=")), None)
