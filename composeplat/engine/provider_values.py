"""The providers of a definition during an operation, and what a plan makes of the values that they set.

Owns this data alone: who runs the programs is :mod:`composeplat.engine.providers`. It is apart, as a stack has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from composeplat.compose.provider_model import Provider
from composeplat.plan.desired import Plan
from composeplat.system.records import record


@record(kw_only=True)
class Providers:
    """The providers of a definition, and what a plan makes of their values."""

    declared: Mapping[str, Provider] = field(default_factory=dict)
    is_allowed: bool = False
    plan_with: Callable[[Mapping[str, Provider]], Plan] | None = None
    hide: Callable[[Iterable[str]], None] = field(default=lambda _: None)
    """Called with each value before anything is printed that could have it."""

    def plan(self, values: Mapping[str, Mapping[str, str]], unchanged: Plan) -> Plan:
        """Return the plan with these variables of providers, or with none of a provider."""
        if self.plan_with is None or not any(values.values()):
            return unchanged
        return self.plan_with({n: replace(p, variables=values.get(n, {})) for n, p in self.declared.items()})
