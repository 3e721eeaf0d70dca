"""Rules about host names: those by which services address another one whose name differs in a cluster.

Owns how such names are found and replaced; a message never quotes the text around one.
A name with an underscore is a host for Docker, and no Kubernetes object can have it. A ``container_name``, a
``hostname`` and an alias, also that of a link, are hosts too, which no object has without full mode; so is a name that
Compose gives to a container, such as ``shop-db-1``, or Swarm to all of them, as ``tasks.db``, and an address that a
file gives to a service, which no object ever has. The text that has such a name must change. So must one with a host
that only Docker has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping as Table
from dataclasses import dataclass

from composeplat.compatibility.port_rules import config_texts, file_texts
from composeplat.compose.load import Loaded
from composeplat.compose.model import Service
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, find_node
from composeplat.compose.origins import Checker, file_mount_path, mount_path
from composeplat.compose.parse.unsupported_keys import network_aliases
from composeplat.diagnostics import PathKey
from composeplat.names import clean, is_dns_label

#: A variable of such a name may be the host alone; elsewhere the same word may be the name of a database.
HOST_VARIABLE = re.compile(r"HOST|ADDR|SERVER|UR[IL]|ENDPOINT|BROKER|NODE|PEER|UPSTREAM", re.IGNORECASE)
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
#: Also as the default of a variable, before substitution.
_HOST_OF_DOCKER = re.compile(
    rf"(?:(?<=:-)|(?<![\w.-]))({'|'.join(map(re.escape, _OF_DOCKER))})(?![\w-]|\.\w)(?::(\d{{1,5}}))?"
)
_ADDRESS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
_COMMENT = re.compile(r"^[ \t]*[#;].*", re.MULTILINE)
_HOST_OPTION = r"(?<![\w-])(?:-h|-H|--host|--hostname)[\s=]+"
#: A proxy can have the public name of a service as an alias, so that programs reach it by its URL: that is for browsers
#: and certificates too, and no name of the cluster takes its place.
_PUBLIC = re.compile(
    r"\.(?!(?:corp|docker|home|internal|intranet|lan|local|localdomain|localhost|private|test)\Z)[a-z]{2,}\Z"
)
#: In a URL, before a port, or after an option.
_HOST = re.compile(rf"({_HOST_OPTION}|(?<=//)|(?<=@)|(?<![\w./@-])(?=\w[\w.-]*:\d))(\w[\w.-]*)")
#: A name as the default of a variable, before substitution, and what shows that it is a host.
_DEFAULT = re.compile(r"((?://|@)?\$\{\w+:?-)(\w[\w.-]*)(\}(?::[\d$])?)")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that configures a service: the value of a variable, a command, or a mounted file."""

    name: str
    text: str
    path: PathKey

    @property
    def source(self) -> str:
        """Its name, where its place does not have it."""
        return "" if self.name in self.path else f" ({self.name})"


def check_hosts(checker: Checker, renamed: Table[str, str]) -> None:
    """Report texts that have a host which no cluster has: one of ``renamed``, or one that only Docker has."""
    published = published_addresses(checker.project.services.values())
    for service in checker.project.services.values():
        given = {name for name, _ in service.container.names.hosts}
        _check_given(checker, service, renamed)
        for text in _texts(checker, service):
            _check_renamed(checker, text, renamed)
            _check_docker(checker, text, given, published)


def _check_renamed(checker: Checker, text: _Text, renamed: Table[str, str]) -> None:
    for name in dict.fromkeys(_hosts_in(text.text, text.name, renamed)):
        host = renamed[name]
        message = f"names the host '{name}'{text.source}, which is '{host}' in a cluster"
        other = "" if _ADDRESS.fullmatch(name) else ", or name the service so"
        checker.add("unresolvable-host", text.path, message, f"write '{host}'{other}")


def _check_given(checker: Checker, service: Service, renamed: Table[str, str]) -> None:
    """Report names to which ``extra_hosts`` gives the address that another service has in Compose."""
    for name, address in service.container.names.hosts:
        if address in renamed:
            message = f"gives '{name}' the address of '{renamed[address]}', which is another one in a cluster"
            hint = f"leave it out, and write '{renamed[address]}' wherever '{name}' is used"
            checker.add("unresolvable-host", ("services", service.name, "extra_hosts"), message, hint)


def _check_docker(checker: Checker, text: _Text, given: Container[str], published: Table[str, str]) -> None:
    """Report hosts of Docker, once each; in full mode ``extra_hosts`` may give one an address."""
    found: dict[str, str] = {}
    for host, port in _HOST_OF_DOCKER.findall(_COMMENT.sub("", text.text)):
        found[host] = found.get(host) or published.get(port, "")
    for host, address in found.items():
        if host not in given:
            meaning, fix = _OF_DOCKER[host]
            fix = f"write '{address}': this port of the machine is that of the service" if address else fix
            checker.add("docker-only-host", text.path, f"names {host}{text.source}, which {meaning}", fix)


def published_addresses(services: Iterable[Service]) -> dict[str, str]:
    """Return the ports that Docker would publish on this machine, with the services' own addresses."""
    return {
        str(port.published): f"{clean(service.name)}:{port.target}"
        for service in services
        for port in service.ports
        if port.published is not None
    }


def replace_docker_hosts(text: str, published: Table[str, str]) -> str:
    """Replace this machine with a published port by the service that has this port."""
    return _HOST_OF_DOCKER.sub(lambda found: published.get(found[2] or "", found[0]), text)


def renamed_hosts(loaded: Loaded, not_started: Container[str] = ()) -> dict[str, str]:
    """Return the names that don't resolve in a cluster, with those that do.

    Services that Compose does not start have no names in Docker either: one of them can have that of another one.
    """
    services = [name for name in loaded.project.services if name not in not_started]
    found = {name: clean(name) for name in services if clean(name) != name.lower()}
    reached = {*services, *map(clean, services)}
    linked = _linked_names(loaded.document, services)
    for service in services:
        for name in (*_further_names(loaded.document, service), *linked[service]):
            resolves = name.lower() in reached or (loaded.settings.full and is_dns_label(name.lower()))
            if name and not resolves:
                found.setdefault(name, clean(service))
        for name in _container_names(loaded, service):
            if name not in reached:
                found.setdefault(name, clean(service))
    return found


def _container_names(loaded: Loaded, service: str) -> tuple[str, ...]:
    """Return the names of a service's containers: the first one of Compose, also of its first version; all of Swarm."""
    project = loaded.variables.lookup("COMPOSE_PROJECT_NAME")
    return f"{project}-{service}-1", f"{project}_{service}_1", f"tasks.{service}"


def _further_names(document: Node | None, service: str) -> Iterator[str]:
    """Yield the ``container_name`` of a service, its ``hostname`` without a domain, its aliases and its addresses."""
    written = find_node(document, "services", service, "container_name")
    if isinstance(written, Scalar):
        yield written.text
    written = find_node(document, "services", service, "hostname")
    if isinstance(written, Scalar) and "." not in written.text and written.text != _LOOPBACK:
        yield written.text
    networks = find_node(document, "services", service, "networks")
    for _, network in networks if isinstance(networks, Mapping) else ():
        yield from (alias.text for alias in network_aliases(network) if not _PUBLIC.search(alias.text))
        address = network.get("ipv4_address") if isinstance(network, Mapping) else None
        if isinstance(address, Scalar) and _ADDRESS.fullmatch(address.text):
            yield address.text


def _linked_names(document: Node | None, services: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that ``links`` give to each service; none that means two services, or may be public."""
    meant: dict[str, set[str]] = defaultdict(set)
    for service in services:
        links = find_node(document, "services", service, "links")
        for link in links if isinstance(links, Sequence) else ():
            other, _, name = link.text.partition(":") if isinstance(link, Scalar) else ("", "", "")
            meant[name].add(other)
    found: dict[str, list[str]] = defaultdict(list)
    for name, others in meant.items():
        if len(others) == 1 and not _PUBLIC.search(name):
            found[others.pop()].append(name)
    return found


def _hosts_in(text: str, variable: str, renamed: Table[str, str]) -> Iterator[str]:
    """Yield the names in a text that are hosts; the value of a variable may be the host alone."""
    if text in renamed and HOST_VARIABLE.search(variable):
        yield text
    yield from (name for found in _HOST.finditer(text) if (name := found[2].rstrip(".")) in renamed)


def replace_hosts(text: str, variable: str, renamed: Table[str, str]) -> str:
    """Replace the names in a text that are hosts; the value of a variable may be the host alone."""
    if text in renamed and HOST_VARIABLE.search(variable):
        return renamed[text]

    def replace(found: re.Match[str]) -> str:
        name = found[2].rstrip(".")
        return f"{found[1]}{renamed.get(name, name)}{found[2][len(name) :]}"

    def replace_default(found: re.Match[str]) -> str:
        is_host = found[1][0] != "$" or found[3] != "}" or (found[0] == text and HOST_VARIABLE.search(variable))
        return f"{found[1]}{renamed.get(found[2], found[2])}{found[3]}" if is_host else found[0]

    return _HOST.sub(replace, _DEFAULT.sub(replace_default, text))


def _texts(checker: Checker, service: Service) -> Iterator[_Text]:
    path = ("services", service.name)
    for variable, value in service.variables.items():
        yield _Text(variable, value, variable_path(checker, service, variable))
    checked = service.health_check.command if service.health_check is not None else ()
    for key, args in (("entrypoint", service.entrypoint), ("command", service.command), ("healthcheck", checked)):
        yield _Text(key, "\n".join(args or ()), (*path, key))
    for index, mount in enumerate(service.mounts):
        yield from (_Text(name, text, mount_path(service.name, index)) for name, text in file_texts(mount))
    for index, name, text in config_texts(checker.project, service):
        yield _Text(name, text, file_mount_path(service.name, index))


def variable_path(checker: Checker, service: Service, variable: str) -> PathKey:
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
