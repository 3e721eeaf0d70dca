"""Parse ``provider``: services that a program of the user's machine gives, and the services that depend on them.

Only full mode reads the key. A service with it is no service of the model: it has no pods, and no other key of it but
those that decide whether and when its program runs has an effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping as PairMapping
from dataclasses import replace
from typing import Any

from composeplat.compose.full_keys import SERVICE
from composeplat.compose.model import Dependency, Service
from composeplat.compose.nodes import Mapping, Scalar, to_plain
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.service import parse_depends_on
from composeplat.compose.provider_model import Provider
from composeplat.compose.values import BadValue
from composeplat.names import is_env_name

_PATTERN = f"{SERVICE}.provider"
_PROGRAM = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_OPTION = r"[A-Za-z0-9][A-Za-z0-9._-]*\Z"
#: The keys that can be lists of NAME=VALUE.
_BY_NAME = ("annotations", "environment", "labels", "sysctls")
_USED = ("provider", "depends_on", "profiles", "extends")


def is_provided(place: Field) -> bool:
    """Check whether a program gives a service."""
    found = place.node.get("provider") if place.ctx.full and isinstance(place.node, Mapping) else None
    return found is not None and not (isinstance(found, Scalar) and found.is_null)


def parse_providers(section: Section) -> dict[str, Provider]:
    whole = section.get("services")
    if whole is None or not isinstance(whole.node, Mapping):
        return {}
    return {name: _service(name, place) for name, place in whole.members() if is_provided(place)}


def _service(name: str, whole: Field) -> Provider:
    section = whole.section(SERVICE)
    inner = section.section("provider", _PATTERN) if section else None
    if section is None or inner is None:
        return Provider(name=name)
    for key, found in section.fields.items():
        if key not in _USED and not found.is_null:
            found.report("no-effect", "has no effect: the service is given by a provider, and has no container")
    if inner.get("type") is None:
        inner.whole.report("missing-key", "must have 'type', the name of a program", "write type: NAME")
    kind, options, dependencies = inner.value("type", _parse_program, ""), _options(inner), parse_depends_on(section)
    provider = Provider(
        name=name,
        type=kind,
        options=options,
        depends_on={dependency.service: dependency.required for dependency in dependencies},
        configuration=_canonical(to_plain(section.whole.node), kind, options, dependencies),
    )
    if not is_env_name(f"{provider.prefix}URL"):
        key_at = whole.ctx.origins.key_at(*whole.path)
        message = f"services.{name} can't begin the names of the variables that its provider sets"
        whole.ctx.report.add("invalid-name", key_at, whole.path, message, "begin it with a letter")
    return provider


def _parse_program(text: str) -> str:
    if not re.match(_PROGRAM, text, flags=re.ASCII) or text == "compose":
        raise BadValue("must be the name of a program, without a path: letters, digits, '.', '_' and '-'")
    return text


def _options(section: Section) -> dict[str, tuple[str, ...]]:
    found = section.get("options")
    options: dict[str, tuple[str, ...]] = {}
    for name, place in found.members() if found else ():
        if not re.match(_OPTION, name, flags=re.ASCII):
            place.report("invalid-name", "is no name of an option", "use letters, digits, '.', '_' and '-'")
        elif not place.is_null:
            values = (item.value(_parse_value) for item in place.items_or_text())
            options[name] = tuple(value for value in values if value is not None)
    return options


def _parse_value(text: str) -> str:
    if "\0" in text:
        raise BadValue("must be a text without NUL characters")
    return text


def _canonical(
    written: dict[str, Any], kind: str, options: dict[str, tuple[str, ...]], dependencies: Iterable[Dependency]
) -> dict[str, Any]:
    """Return the service as Compose's configuration has it: without short forms of what has a long one."""
    found = {key: _by_name(value) if key in _BY_NAME else value for key, value in written.items() if key != "extends"}
    found["provider"] = {"type": kind} | ({"options": options} if options else {})
    if dependencies:
        found["depends_on"] = {
            each.service: {"condition": f"{each.condition}", "required": each.required}
            | ({"restart": True} if each.restart else {})
            for each in dependencies
        }
    return found


def _by_name(written: Any) -> Any:
    if not isinstance(written, list):
        return written
    pairs = (str(item).partition("=") for item in written)
    return {name: value if equals else None for name, equals, value in pairs}


def with_provided(services: PairMapping[str, Service], providers: PairMapping[str, Provider]) -> dict[str, Service]:
    """Let services know the providers that they depend on, whose variables they get."""
    if not providers:
        return dict(services)
    named = {
        name: tuple(d.service for d in service.depends_on if d.service in providers)
        for name, service in services.items()
    }
    return {name: replace(service, provided=named[name]) for name, service in services.items()}
