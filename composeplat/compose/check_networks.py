"""Rules of networks in full mode: each is declared, and no two services have the same name in them.

Owns these rules; in the default mode networks have no effect, and :mod:`composeplat.compose.check` says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker, alias_path, network_use_path
from composeplat.compose.placeholders import has_placeholder, late_hint, name_of, placeholders_in
from composeplat.names import clean, is_dns_label, is_service_name, label_hint


def check_networks(checker: Checker) -> None:
    for service in checker.project.services.values():
        _check_declared(checker, service)
    _check_labels(checker)
    _check_aliases(checker)


def _check_declared(checker: Checker, service: Service) -> None:
    for name in sorted(service.networks or ()):
        if checker.is_undefined("networks", name, checker.project.networks):
            listed = ", ".join(checker.project.networks)
            path = network_use_path(service.name, name)
            checker.add(
                "undefined-network",
                path,
                f"names {checker.shown(name, path)}, which 'networks' does not declare",
                f"declare it under the top-level 'networks'; networks are: {listed}",
            )


def _check_labels(checker: Checker) -> None:
    seen: dict[str, str] = {}
    for name, network in checker.project.networks.items():
        for text, path in ((name, ("networks", name)), (network.shared_name or name, ("networks", name, "name"))):
            if not is_dns_label(clean(text)):
                hint = label_hint(name)
                checker.add("invalid-name", path, "can't be converted to a Kubernetes name", hint, at_key=True)
                break
        other = seen.setdefault(clean(name), name)
        if other != name:
            message = f"and networks.{other} would both be named '{clean(name)}'"
            checker.add("name-conflict", ("networks", name), message, "rename one of them", at_key=True)


def _check_aliases(checker: Checker) -> None:
    """Report a name that means two services; Kubernetes has one Service of a name."""
    holders = {clean(name): name for name in checker.project.services}
    for service in checker.project.services.values():
        for alias in service.networking.aliases:
            path = alias_path(service.name, alias)
            if has_placeholder(alias):
                hint = late_hint(map(name_of, placeholders_in(alias)))
                checker.add("invalid-name", path, "is the name of a Service, and made of an output", hint)
            elif not is_service_name(alias):
                message = "can't be the name of a Service: others don't reach it by that name"
                hint = (
                    f"use letters, digits and '-', beginning with a letter; others reach it as '{clean(service.name)}'"
                )
                checker.add("no-effect", path, message, hint)
            elif holders.setdefault(alias, service.name) != service.name:
                message = f"is a name of '{holders[alias]}' too, and a name is of one service here"
                checker.add("name-conflict", path, message, "rename one of them")
    _check_hostnames(checker, holders)


def _check_hostnames(checker: Checker, holders: Mapping[str, str]) -> None:
    """Report a host name that means another service."""
    for service in checker.project.services.values():
        hostname = service.networking.hostname
        if holders.get(hostname, service.name) != service.name:
            path = alias_path(service.name, hostname)
            message = f"is a name of '{holders[hostname]}' too: others don't reach this service by it"
            checker.add("no-effect", path, message, f"they reach it as '{clean(service.name)}'")
