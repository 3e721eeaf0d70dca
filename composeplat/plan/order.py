"""The dependencies between services, and an order in which dependencies come first."""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.compose.model import Project, Service
from composeplat.plan.desired import Edge


def plan_edges(project: Project) -> tuple[Edge, ...]:
    """Return an edge for each dependency on an existing service; an optional dependency may not exist."""
    return tuple(
        Edge(service=service.name, dependency=d.service, condition=d.condition, required=d.required, restart=d.restart)
        for service in project.services.values()
        for d in service.depends_on
        if d.service in project.services
    )


def pods_before(service: Service, services: Mapping[str, Service]) -> list[str]:
    """Return the services whose own pods start before a service; one in the pods of another is there with it."""
    return [services[d.service].pod_owner for d in service.depends_on if d.service in services]


def sort_services(services: Mapping[str, Service]) -> list[Service]:
    """Sort services so that each comes after its dependencies, else as in the file; cycles are errors by now.

    A service in the pod of another comes before it, as that pod needs its Secrets.
    """
    placed: dict[str, Service] = {}
    for start in (service for service in services.values() if not service.runs_elsewhere):
        pending = [start]
        trail: set[str] = set()
        while pending:
            service = pending[-1]
            if service.name in placed:
                pending.pop()
                continue
            before = [
                services[name] for name in pods_before(service, services) if name not in placed and name not in trail
            ]
            trail.add(service.name)
            if not before:
                placed.update((name, services[name]) for name in service.pod.members[1:])
                placed[service.name] = service
                pending.pop()
            else:
                pending.extend(reversed(before))
    return list(placed.values())
