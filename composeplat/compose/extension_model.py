"""The part of the model that full mode reads from keys of its own, which Compose does not have.

Owns the dataclasses of ``x-autoscale``; their defaults are what a service without the key has.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as a field of a service.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTarget:
    """How much of a resource the pods should use on average: a share of what they request, or an amount."""

    resource: Resource
    percent: int | None = None
    amount: int | None = None
    """Thousandths of CPUs, or bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscale:
    lowest: int = 1
    highest: int
    targets: tuple[UsageTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    autoscale: Autoscale | None = None
    """None for a number of pods that never changes by itself."""
