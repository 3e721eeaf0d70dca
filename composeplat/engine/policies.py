"""The violations of policies, as a report with the place of each resource in the file.

Pure: Pulumi's events have the violations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from composeplat.components.resource_names import ResourceName
from composeplat.compose.origins import Origins
from composeplat.diagnostics import PathKey, Report, dotted
from composeplat.engine.events import Violation, kind_of
from composeplat.engine.preflight import by_origin
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

_HINT = "change the definition, or ask those who own the policy pack"


def paths_of_violations(violations: Collection[Violation], plan: Plan) -> Iterator[tuple[Violation, PathKey]]:
    """Yield each violation with the part of the definition that the resource is of; empty for the whole."""
    paths = _paths(plan)
    for violation in violations:
        name = ResourceName.from_urn(violation.urn)
        yield violation, paths.get(name.key, ()) if name is not None else ()


def report_violations(violations: Collection[Violation], plan: Plan, origins: Origins) -> Report:
    report = Report()
    for violation, path in paths_of_violations(violations, plan):
        code, verb = ("policy-violation", "violates") if violation.is_mandatory else ("policy-advice", "breaks")
        message = (
            f"{_subject(violation, path)} {verb} policy '{violation.policy}' of '{violation.pack}': {violation.message}"
        )
        report.add(code, origins.key_at(*path), path, message, _HINT if code == "policy-violation" else "")
    return report


def _subject(violation: Violation, path: PathKey) -> str:
    kind, name = kind_of(violation.urn.split("::")[2].rpartition("$")[2]), ResourceName.from_urn(violation.urn)
    part = dotted(path) if path else "the environment"
    return f"{part}, by {kind} '{name.key.name}'," if kind and name is not None else part


def _paths(plan: Plan) -> Mapping[ResourceKey, PathKey]:
    """The parts of the definition by the keys of their components, builds and objects."""
    found: dict[ResourceKey, PathKey] = {}
    for path, objects in by_origin(plan):
        found.update((desired.key, path) for desired in objects)
    for service in plan.services:
        found[ResourceKey(ResourceKind.SERVICE, service.cluster_name)] = ("services", service.name)
        found[ResourceKey(ResourceKind.IMAGE, service.cluster_name)] = ("services", service.name, "build")
    for volume in plan.volumes:
        found[ResourceKey(ResourceKind.VOLUME, volume.cluster_name)] = ("volumes", volume.name)
    for endpoint in plan.endpoints:
        found[ResourceKey(ResourceKind.ENDPOINTS, endpoint.name)] = ("endpoints", endpoint.name)
    return found
