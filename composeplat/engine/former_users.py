"""Workloads that leave the definition, and whose volumes a workload takes over that is created now.

Owns that the pods of the first have ended before the second is created: a service that is renamed, or gets another
kind, must not write to its data twice at once. Pulumi alone deletes the former one at the very end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from composeplat.cluster.api import Api
from composeplat.cluster.live_list import wait_for
from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, has_ended, service_of
from composeplat.cluster.watching import pods_path
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.dev_workloads import is_dev_workload
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import Key, LiveState, api_path, belongs_to
from composeplat.engine.scaling import read_workloads
from composeplat.engine.stack import Stack
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.templates import claims_in, pod_template
from composeplat.system.deadline import Deadline

_TIMEOUT_S = 120.0

FormerUsers = Mapping[Key, Collection[Key]]
"""The workloads that leave, by the one that is created and mounts a volume of theirs."""


def find_former_users(api: Api, plan: Plan, live_state: LiveState, options: DeployOptions) -> FormerUsers:
    """Find the workloads that have to end before those of the chosen services are created."""
    ours = live_state.ours(plan.environment)
    present = {key for key, head in ours.items() if key[0] in WORKLOAD_KINDS and not is_dev_workload(head)}
    planned = {(found.kind, found.name): found for found in plan.objects if found.kind in WORKLOAD_KINDS}
    chosen = {(found.kind, found.name) for found in plan.limited_to(options.services).objects}
    created, leaving = (planned.keys() & chosen) - present, frozenset(present - planned.keys())
    if not created or not leaving:
        return {}
    workloads = read_workloads(api, plan)
    found = {key: _claims_in(workloads, leaving, planned[key]) for key in sorted(created)}
    return {key: former for key, former in found.items() if former}


def _claims_in(workloads: Mapping[Key, Object], leaving: frozenset[Key], created: DesiredObject) -> list[Key]:
    claims = _claims_of(created)
    return [
        key for key in sorted(leaving & workloads.keys()) if claims & claims_in(pod_template(workloads[key])["spec"])
    ]


def end_former_users(stack: Stack, plan: Plan, former: FormerUsers) -> Callable[[Key], None]:
    """Return the step before a workload is created: those whose volumes it takes over are deleted with their pods."""

    def end(created: Key) -> None:
        with Api(stack.target.access) as api:
            for key in former.get(created, ()):
                stack.note(f"{created[1]} takes over a volume of {key[1]}, whose pods end first")
                # A deploy after one that was killed here finds the workload as long as it has pods.
                api.delete(api_path(key[0], plan.namespace, key[1]), propagation="Foreground")
                _wait_until_unused(stack, api, plan, created, key)

    return end


def _wait_until_unused(stack: Stack, api: Api, plan: Plan, created: Key, former: Key) -> None:
    """Wait for the pods that use the volumes: those of a new workload with the name of the former one do not."""
    claims = next(_claims_of(found) for found in plan.objects if (found.kind, found.name) == created)
    path = pods_path(plan.namespace, plan.environment)

    def uses(pod: Object) -> bool:
        is_its = belongs_to(pod, plan.environment) and service_of(pod) == former[1]
        return is_its and not has_ended(pod) and bool(claims & claims_in(pod["spec"]))

    def is_unused(pods: list[Object]) -> bool:
        stack.interrupts.stop_waits()
        return not any(map(uses, pods))

    if not wait_for(api, path, is_unused, Deadline(_TIMEOUT_S)):
        raise ComposeplatError(
            f"the pods of {former[0]} '{former[1]}' have not ended after {_TIMEOUT_S:.0f} s",
            "nothing that uses their volumes was created; platform deploy continues from there",
        )


def _claims_of(desired: DesiredObject) -> set[str]:
    return claims_in(pod_template(desired.manifest)["spec"])
