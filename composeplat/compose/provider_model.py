"""The part of the model for services that a program of the user's machine gives: Compose's provider services.

Must not know YAML, Kubernetes or how the program runs, as :mod:`composeplat.compose.model`, which has these as fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from composeplat.system.records import record


@record(kw_only=True)
class Provider:
    """A service without pods: its program sets variables of the services that depend on it."""

    name: str
    type: str = ""
    """The name of the program."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The options of its command line; one with several values is repeated."""
    depends_on: Mapping[str, bool] = field(default_factory=dict)
    """The services that come before, and whether each has to be there."""
    configuration: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The service in Compose's canonical form, for its program to read."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of dependents, by their whole names; only a deploy knows them."""

    @property
    def prefix(self) -> str:
        """What comes before the name of a variable that the program sets."""
        return f"{self.name.upper()}_"


def sort_providers(providers: Mapping[str, Provider]) -> list[Provider]:
    """Sort providers so that each comes after those that it depends on; cycles are errors by now."""
    placed: dict[str, Provider] = {}
    for start in providers.values():
        pending, trail = [start], set[str]()
        while pending:
            provider = pending[-1]
            before = [
                providers[name]
                for name in provider.depends_on
                if name in providers and name not in placed and name not in trail
            ]
            trail.add(provider.name)
            if before:
                pending.extend(before)
            else:
                placed[pending.pop().name] = provider
    return list(placed.values())
