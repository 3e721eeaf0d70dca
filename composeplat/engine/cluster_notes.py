"""What a cluster lacks for the keys of a plan, as notes of a deploy: a metrics server, addresses of LoadBalancers.

Owns these notes. Nothing waits for either: an autoscaler begins, and an address appears, whenever the cluster has them.
"""

from __future__ import annotations

from collections.abc import Iterator

from composeplat.cluster.api import Api
from composeplat.cluster.exposed_services import find_exposed, has_load_balancers
from composeplat.engine.autoscaling import describe_missing_metrics
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.resource_keys import ResourceKind


def notes_before(api: Api, plan: Plan) -> Iterator[str]:
    """Describe what a cluster lacks, before a deploy."""
    if lacks := describe_missing_metrics(api, plan):
        yield lacks
    balanced = [name for name, desired in _exposed(plan).items() if desired.manifest["spec"]["type"] == "LoadBalancer"]
    if balanced and not has_load_balancers(api):
        yield (
            f"{', '.join(balanced)}: no cloud or program of this cluster is known to give addresses to LoadBalancers,"
            " so x-expose may stay without one; type: NodePort needs none"
        )


def notes_after(api: Api, plan: Plan) -> Iterator[str]:
    """Describe where exposed ports are reached, after a deploy."""
    exposed = _exposed(plan)
    found = find_exposed(api, plan.namespace, plan.environment) if exposed else []
    for name, desired in exposed.items():
        urls = [address.url for address in found if address.endpoint == desired.name]
        yield (
            f"{name}: {' '.join(urls)}"
            if urls
            else f"{name}: its LoadBalancer has no address yet: platform port {name}"
        )


def _exposed(plan: Plan) -> dict[str, DesiredObject]:
    return {
        service.name: desired
        for service in plan.services
        for desired in service.objects
        if desired.key.kind is ResourceKind.EXPOSED
    }
