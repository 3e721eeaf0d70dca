"""Rules for services that a provider gives: what they depend on, and the order of their programs.

Must not read nodes: it reads the model, and gets places from the origins.
"""

from __future__ import annotations

from collections.abc import Iterator

from composeplat.compose.origins import Checker


def check_providers(checker: Checker) -> None:
    for provider in checker.project.providers.values():
        path = ("services", provider.name)
        if provider.type:
            shown = checker.shown(provider.type, (*path, "provider", "type"))
            message = f"is given by the program {shown} of this machine, which a deploy runs"
            checker.add("provided-service", path, message, "allow it with --allow-providers", at_key=True)
        for name in provider.depends_on:
            if name in checker.project.services:
                place = (*path, "depends_on", name)
                shown = checker.shown(name, place)
                message = f"has no effect: the programs of providers run before services such as {shown} start"
                checker.add("no-effect", place, message)
    for trail in _cycles(checker):
        closing = ("services", trail[-2], "depends_on", trail[-1])
        message = f"closes a cycle: {' -> '.join(trail)}"
        checker.add("dependency-cycle", closing, message, "remove one of these dependencies")


def _cycles(checker: Checker) -> Iterator[list[str]]:
    """Yield each cycle once, from the service that closes it."""
    providers, seen = checker.project.providers, set[str]()
    for start in providers.values():
        trail: list[str] = []
        pending = [iter([start.name])]
        while pending:
            name = next((name for name in pending[-1] if name in providers), None)
            if name is None:
                pending.pop()
                seen.update(trail[-1:])
                del trail[-1:]
            elif name in trail:
                yield [*trail[trail.index(name) :], name]
            elif name not in seen:
                trail.append(name)
                pending.append(iter(providers[name].depends_on))
