"""Read ``build``."""

from __future__ import annotations

import re

from composeplat.model import Build
from composeplat.parse.environment import absolute
from composeplat.parse.fields import Field, Section
from composeplat.source import Mapping, Scalar
from composeplat.template import BadTemplate, Outcome, evaluate, parse_template
from composeplat.values import parse_size

_REMOTE = re.compile(
    r"(?:https?|git|ssh)://|git@|github\.com/|[^/]+\.git(?:#|\Z)|docker-image://|oci-layout://|service:|target:"
)


def parse_build(service: Section) -> Build | None:
    whole = service.get("build")
    if whole is None:
        return None
    if isinstance(whole.node, Scalar):
        context = whole.text()
        return Build(context=_context(whole, context or "."))
    section = whole.section("services.*.build")
    return _read_build(section) if section else None


def _context(place: Field, text: str) -> str:
    return text if _REMOTE.match(text) else absolute(place, text)


def _read_build(section: Section) -> Build:
    context = section.get("context")
    inline = section.get("dockerfile_inline")
    dockerfile = section.get("dockerfile")
    if inline and dockerfile:
        dockerfile.say("conflicting-keys", "can't be set along with dockerfile_inline", "keep one of them")
    ssh = section.fields.get("ssh")
    if ssh is not None and ssh.is_null:
        ssh.wrong("a mapping or a list")
    return Build(
        context=_context(context, context.text() or ".") if context else absolute(section.whole, "."),
        dockerfile=section.text("dockerfile"),
        dockerfile_inline=section.text("dockerfile_inline"),
        target=section.text("target"),
        args=_args(section),
        labels=section.mapping("labels"),
        additional_contexts=_additional_contexts(section),
        extra_hosts=_extra_hosts(section),
        cache_from=section.texts("cache_from"),
        cache_to=section.texts("cache_to"),
        platforms=section.texts("platforms"),
        secrets=_secrets(section),
        ssh=_ssh(section),
        tags=section.texts("tags"),
        network=section.text("network"),
        no_cache=section.boolean("no_cache", default=False),
        pull=section.boolean("pull", default=False),
        shm_size=section.optional("shm_size", parse_size),
    )


def _args(section: Section) -> dict[str, str]:
    """Read build arguments; a bare NAME takes its value from where the tool runs, and is left out where that has none.

    A ``$NAME`` that is still there after substitution (the definition wrote ``$$NAME``) is resolved on this machine.
    """
    whole = section.get("args")
    args: dict[str, str] = {}
    for name, place, value in whole.pairs() if whole else ():
        found = place.ctx.variables.lookup(name) if value is None else _resolved(place, value)
        if found is not None:
            args[name] = found
    return args


def _resolved(place: Field, value: str) -> str:
    node = place.node
    if "$" not in value or (isinstance(node, Scalar) and "$$" not in node.written):
        return value
    try:
        return evaluate(parse_template(value), place.ctx.variables.lookup, Outcome())
    except BadTemplate:
        return value


def _additional_contexts(section: Section) -> dict[str, str]:
    whole = section.get("additional_contexts")
    return {name: _context(place, value or "") for name, place, value in whole.pairs()} if whole else {}


def _extra_hosts(section: Section) -> tuple[str, ...]:
    """Give ``host=address`` for each entry of a list or mapping; a host may have several addresses."""
    whole = section.get("extra_hosts")
    if whole is None:
        return ()
    if not isinstance(whole.node, Mapping):
        return tuple(text.replace(":", "=", 1) if "=" not in text else text for text in whole.texts())
    return tuple(f"{host}={address}" for host, place in whole.members() for address in place.texts())


def _secrets(section: Section) -> tuple[str, ...]:
    whole = section.get("secrets")
    names: list[str] = []
    for item in whole.items() if whole else ():
        source = item.node.get("source") if isinstance(item.node, Mapping) else item.node
        if isinstance(source, Scalar) and not source.is_null:
            names.append(source.text)
        else:
            item.wrong("a secret's name, or a mapping with a 'source'")
    return tuple(names)


def _ssh(section: Section) -> tuple[str, ...]:
    whole = section.get("ssh")
    if whole is None:
        return ()
    if isinstance(whole.node, Scalar):
        return whole.texts()
    return tuple(name if value is None else f"{name}={value}" for name, _, value in whole.pairs())
