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


def sort_services(services: Mapping[str, Service]) -> list[Service]:
    """Sort services so that each comes after its dependencies, else as in the file; cycles are errors by now."""
    placed: dict[str, Service] = {}
    for start in services.values():
        pending = [start]
        trail: set[str] = set()
        while pending:
            service = pending[-1]
            if service.name in placed:
                pending.pop()
                continue
            before = [
                services[d.service]
                for d in service.depends_on
                if d.service in services and d.service not in placed and d.service not in trail
            ]
            trail.add(service.name)
            if not before:
                placed[service.name] = service
                pending.pop()
            else:
                pending.extend(reversed(before))
    return list(placed.values())
