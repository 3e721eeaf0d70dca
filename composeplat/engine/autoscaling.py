"""Workloads with a HorizontalPodAutoscaler: a deploy keeps the number of pods that it chose.

Owns finding them, and the plan with their numbers of pods.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any

from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.snapshot import Object
from composeplat.engine.dev_workloads import read_replicas, with_replicas
from composeplat.engine.preflight import Key, LiveState, api_path
from composeplat.engine.scaling import remembered_replicas
from composeplat.plan.desired import Plan

_SCALED = ("Deployment", "StatefulSet")


def autoscaled_replicas(api: Api, plan: Plan, live_state: LiveState) -> dict[Key, int]:
    """The autoscaled workloads of a plan, each with the number of pods that its autoscaler chose."""
    ours = live_state.ours(plan.environment)
    targets = [_target(autoscaler) for autoscaler in _autoscalers(api, plan.namespace)] if live_state.namespace else []
    planned = {service.workload for service in plan.services}
    found = {key: _replicas(api, plan.namespace, key) for key in targets if key in ours and key in planned}
    # An autoscaler does nothing for a workload without pods.
    return {key: count for key, count in found.items() if count}


def _autoscalers(api: Api, namespace: str) -> list[Object]:
    try:
        return api.items(kind_path("autoscaling/v2", "HorizontalPodAutoscaler", namespace))
    except ApiError as error:
        # The user may not be allowed to list them, and not every cluster has the API.
        if error.status in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            return []
        raise


def _target(autoscaler: Object) -> Key:
    target = autoscaler["spec"]["scaleTargetRef"]
    return str(target["kind"]), str(target["name"])


def _replicas(api: Api, namespace: str, key: Key) -> int:
    live = api.find(api_path(key[0], namespace, key[1])) if key[0] in _SCALED else None
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
