"""Rules for services that a provider gives: what they depend on, and the order of their programs.

Must not read nodes: it reads the model, and gets places from the origins.
"""

from __future__ import annotations

from composeplat.compose.cycles import find_cycles
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
    providers = checker.project.providers
    needed = {name: [other for other in found.depends_on if other in providers] for name, found in providers.items()}
    for trail in find_cycles(needed):
        closing = ("services", trail[-2], "depends_on", trail[-1])
        message = f"closes a cycle: {' -> '.join(trail)}"
        checker.add("dependency-cycle", closing, message, "remove one of these dependencies")
