"""Quotas and limit ranges of a namespace, and how much each environment in it uses.

Owns the quantities of Kubernetes, and which objects count. Amounts are in thousandths of a CPU, in bytes, or a number.
Must not know the needs of an environment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from decimal import Decimal
from typing import Any

from composeplat.cluster.snapshot import Object, has_ended
from composeplat.names import ENVIRONMENT_LABEL
from composeplat.system.records import record

Amounts = Mapping[str, int]
"""By resource, as quotas name it."""

_QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")
_UNITS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal(1000)} | {
    f"{letter}{binary}": Decimal(1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGTPE", 1)
    for binary in ("i", "")
}
#: Resource of a quota -> the field of a container that counts.
COMPUTE = {
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
}


@record(kw_only=True)
class Quota:
    name: str
    hard: Amounts
    used: Amounts = field(default_factory=dict)
    """By everyone in the namespace."""


@record(kw_only=True)
class LimitRange:
    """The values that a limit range sets for each container, by ``cpu`` and ``memory``."""

    name: str
    minimum: Amounts = field(default_factory=dict)
    maximum: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    """The limit of a container that sets none."""
    request: Amounts = field(default_factory=dict)
    """The request of a container that sets neither it nor a limit."""


def parse_quantity(text: str) -> Decimal:
    """Parse a quantity of Kubernetes, such as ``1500000n``, ``250m`` or ``12Ki``; another text is 0."""
    found = _QUANTITY.fullmatch(text)
    return Decimal(found[1]) * _UNITS.get(found[2], Decimal(0)) if found else Decimal(0)


def parse_amounts(written: Mapping[str, Any] | None) -> dict[str, int]:
    return {resource: _amount(resource, text) for resource, text in (written or {}).items()}


def _amount(resource: str, text: object) -> int:
    amount = parse_quantity(str(text)) * (1000 if resource.endswith("cpu") else 1)
    return int(amount.to_integral_value(rounding="ROUND_CEILING"))


def parse_quotas(objects: Iterable[Object]) -> tuple[Quota, ...]:
    """Parse quotas; those of some pods only are left out."""
    return tuple(
        Quota(
            name=str(item["metadata"]["name"]),
            hard=parse_amounts(item["spec"].get("hard")),
            used=parse_amounts(item.get("status", {}).get("used")),
        )
        for item in objects
        if not item["spec"].get("scopes") and not item["spec"].get("scopeSelector")
    )


def parse_limit_ranges(objects: Iterable[Object]) -> tuple[LimitRange, ...]:
    return tuple(
        LimitRange(
            name=str(item["metadata"]["name"]),
            minimum=parse_amounts(limits.get("min")),
            maximum=parse_amounts(limits.get("max")),
            limit=parse_amounts(limits.get("default")),
            request=parse_amounts(limits.get("defaultRequest")),
        )
        for item in objects
        for limits in item["spec"].get("limits") or []
        if limits.get("type") == "Container"
    )


def usage_by_environment(
    pods: Iterable[Object], services: Iterable[Object], claims: Iterable[Object]
) -> dict[str, Amounts]:
    """Add up how much of quotas the objects of each environment use. Pods that have ended use nothing."""
    usage: dict[str, Counter[str]] = {}

    def add(item: Object, amounts: Amounts) -> None:
        environment = (item["metadata"].get("labels") or {}).get(ENVIRONMENT_LABEL)
        if environment:
            usage.setdefault(environment, Counter()).update(amounts)

    for pod in pods:
        if not has_ended(pod):
            add(pod, {"pods": 1} | {resource: _of_pod(pod, *field) for resource, field in COMPUTE.items()})
    for service in services:
        add(service, {"services": 1})
    for claim in claims:
        size = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")
        add(claim, {"persistentvolumeclaims": 1, "requests.storage": _amount("storage", size)})
    return {environment: dict(amounts) for environment, amounts in usage.items()}


def _of_pod(pod: Object, section: str, resource: str) -> int:
    """Return the amount that a pod reserves: the sum of its containers, or an init container if that is more."""
    first, rest = (
        [_of_container(container, section, resource) for container in pod["spec"].get(containers) or []]
        for containers in ("initContainers", "containers")
    )
    return max([sum(rest), *first])


def _of_container(container: Object, section: str, resource: str) -> int:
    amounts = (container.get("resources") or {}).get(section) or {}
    return _amount(resource, amounts.get(resource, "0"))
