"""Workloads with a HorizontalPodAutoscaler: a deploy keeps the number of pods that it chose.

Owns finding them, and the plan with their numbers of pods. A workload whose autoscaler is in the plan has no number
there: a deploy must only not own it.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.capabilities import has_metrics
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.compose.check_extensions import SCALED_KINDS
from composeplat.engine.dev_workloads import read_replicas, with_replicas
from composeplat.engine.preflight import AUTOSCALER, KINDS, Key, LiveState, api_path, belongs_to
from composeplat.engine.scaling import edit_managed_fields, remembered_replicas, scale_up
from composeplat.plan.desired import Plan


def autoscaled_replicas(api: Api, plan: Plan, live_state: LiveState) -> dict[Key, int]:
    """The autoscaled workloads of a plan, each with the number of pods that its autoscaler chose."""
    ours = live_state.ours(plan.environment)
    found = _autoscalers(api, plan.namespace) if live_state.namespace else []
    # Those of this environment are in the plan, or go with this deploy.
    targets = [_target(autoscaler) for autoscaler in found if not belongs_to(autoscaler, plan.environment)]
    planned = {service.workload for service in plan.services}
    counts = {key: _replicas(api, plan.namespace, key) for key in targets if key in ours and key in planned}
    # An autoscaler does nothing for a workload without pods.
    return {key: count for key, count in counts.items() if count}


def _autoscalers(api: Api, namespace: str) -> list[Object]:
    try:
        return api.items(kind_path(KINDS[AUTOSCALER], AUTOSCALER, namespace))
    except ApiError as error:
        # The user may not be allowed to list them, and not every cluster has the API.
        if error.status in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            return []
        raise


def _target(autoscaler: Object) -> Key:
    target = autoscaler["spec"]["scaleTargetRef"]
    return str(target["kind"]), str(target["name"])


def _replicas(api: Api, namespace: str, key: Key) -> int:
    live = api.find(api_path(key[0], namespace, key[1])) if key[0] in SCALED_KINDS else None
    return 0 if live is None else remembered_replicas(live) or read_replicas({**live, "kind": key[0]})


def with_autoscaled(plan: Plan, counts: Mapping[Key, int]) -> Plan:
    """The plan with the numbers of pods that autoscalers chose."""
    return with_replicas(plan, {name: count for (_, name), count in counts.items()})


def differs_from_state(state: Mapping[str, Any], counts: Mapping[Key, int]) -> bool:
    """Return whether the state has other numbers of pods, which would look like changes of the plan."""
    for resource in state.get("resources") or []:
        manifest = resource.get("inputs") or {}
        key = (str(manifest.get("kind")), str(manifest.get("metadata", {}).get("name")))
        if key in counts and not resource.get("delete") and read_replicas(manifest) != counts[key]:
            return True
    return False


def own_autoscaled(plan: Plan) -> dict[Key, str]:
    """The workloads whose autoscaler is in the plan, each with its service."""
    return {
        service.workload: service.name
        for service in plan.services
        if any(desired.kind == AUTOSCALER for desired in service.objects)
    }


def release_replicas(api: Api, plan: Plan, live_state: LiveState) -> None:
    """Give up the numbers of pods that an earlier deploy set: with the next apply they would become 1."""
    for kind, name in own_autoscaled(plan):
        if not live_state.lacks((kind, name)) and live_state.namespace:
            edit_managed_fields(api, api_path(kind, plan.namespace, name), without_replicas)


def without_replicas(fields: list[Object]) -> list[Object]:
    """Managed fields in which nobody who applies an object owns its number of pods."""
    return [_without_replicas(entry) if entry.get("operation") == "Apply" else entry for entry in fields]


def _without_replicas(entry: Object) -> Object:
    owned = entry.get("fieldsV1") or {}
    spec = {name: value for name, value in owned.get("f:spec", {}).items() if name != "f:replicas"}
    return {**entry, "fieldsV1": {**owned, "f:spec": spec}} if "f:spec" in owned else entry


def wake_autoscaled(api: Api, plan: Plan, asleep: Mapping[Key, int]) -> None:
    """Scale sleeping workloads up whose number of pods is not in the plan."""
    for key in own_autoscaled(plan).keys() & asleep.keys():
        scale_up(api, plan.namespace, key, asleep[key])


def describe_missing_metrics(api: Api, plan: Plan) -> str:
    """The note for a cluster without metrics; empty if it has them, or nothing needs them."""
    names = ", ".join(own_autoscaled(plan).values())
    if not names or has_metrics(api):
        return ""
    return f"{names}: the cluster has no metrics server, so x-autoscale keeps the smallest number of pods"
