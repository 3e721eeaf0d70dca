"""The part of the model that full mode reads from keys of its own, which Compose does not have.

Owns the dataclasses of ``x-autoscale``, ``x-expose`` and ``x-kubernetes``; their defaults are what a service without
the key has.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as a field of a service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from composeplat.diagnostics import PathKey
from composeplat.system.records import record

#: What a patch says about its own part, and its values.
DIRECTIVE, DELETE, REPLACE = "$patch", "delete", "replace"
DIRECTIVES = (DELETE, REPLACE, "merge")


class Resource(StrEnum):
    CPU = "cpu"
    MEMORY = "memory"


@record(kw_only=True)
class UsageTarget:
    """How much of a resource the pods should use on average: a share of what they request, or an amount."""

    resource: Resource
    percent: int | None = None
    amount: int | None = None
    """Thousandths of CPUs, or bytes."""


@record(kw_only=True)
class Autoscale:
    lowest: int = 1
    highest: int
    targets: tuple[UsageTarget, ...]


class ExposeType(StrEnum):
    LOAD_BALANCER = "LoadBalancer"
    NODE_PORT = "NodePort"


@record(kw_only=True)
class ExposedPort:
    target: int
    published: int | None = None
    """The port outside; None is the target's number, and for a NodePort one that the cluster chooses."""
    protocol: str = "tcp"
    origin: PathKey = field(default=(), compare=False)


@record(kw_only=True)
class Expose:
    type: ExposeType
    ports: tuple[ExposedPort, ...]
    allowed: frozenset[int] = frozenset()
    """The ports that may be public although they are on the list of those that never are."""


@record(kw_only=True)
class Patch:
    """A strategic merge patch of an object, as plain data; None deletes."""

    kind: str
    name: str = ""
    """Empty for the object with the name of its owner."""
    value: Mapping[str, Any]
    origin: PathKey = field(default=(), compare=False)


@record(kw_only=True)
class Extensions:
    autoscale: Autoscale | None = None
    """None for a number of pods that never changes by itself."""
    expose: Expose | None = None
    patches: tuple[Patch, ...] = ()
