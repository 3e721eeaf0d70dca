"""Services that have their address from a proxy which reads it from Docker.

Traefik and Caddy read labels, nginx-proxy reads variables.
Owns the message that they have no URL here, which ports the proxy is given, and whether it leads everybody to the whole
service. Labels become annotations, which no proxy of the cluster reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from composeplat.compose.init_jobs import without_init_jobs
from composeplat.compose.model import Service
from composeplat.compose.origins import Checker, Origins, annotation_path
from composeplat.diagnostics import PathKey
from composeplat.names import clean
from composeplat.plan.desired import EndpointPlan
from composeplat.plan.services import service_ports
from composeplat.system.records import record


@record(kw_only=True)
class _Labels:
    """The labels that a proxy reads."""

    proxy: str
    rule: re.Pattern[str]
    """A label that gives a service an address."""
    address: re.Pattern[str]
    """The value of such a label that names no more than hosts, and the first part of paths."""
    port: re.Pattern[str]
    limit: re.Pattern[str]
    """A label that changes who may use the route, its paths, or the protocol to the container."""


_PREFIX = r"(?P<prefix>/[\w./~-]*)"
_LABELS = (
    _Labels(
        proxy="Traefik",
        rule=re.compile(r"traefik\.http\.routers\.[^.]+\.rule\Z"),
        address=re.compile(
            r"(?=.)\(?(?P<hosts>Host\([^()]*\)(?: *\|\| *Host\([^()]*\))*)?\)?"
            rf"(?:(?(hosts) *&& *)PathPrefix\([`\"]{_PREFIX}[`\"]\))?\Z"
        ),
        port=re.compile(r"traefik\.http\.services\.[^.]+\.loadbalancer\.server\.port\Z"),
        limit=re.compile(r"traefik\.http\.routers\.[^.]+\.middlewares\Z|traefik\.http\.services\..*\.scheme\Z"),
    ),
    # Its first major version.
    _Labels(
        proxy="Traefik",
        rule=re.compile(r"traefik(?:\.\w+)?\.frontend\.rule\Z"),
        address=re.compile(rf"(?=.)(?:Host:(?P<hosts>[^;]*))?(?:(?(hosts);)PathPrefix:{_PREFIX})?\Z"),
        port=re.compile(r"traefik(?:\.\w+)?\.port\Z"),
        limit=re.compile(
            r"traefik(?:\.\w+)?\.(?:frontend\.(?!rule|entrypoints|passhostheader)|protocol)", re.IGNORECASE
        ),
    ),
    _Labels(
        proxy="Caddy",
        rule=re.compile(r"caddy(?:_\d+)?\Z"),
        address=re.compile(r"(?P<hosts>(?:(?:https?://)?[^\s/,]+(?:,? +|\Z))+)(?P<prefix>)\Z"),
        port=re.compile(r"caddy(?:_\d+)?\.reverse_proxy\Z"),
        limit=re.compile(r"caddy(?:_\d+)?\.(?!reverse_proxy\Z|tls|encode|log|header)"),
    ),
)
#: The port of a container in a label or variable: a number, or for Caddy its address, by which it is that of HTTP.
_PORT_TEXT = re.compile(r"(\d{1,5})|\{\{ *upstreams(?: +http)?(?: +(\d{1,5}))? *\}\}", re.ASCII)
_HTTP, _LAST_PORT = 80, 65535
#: Middlewares of Traefik after which everybody has the same paths as without them.
_MIDDLEWARE = re.compile(r"traefik\.http\.middlewares\.([^.]+)\.(?:redirectscheme|redirectregex|compress|headers)\b")
_HOST_VARIABLE, _PORT_VARIABLE = "VIRTUAL_HOST", "VIRTUAL_PORT"
_ROOT = "/"


@record(kw_only=True)
class ProxyRoute:
    """The address that a proxy gives a service."""

    proxy: str
    path: PathKey
    """The place of it."""
    ports: tuple[int, ...]
    """The ports that the file gives the proxy, without those from variables."""
    hosts: str
    """Its hosts, as the proxy reads them; services with the same share an address."""
    prefix: str
    """The first part of the paths that lead to the service; ``/`` for all."""
    is_plain: bool
    """Whether hosts and prefix alone decide, and the container gets plain HTTP."""
    limits: tuple[str, ...] = ()
    """What may limit who uses it, or change its paths: lists of middlewares, and texts that name none."""

    def is_open(self, harmless: Collection[str]) -> bool:
        """Return whether everybody may use it; ``harmless`` are the middlewares that change nothing."""
        names = (name.strip().removesuffix("@docker") for text in self.limits for name in text.split(","))
        return self.is_plain and all(name in harmless for name in names)


def check_proxy_routes(checker: Checker, endpoints: Iterable[EndpointPlan]) -> None:
    routed = {clean(service) for endpoint in endpoints for service, _ in endpoint.routes}
    # A job of a hook has the variables of its service.
    for service in without_init_jobs(checker.project).services.values():
        route = find_proxy_route(checker.origins, service)
        if route and not is_published(service) and clean(service.name) not in routed:
            message = f"is a route of {route.proxy}, which reads it from Docker: here the service has no URL by it"
            checker.add("no-effect", route.path, message, _route_for(service, route))


def is_published(service: Service) -> bool:
    """Return whether the definition publishes a port of a service."""
    return service.public or any(port.published is not None for port in service.ports)


def find_proxy_route(origins: Origins, service: Service) -> ProxyRoute | None:
    """Return the address that a proxy gives a service; None without one."""
    is_left_alone = service.labels.get("traefik.enable", "").lower() == "false"
    for read in () if is_left_alone else _LABELS:
        if rules := [label for label in service.labels if read.rule.match(label)]:
            return _route_of_labels(origins, service, read, rules)
    return _route_of_variables(origins, service) if service.environment.get(_HOST_VARIABLE) else None


def _route_of_labels(origins: Origins, service: Service, read: _Labels, rules: list[str]) -> ProxyRoute:
    path: PathKey = ("services", service.name)
    labels = service.labels
    given = {label: labels[label] for label in labels if read.port.match(label)}
    addresses = [found for rule in rules if (found := read.address.match(labels[rule]))]
    prefixes = {found["prefix"] or _ROOT for found in addresses}
    return ProxyRoute(
        proxy=read.proxy,
        path=annotation_path(path, rules[0]),
        ports=_ports(origins, [(text, annotation_path(path, label)) for label, text in given.items()]),
        hosts=" ".join(sorted({found["hosts"] or "" for found in addresses})),
        prefix=min(prefixes, default=_ROOT),
        is_plain=len(addresses) == len(rules) and len(prefixes) == 1 and all(map(_PORT_TEXT.fullmatch, given.values())),
        limits=tuple(labels[label] for label in labels if read.limit.match(label)),
    )


def harmless_middlewares(services: Iterable[Service]) -> frozenset[str]:
    """Return the middlewares that limit nobody and leave paths as they are, whichever service defines them."""
    found = (_MIDDLEWARE.match(label) for service in services for label in service.labels)
    return frozenset(match[1] for match in found if match)


def _route_of_variables(origins: Origins, service: Service) -> ProxyRoute:
    path: PathKey = ("services", service.name, "environment")
    values = {
        name: service.environment.get(f"VIRTUAL_{name}") or "" for name in ("HOST", "PORT", "PATH", "PROTO", "DEST")
    }
    prefix, host = values["PATH"] or _ROOT, (*path, _HOST_VARIABLE)
    return ProxyRoute(
        proxy=f"nginx-proxy ({_HOST_VARIABLE})",
        path=host if origins.has(*host) else path,
        ports=_ports(origins, [(values["PORT"], (*path, _PORT_VARIABLE))]),
        hosts=values["HOST"],
        prefix=prefix,
        is_plain=re.fullmatch(_PREFIX, prefix) is not None and values["PROTO"] in ("", "http") and not values["DEST"],
    )


def _ports(origins: Origins, given: Iterable[tuple[str, PathKey]]) -> tuple[int, ...]:
    """Read the ports in texts of the file, each once."""
    written = (text for text, place in given if origins.has(*place) and not origins.is_substituted(*place))
    return tuple(dict.fromkeys(number for text in written for number in _ports_in(text)))


def _ports_in(text: str) -> Iterator[int]:
    for found in _PORT_TEXT.finditer(text):
        number = int(found[1] or found[2] or _HTTP)
        if 0 < number <= _LAST_PORT:
            yield number


def _route_for(service: Service, given: ProxyRoute) -> str:
    """Return the keys that give the service a URL, with the port that the proxy is given."""
    port = str(next(iter(given.ports), "PORT"))
    route = f"give it a route: endpoints: {{NAME: [{{path: /, service: {service.name}, port: {port}}}]}}"
    return route if _has_port(service, port) else f"{route}, and the service the port: expose: [{port}]"


def _has_port(service: Service, port: str) -> bool:
    """Return whether a service lists a port; of one that is not known, whether it lists any."""
    listed = [str(number) for number, protocol in service_ports(service) if protocol == "tcp"]
    return port in listed if port.isdigit() else bool(listed)
