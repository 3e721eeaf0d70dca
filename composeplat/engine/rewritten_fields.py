"""Fields of pod templates that the cluster rewrites as they are applied, as an admission webhook does with images.

Pulumi's provider compares the live object with the planned one: such a field is a change in every run, and a Job is
replaced and runs again. Owns which fields these are: the state has the planned value as input, and another live one.
A field that someone changed by hand is not among them: a refresh makes the live value the input.
Pure: a plan and a state come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from composeplat.engine.recorded_plan import resources_of
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKey

#: Where the pod template of a workload is; that of a CronJob is within the template of its Jobs.
_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))


def rewritten_fields(plan: Plan, state: Mapping[str, Any]) -> dict[ResourceKey, tuple[str, ...]]:
    """Return the paths of rewritten fields, as Pulumi writes paths."""
    planned = {desired.key: desired.manifest for desired in plan.objects}
    found: dict[ResourceKey, tuple[str, ...]] = {}
    for key, resource in resources_of(state):
        if key in planned:
            versions = planned[key], resource.get("inputs"), resource.get("outputs")
            found[key] = tuple(path for place in _TEMPLATES for path in _rewritten_at(place, *versions))
    return {key: paths for key, paths in found.items() if paths}


def _rewritten_at(place: tuple[str, ...], *versions: Any) -> Iterator[str]:
    for step in place:
        versions = tuple((version or {}).get(step) for version in versions)
    return _rewritten(".".join(place), *versions)


def _rewritten(path: str, planned: Any, recorded: Any, live: Any) -> Iterator[str]:
    versions = planned, recorded, live
    if all(isinstance(version, dict) for version in versions):
        for name in planned.keys() & recorded.keys() & live.keys():
            yield from _rewritten(f'{path}["{name}"]', planned[name], recorded[name], live[name])
    elif all(isinstance(version, list) for version in versions):
        if len(planned) == len(recorded) == len(live):
            for index, values in enumerate(zip(*versions, strict=True)):
                yield from _rewritten(f"{path}[{index}]", *values)
    elif planned == recorded and live not in (recorded, None):
        yield path
