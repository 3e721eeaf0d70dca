"""Rules about host names: those by which services address another one whose name differs in a cluster.

Owns how such names are found and replaced; a message never quotes the text around one.
A name with an underscore is a host for Docker, and no Kubernetes object can have it: the text that has it must change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.compatibility.port_rules import configuration_texts
from composeplat.compose.model import Service
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence
from composeplat.compose.origins import Checker
from composeplat.diagnostics import PathKey
from composeplat.names import clean

#: A variable of such a name may be the host alone; elsewhere the same word may be the name of a database.
_HOST_VARIABLE = re.compile(r"HOST|ADDR|SERVER|UR[IL]|ENDPOINT|BROKER|NODE|PEER|UPSTREAM", re.IGNORECASE)


def check_hosts(checker: Checker) -> None:
    renamed = renamed_services(checker.project.services)
    for service in checker.project.services.values() if renamed else ():
        for where, text in configuration_texts(service):
            for name, host in renamed.items():
                if replace_host(text, where, name) != text:
                    path = _place(checker, service, where)
                    source = "" if path[-1] == where else f" ({where})"
                    message = f"names the host '{name}'{source}, which is '{host}' in a cluster"
                    checker.add("unresolvable-host", path, message, f"write '{host}', or name the service so")


def renamed_services(names: Iterable[str]) -> dict[str, str]:
    """Return the names that don't resolve in a cluster, with those that do."""
    return {name: clean(name) for name in names if clean(name) != name.lower()}


def replace_host(text: str, where: str, name: str) -> str:
    """Replace a name where it is a host: in a URL, before a port, or as the whole value of a variable for hosts."""
    written = re.escape(name)
    if text == name and _HOST_VARIABLE.search(where):
        return clean(name)
    pattern = rf"(?:(?<=//)|(?<=@)|(?<![\w./@-])(?={written}:\d)){written}(?![\w-]|\.\w)"
    return re.sub(pattern, clean(name), text)


def written_variable(environment: Node | None, name: str) -> str | None:
    """Return the text of a variable as the file has it, before substitution; none if the file does not set it."""
    if isinstance(environment, Mapping):
        value = environment.get(name)
        return value.written if isinstance(value, Scalar) else None
    items = environment.items if isinstance(environment, Sequence) else []
    texts = (item.written for item in items if isinstance(item, Scalar))
    return next((text.partition("=")[2] for text in texts if text.startswith(f"{name}=")), None)


def _place(checker: Checker, service: Service, where: str) -> PathKey:
    path = ("services", service.name)
    for more in (("environment", where), (where,), ("environment",)):
        if checker.origins.has(*path, *more) and (more != ("environment",) or where in service.environment):
            return (*path, *more)
    return path
