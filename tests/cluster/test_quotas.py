"""Quotas and limit ranges, as the API has them, and what environments use."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.quotas import (
    LimitRange,
    Quota,
    parse_amounts,
    parse_limit_ranges,
    parse_quotas,
    usage_by_environment,
)
from composeplat.cluster.snapshot import Object


def labelled(environment: str, **more: object) -> Object:
    return {"metadata": {"labels": {"dev.platform.com/environment": environment}}, **more}


def reserving(cpu: str, **limits: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}, "limits": limits}}


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("limits.cpu", "1500m", 1500),
        ("cpu", "0.5", 500),
        ("requests.memory", "1Gi", 1024**3),
        ("limits.memory", "1500m", 2),
        ("requests.storage", "1T", 10**12),
        ("pods", "12", 12),
        ("pods", "1k", 1000),
        ("requests.memory", "1e3", 1000),
        ("requests.storage", "1E", 10**18),
    ],
)
def test_amounts(resource: str, text: str, amount: int) -> None:
    """CPUs are in thousandths, all others in whole units, rounded up."""
    assert parse_amounts({resource: text}) == {resource: amount}


def test_quotas() -> None:
    """A quota of all pods counts; one that only some pods fall under does not."""
    plain = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "4"}}, "status": {"used": {"pods": "3"}}}
    scoped = {"metadata": {"name": "s"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}}
    selecting = {"metadata": {"name": "t"}, "spec": {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": []}}}

    assert parse_quotas([plain, scoped, selecting]) == (Quota(name="q", hard={"pods": 4}, used={"pods": 3}),)


def test_limit_ranges() -> None:
    """The limits of containers count; those of pods and claims do not."""
    limits = [
        {"type": "Pod", "max": {"cpu": "9"}},
        {"type": "Container", "min": {"cpu": "10m"}, "max": {"memory": "2Gi"}, "default": {"cpu": "1"},
         "defaultRequest": {"memory": "64Mi"}},
    ]  # fmt: skip

    assert parse_limit_ranges([{"metadata": {"name": "l"}, "spec": {"limits": limits}}]) == (
        LimitRange(
            name="l", minimum={"cpu": 10}, maximum={"memory": 2 * 1024**3}, limit={"cpu": 1000},
            request={"memory": 64 * 1024**2},
        ),
    )  # fmt: skip


def test_usage() -> None:
    """Pods use the sum of their containers, or one init container if that is more; ended pods use nothing."""
    pods = [
        labelled("shop", spec={"containers": [reserving("100m", memory="1Gi"), reserving("50m")]}),
        labelled("shop", spec={"containers": [reserving("10m")], "initContainers": [reserving("1"), reserving("20m")]}),
        labelled("shop", spec={"containers": [reserving("4")]}, status={"phase": "Succeeded"}),
        labelled("blog", spec={"containers": [{}]}),
        {"metadata": {}, "spec": {"containers": [reserving("4")]}},
    ]
    services = [labelled("shop"), labelled("shop")]
    claims = [labelled("shop", spec={"resources": {"requests": {"storage": "2Gi"}}})]
    nothing = dict.fromkeys(["requests.cpu", "cpu", "requests.memory", "memory", "limits.cpu", "limits.memory"], 0)

    assert usage_by_environment(pods, services, claims) == {
        "shop": nothing
        | {"requests.cpu": 1150, "cpu": 1150, "limits.memory": 1024**3, "pods": 2, "services": 2}
        | {"persistentvolumeclaims": 1, "requests.storage": 2 * 1024**3},
        "blog": nothing | {"pods": 1},
    }
