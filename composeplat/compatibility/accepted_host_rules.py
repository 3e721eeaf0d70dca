"""Rules about the host names for which a program answers: variables that list only those of this machine.

Owns how such variables are recognized, and the text that has the host of the cluster too.
Django, Nextcloud, Phoenix and others refuse a request for a host that they were not given, also behind an ingress. The
servers of Vite and Rails for development are given none, and answer for this machine alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from composeplat.compatibility.host_rules import variable_path
from composeplat.compatibility.url_rules import portable_url
from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.plan import Plan
from composeplat.plan.endpoints import TLS_PORTS

_LISTS = re.compile(r"(?:^|_)(?:ALLOWED|TRUSTED)_(?:DOMAIN|HOST|HOSTNAME)S?$", re.IGNORECASE)
_NAMES = re.compile(
    r"^DOMAIN(?:_NAME)?$|(?:^|_)(?:(?:APP|BASE|EXTERNAL|PUBLIC|ROOT|SERVER|SITE)_DOMAIN"
    r"|(?:EXTERNAL|PUBLIC|SITE)_HOST(?:NAME)?|KC_HOSTNAME|OVERWRITEHOST|PHX_HOST)$",
    re.IGNORECASE,
)
_NAME = r"(?:localhost|127\.0\.0\.1)(?![\w.-])"
_LOCAL = re.compile(rf"(?<![\w.-]){_NAME}")
#: The first name of this machine in a text as it is written, which can be a variable's default.
_FIRST = re.compile(
    rf"(?:(?P<before>[,;|]\s*|(?<!\s)\s+)|\$\{{\w+:?-|(?<![\w.-]))"
    rf"(?P<item>(?P<quote>[\"']?){_NAME}(?P=quote))(?P<after>\s*[,;|]\s*|\s+)?"
)
_ITEM = re.compile(r"[^\s,;|\"'()^$]+")
_VITE = re.compile(r"(?:^|[\s/;&|])vite(?!\s+build)(?=\s|$)")
_VITE_HOST = "__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS"
_RAILS_HOST = "RAILS_DEVELOPMENT_HOSTS"
_OF_THIS_MACHINE = frozenset(("localhost", "127.0.0.1", "::1", "[::1]", "[", "]"))


@dataclass(frozen=True, slots=True)
class PublicHost:
    """The host of a service's URL in a cluster; written with the variables of its namespace and its domain."""

    name: str
    written: str


def find_public_hosts(plan: Plan) -> Mapping[str, tuple[PublicHost, ...]]:
    """Return the hosts of each service that has a URL; that of a port for TLS only without another, as it gets HTTP."""
    found: dict[str, dict[str, PublicHost]] = {}
    of_tls: dict[str, dict[str, PublicHost]] = {}
    for endpoint in plan.endpoints:
        for url, service, port in endpoint.addresses:
            host = PublicHost(_host_of(url), _host_of(portable_url(url, endpoint.name, plan.namespace)))
            hosts = of_tls if port in TLS_PORTS else found
            hosts.setdefault(service, {})[host.name] = host
    return {service: tuple(hosts.values()) for service, hosts in {**of_tls, **found}.items()}


def _host_of(url: str) -> str:
    """Return the host of a URL; empty for words in its place."""
    return url.partition("://")[2].partition("/")[0]


def hosts_for(
    service: Service, variable: str, services: Iterable[Service], hosts: Mapping[str, tuple[PublicHost, ...]]
) -> tuple[PublicHost, ...]:
    """Return the hosts by which browsers reach the program that reads a variable.

    Behind a proxy that is the only host of the project; a worker that shares the variables of a page has none.
    """
    if service.name in hosts:
        return hosts[service.name]
    every = {host.name: host for own in hosts.values() for host in own}
    is_shared = any(variable in other.variables for other in services if other.name in hosts)
    return () if is_shared or len(every) != 1 else tuple(every.values())


def check_accepted_hosts(checker: Checker, hosts: Mapping[str, tuple[PublicHost, ...]]) -> None:
    """Report variables with names of this machine and without the host by which browsers reach the service."""
    services = checker.project.services.values()
    for service in services:
        if service.name in hosts:
            _check_development_server(checker, service, hosts[service.name][0])
        for variable, value in service.variables.items():
            if _names_this_machine(variable, value):
                public = hosts_for(service, variable, services, hosts)
                missing = [host for host in public if not _accepts(value, host)]
                _report(checker, service, variable, missing)


def _report(checker: Checker, service: Service, variable: str, missing: list[PublicHost]) -> None:
    if missing:
        message = "names this machine, and not the host for which browsers ask in a cluster"
        verb = "add" if _LISTS.search(variable) else "write"
        hint = f"{verb} {missing[0].written or 'the host of its URL'}, in compose.platform.yaml"
        checker.add("local-host", variable_path(checker, service, variable), message, hint)


def _check_development_server(checker: Checker, service: Service, host: PublicHost) -> None:
    for place, name in (("RAILS_ENV", "Rails"), ("command", "Vite")):
        if variable := development_variable(service, place):
            is_variable = place in service.variables
            path = variable_path(checker, service, place) if is_variable else ("services", service.name, place)
            message = f"starts {name} for development, which does not answer for the host of its URL in a cluster"
            hint = f"set {variable}: {host.written or 'to that host'}, in compose.platform.yaml"
            checker.add("local-host", path, message, hint)


def development_variable(service: Service, place: str) -> str:
    """Return the variable that adds a host to those of a server for development; empty for others, and if it is set."""
    found = ""
    if place == "RAILS_ENV" and service.variables.get(place) == "development":
        found = _RAILS_HOST
    elif place == "command" and _VITE.search(" ".join(service.command or ())):
        found = _VITE_HOST
    return "" if found in service.variables else found


def _names_this_machine(variable: str, value: str) -> bool:
    if _LISTS.search(variable):
        return _LOCAL.search(value) is not None
    return _NAMES.search(variable) is not None and _LOCAL.fullmatch(value) is not None


def _accepts(value: str, host: PublicHost) -> bool:
    """Whether a variable has a host: itself, a domain of it that begins with a dot, or all hosts; or as a pattern."""
    accepted = (item.lower().lstrip("*") for item in _ITEM.findall(value.replace("\\", "")))
    return any(item in ("", host.name) or (item[0] == "." and host.name.endswith(item)) for item in accepted)


def is_only_local(text: str) -> bool:
    """Whether a value has nothing else than names of this machine."""
    return all(item in _OF_THIS_MACHINE for item in _ITEM.findall(text))


def accept_hosts(variable: str, text: str, public: tuple[PublicHost, ...], *, keeps_local: bool) -> str:
    """Add the hosts of a service to those that its variable has, or write one in the place of this machine's.

    Nothing is written where a name has to be kept, and the text does not say how names are separated.
    """
    first = _FIRST.search(text)
    if not first or not public or not all(host.written for host in public):
        return text
    separator = first["after"] or first["before"] or ("," if first["quote"] else "")
    if _LISTS.search(variable) and separator:
        quoted = (f"{first['quote']}{host.written}{first['quote']}" for host in public)
        return text[: first.end("item")] + separator + separator.join(quoted) + text[first.end("item") :]
    if len(public) > 1 or (_LISTS.search(variable) and keeps_local):
        return text
    return text[: first.start("item")] + public[0].written + text[first.end("item") :]
