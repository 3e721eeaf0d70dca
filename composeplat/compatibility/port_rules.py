"""Rules about ports: those by which other services address a service, and those that its image exposes.

Owns how addresses are found in variables, commands and mounted files; a message never quotes them.
In Compose every port of a container is reachable by the name of its service. Here a service with ports has a cluster
service, whose name leads to these ports only; without ports, its name leads to the pods, on every port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compose.file_model import FileKind
from composeplat.compose.model import Mount, Project, Service
from composeplat.compose.origins import Checker, port_path
from composeplat.diagnostics import PathKey, join_some
from composeplat.names import clean
from composeplat.plan.endpoints import NOT_HTTP
from composeplat.plan.never_public import NEVER_PUBLIC
from composeplat.plan.services import is_headless, service_ports
from composeplat.registry.image_config import ImageFacts

#: Lower numbers after a name are rather the version of an image.
_FIRST_PORT = 80
_LAST_PORT = 65535
_MAX_LISTED = 4
#: The usual ports of databases, queues and the like, which clients often do not name.
_USUAL_PORTS = NEVER_PUBLIC | NOT_HTTP.keys()
#: A name may have several ports, as ZooKeeper's servers do: zoo1:2888:3888.
_WITH_PORT = re.compile(r"(?<![\w.:-])([\w.-]+):(\d{1,5}(?::\d{1,5})*)(?![\w.@-])", re.ASCII)
#: The host of a whole text: a URL without a port, or no more than the name.
_WITHOUT_PORT = re.compile(r"(?:\A|(?<=//)|(?<=@))([\w.-]+)(?=/|\Z)", re.ASCII)
#: A host and its port as the next value, in XML, YAML, JSON or properties.
_PORT_AFTER_HOST = re.compile(
    r"(?<![a-z])host(?:_?name)?[\"'>\s:=]{1,20}([\w.-]+)(?:</\w+>)?[\"',;\s<]{1,40}"
    r"(?:[\w.-]{1,80}[_.-])?port[\"'>\s:=]{1,20}(\d{2,5})(?!\w)",
    re.ASCII | re.IGNORECASE,
)
_HOST_VARIABLE = re.compile(r"(.+[_.])(?:HOST|HOSTNAME|HOST_NAME|SERVER|ADDR|ADDRESS)", re.ASCII)
_PORT_ENDINGS = ("PORT", "PORT_NUMBER", "PUBLISH_PORT", "SUBSCRIBE_PORT")
_NUMBER = re.compile(r"\d{2,5}", re.ASCII)
#: Files of a mounted folder that no program of a container reads its configuration from.
_NO_CONFIGURATION = re.compile(r"(?:.*/)?(?:(?:docker-)?compose[\w.-]*\.ya?ml|[^/]*\.md)", re.IGNORECASE)
#: Variables that list the other servers of a cluster, and the ports at which these talk to each other.
_CLUSTER_PORTS = {
    "CASSANDRA_SEEDS": (7000,),
    "DISCOVERY.SEED_HOSTS": (9300,),
    "DISCOVERY.ZEN.PING.UNICAST.HOSTS": (9300,),
    "SE_EVENT_BUS_HOST": (4442, 4443),
}
#: The members of a cluster that one joins: of Consul, Nomad, Vault, CockroachDB and the like, and of Galera.
_JOINED = re.compile(
    r"(?<![\w-])--?(?:retry[-_])?join(?:[=\s]+(?:provider=\S+\s)?)(\S+)|gcomm://([^\s?\"']+)", re.ASCII
)
BY_POD = "set deploy.endpoint_mode: dnsrr, with which the name leads to the pod"


@dataclass(frozen=True, slots=True)
class Use:
    """A port at which a service addresses another, and where it says so; 0 where it names no port."""

    port: int
    user: str
    where: str


def check_ports(
    checker: Checker, images: ImageAnswers, uses: Mapping[str, Iterable[Use]], joined: Mapping[str, Use]
) -> None:
    for service in checker.project.services.values():
        exposed = exposed_ports(service, images)
        if service.name in joined:
            _report_joined(checker, service, joined[service.name])
        else:
            _check_reach(checker, service, unreachable_ports(service, uses[service.name], exposed))
        if exposed and not any(map(_is_unread, service.mounts)):
            _check_exposed(checker, service, exposed)


def exposed_ports(service: Service, images: ImageAnswers) -> list[int]:
    """Return the TCP ports that the image of a service exposes; empty if they are not known."""
    facts = images.get(service.image) if service.is_pulled else None
    return [port for port, protocol in facts.ports if protocol == "tcp"] if isinstance(facts, ImageFacts) else []


# what others address --------------------------------------------------------------------------------------------------


def _check_reach(checker: Checker, service: Service, missing: Mapping[int, str]) -> None:
    if not missing:
        return
    used = join_some([f"{port} by {user}" for port, user in missing.items()], _MAX_LISTED)
    reached = ", ".join(dict.fromkeys(str(port) for port, _ in service_ports(service)))
    message = f"is addressed at port {used}; in a cluster its name leads to {reached} only"
    hint = f"add to its 'expose': {', '.join(map(str, missing))}"
    checker.add("unreachable-port", ("services", service.name), message, hint, at_key=True)


def _report_joined(checker: Checker, service: Service, use: Use) -> None:
    reached = ", ".join(dict.fromkeys(str(port) for port, _ in service_ports(service)))
    message = (
        f"is joined by '{use.user}' ({use.where}), which names no port; in a cluster its name leads to {reached} only"
    )
    checker.add("unreachable-port", ("services", service.name), message, BY_POD, at_key=True)


def _by_host(project: Project) -> dict[str, str]:
    """Return the services by the hosts that others may write for them."""
    return {clean(name): name for name in project.services} | {name: name for name in project.services}


def find_joined(project: Project) -> Mapping[str, Use]:
    """Return the services that others join as members of a cluster at a port that they do not name, if it is listed."""
    services = _by_host(project)
    joined: dict[str, Use] = {}
    for user in project.services.values():
        for where, text in configuration_texts(project, user):
            hosts = (host for found in _JOINED.findall(text) for part in found for host in re.split("[,;]", part))
            for name in (services[host] for host in hosts if services.get(host, user.name) != user.name):
                if not is_headless(project.services[name]):
                    joined.setdefault(name, Use(0, user.name, where))
    return joined


def unreachable_ports(service: Service, uses: Iterable[Use], exposed: Iterable[int]) -> dict[int, str]:
    """Return the ports by which others address a service and do not reach it, and who does."""
    if is_headless(service):
        return {}
    reached = {port for port, protocol in service_ports(service) if protocol == "tcp"}
    # Clients that name no port use the usual one of the program, unless that is set to listen on another.
    is_usual = not reached & _USUAL_PORTS and {port.target for port in service.ports} <= set(exposed)
    usual = sorted(_USUAL_PORTS.intersection(exposed)) if is_usual else []
    found: dict[int, str] = {}
    for use in uses:
        for number in [use.port] if use.port else usual:
            if number not in reached:
                found.setdefault(number, f"'{use.user}' ({use.where})")
    return dict(sorted(found.items()))


def find_uses(project: Project) -> Mapping[str, list[Use]]:
    """Return for each service how the others address it; each text is read once, for all names."""
    services = _by_host(project)
    uses: dict[str, list[Use]] = {name: [] for name in project.services}
    for user in project.services.values():
        for host, port, where in _all_addresses(project, user):
            name = services.get(host, user.name)
            if name != user.name:
                uses[name].append(Use(port, user.name, where))
    return uses


def _all_addresses(project: Project, user: Service) -> Iterator[tuple[str, int, str]]:
    for where, text in configuration_texts(project, user):
        for host, port in _addresses(text, is_value=where in user.variables):
            yield host, port, where
    yield from _addresses_of_variables(user.variables)


def _addresses_of_variables(variables: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield the hosts whose ports are in other variables, as in DB_HOST and DB_PORT, or follow from the name."""
    by_name = {name.upper(): (name, value) for name, value in variables.items()}
    for capitals, (name, value) in by_name.items():
        for port in _CLUSTER_PORTS.get(capitals, ()):
            yield from ((host.strip(), port, name) for host in value.split(","))
        if found := _HOST_VARIABLE.fullmatch(capitals):
            ports = (by_name.get(f"{found[1]}{ending}", ("", "")) for ending in _PORT_ENDINGS)
            numbers = ((where, int(port)) for where, port in ports if _NUMBER.fullmatch(port))
            yield from ((value, number, where) for where, number in numbers if _is_port(number))


def _addresses(text: str, *, is_value: bool) -> list[tuple[str, int]]:
    """Return the hosts in a text, each once with its ports in order; 0 for the host of the value of a variable."""
    ports = {(host, int(port)) for host, listed in _WITH_PORT.findall(text) for port in listed.split(":")}
    ports |= {(host, int(port)) for host, port in _PORT_AFTER_HOST.findall(text)}
    alone = dict.fromkeys(_WITHOUT_PORT.findall(text)) if is_value else ()
    return [*sorted(pair for pair in ports if _is_port(pair[1])), *((host, 0) for host in alone)]


def _is_port(number: int) -> bool:
    return _FIRST_PORT <= number <= _LAST_PORT or number in NOT_HTTP


def configuration_texts(project: Project, service: Service) -> Iterator[tuple[str, str]]:
    """Yield the texts that configure a service: its variables, its command and the files that it mounts."""
    yield from service.variables.items()
    yield "command", "\n".join((*(service.entrypoint or ()), *(service.command or ())))
    for mount in service.mounts:
        yield from file_texts(mount)
    for _, name, text in config_texts(project, service):
        yield name, text


def file_texts(mount: Mount) -> Iterator[tuple[str, str]]:
    """Yield the files of a mount that may configure a program, as far as they are known, with their names."""
    for file in (mount.content.files or ()) if mount.content else ():
        name = file.path or mount.target.rpartition("/")[2]
        if not _NO_CONFIGURATION.fullmatch(name):
            yield name, file.content.decode("utf-8", "replace")


def config_texts(project: Project, service: Service) -> Iterator[tuple[int, str, str]]:
    """Yield the configs that full mode mounts, as far as they are known: their index, the file's name, and the text."""
    for index, mount in enumerate(service.file_mounts):
        found = project.configs.get(mount.source) if mount.kind is FileKind.CONFIG else None
        if found is not None and found.content is not None:
            yield index, mount.target.rpartition("/")[2], found.content.decode("utf-8", "replace")


# what the image exposes -----------------------------------------------------------------------------------------------


def _check_exposed(checker: Checker, service: Service, exposed: list[int]) -> None:
    """Check that the container listens on the ports that are expected of it, as far as its image says."""
    texts = [text for _, text in configuration_texts(checker.project, service)]
    for port, path in _expected(service).items():
        is_configured = any(re.search(rf"(?<!\d){port}(?!\d)", text) for text in texts)
        if port not in exposed and not is_configured:
            message = f"names port {port} of the container, and its image exposes {', '.join(map(str, exposed))}"
            checker.add("unexposed-port", path, message, f"use {exposed[0]}, unless the program listens on {port}")


def _is_unread(mount: Mount) -> bool:
    """Whether a mount has files whose content is not known here; they may set the port."""
    return mount.content is not None and mount.content.files is None


def _expected(service: Service) -> dict[int, PathKey]:
    """Return the ports that the definition expects of a container, with their places."""
    expected = {port.target: port_path(service.name, port) for port in service.ports if port.protocol == "tcp"}
    if service.health_check is not None and service.health_check.http_port:
        expected.setdefault(service.health_check.http_port, ("services", service.name, "healthcheck"))
    return expected
