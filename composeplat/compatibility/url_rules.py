"""Rules about URLs of this machine: those by which browsers reach a published port in Docker.

Owns how these are recognized, and the URL to write; a message never quotes the text around one.
In Docker a published port is a port of this machine, and pages, redirects and lists of origins name it so. In a cluster
the service has a URL of its own instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from composeplat.compatibility.host_rules import variable_path
from composeplat.compose.model import Project, Service
from composeplat.compose.nodes import Node, find_node
from composeplat.compose.origins import Checker
from composeplat.diagnostics import PathKey, join_some
from composeplat.plan import Plan

_MAX_LISTED = 4
_HTTPS = "https://"
_URL = re.compile(r"(http|ws)(s?)://(?:localhost|127\.0\.0\.1)(?::(\d{1,5}))?(?![\w.:-])", re.ASCII)
#: The option before a URL, in the same argument or the one before it.
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w.-]*)[=\s\"']+\Z")
_MAX_OPTION = 80
#: Names of variables whose URLs are for browsers, also those with the service's own port.
_FOR_BROWSERS = re.compile(
    r"(?:^|_)(?:(?:APP|AUTH|BASE|CLIENT|FRONTEND|HOME|NEXTAUTH|ROOT|SITE|WEB|WEBHOOK|WEBSITE)_?UR[IL]"
    r"|CALLBACK|CANONICAL|CORS|CSRF|EXTERNAL|ORIGIN|PUBLIC|REDIRECT)S?(?:_|$)",
    re.IGNORECASE,
)
#: A value that is no more than such URLs.
_ONLY_URLS = re.compile(rf"{_URL.pattern}/?(?:[ ,]+{_URL.pattern}/?)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The URL of a service in a cluster, or words for it if it can't be written for every namespace and domain."""

    service: str
    url: str

    @property
    def is_whole(self) -> bool:
        """Whether every path of the service is below it as it is."""
        return self.url.startswith(_HTTPS) and "/" not in self.url.removeprefix(_HTTPS)


def check_local_urls(checker: Checker, urls: Mapping[int, PublicUrl], document: Node | None) -> None:
    """Report texts with a URL of this machine that leads to a public port; one of its own port may be for itself."""
    for service in checker.project.services.values():
        if find_node(document, "services", service.name, "network_mode"):
            continue  # its hint is about 'localhost' too
        for path, name, text in _texts(checker, service):
            found = _local(name, text, service, urls)
            reached = {urls[port].service: _with_scheme(urls[port], match) for match, port in found}
            if reached:
                _report(checker, path, reached)


def _local(
    name: str, text: str, service: Service, urls: Mapping[int, PublicUrl]
) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the URLs in a text that lead to a public port, each with this port; by its own, a service asks itself.

    Unless the variable, or in arguments the option, says by its name that it is for browsers.
    """
    own = {port.target for port in service.ports}
    for found in _URL.finditer(text):
        port = int(found[3] or (443 if found[2] else 80))
        if port in urls and (port not in own or _FOR_BROWSERS.search(name or _option(text, found.start()))):
            yield found, port


def _option(text: str, end: int) -> str:
    """Return the name of the option before a place, as a variable would have it; empty without one."""
    found = _OPTION.search(text[max(0, end - _MAX_OPTION) : end])
    return re.sub("[.-]", "_", found[1]) if found else ""


def _with_scheme(public: PublicUrl, found: re.Match[str]) -> str:
    return public.url.replace("https:", f"{found[1]}s:")


def is_only_urls(text: str) -> bool:
    """Whether a value has nothing else than URLs of this machine, without paths."""
    return _ONLY_URLS.fullmatch(text) is not None


def replace_local_urls(name: str, text: str, service: Service, urls: Mapping[int, PublicUrl]) -> str:
    """Replace URLs of this machine where the paths behind them stay the same; arguments have no name."""
    parts, end = [], 0
    for found, port in _local(name, text, service, urls):
        if urls[port].is_whole:
            parts += [text[end : found.start()], _with_scheme(urls[port], found)]
            end = found.end()
    return "".join([*parts, text[end:]])


def _report(checker: Checker, path: PathKey, reached: dict[str, str]) -> None:
    names = join_some([f"'{name}'" for name in reached], _MAX_LISTED)
    message = f"leads browsers to {names} by a URL of this machine, which publishes ports in Docker alone"
    hint = f"write {join_some(list(reached.values()), _MAX_LISTED)}, in compose.platform.yaml"
    checker.add("local-url", path, message, hint)


def find_public_urls(project: Project, plan: Plan) -> dict[int, PublicUrl]:
    """Return the ports that Docker would publish on this machine, each with the URL of its service."""
    urls = {
        (service, port): portable_url(url, endpoint.name, plan.namespace)
        for endpoint in plan.endpoints
        for url, service, port in endpoint.addresses
    }
    found: dict[int, PublicUrl] = {}
    for service in project.services.values():
        for port in service.ports:
            url = urls.get((service.name, port.target))
            if url and port.published is not None:
                found.setdefault(port.published, PublicUrl(service=service.name, url=url))
    return found


def portable_url(url: str, endpoint: str, namespace: str) -> str:
    """Return a URL with the variables of its namespace and its domain, which are others elsewhere."""
    host, slash, path = url.removeprefix(_HTTPS).partition("/")
    name, dot, _ = host.partition(".")
    if name != f"{endpoint}-{namespace}" or not dot:
        return "its URL, which 'platform check --explain' lists"
    return f"{_HTTPS}{endpoint}-${{PLATFORM_NAMESPACE}}.${{PLATFORM_DOMAIN}}{slash}{path}"


def _texts(checker: Checker, service: Service) -> Iterator[tuple[PathKey, str, str]]:
    """Yield path, name and text of each variable, of the arguments of a service and of those of its build."""
    for key, args in (("command", service.command), ("entrypoint", service.entrypoint)):
        yield ("services", service.name, key), "", "\n".join(args or ())
    for variable, value in service.variables.items():
        yield variable_path(checker, service, variable), variable, value
    for name, value in service.build.args.items() if service.build else ():
        path = ("services", service.name, "build", "args", name)
        yield path if checker.origins.has(*path) else path[:-1], name, value
