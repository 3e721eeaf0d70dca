"""Objects taken out of the cluster by ourselves, and waited for until they are gone.

Owns all that is deleted beside Pulumi: what stands in the way of a plan, what an interrupted run left, and what the
state knows nothing of. Only what carries our labels is ever touched: :mod:`~composeplat.engine.preflight` sees to it.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from composeplat import progress
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.watching import environment_selector
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.dev_workloads import is_dev_workload
from composeplat.engine.live_state import read_live_state
from composeplat.engine.preflight import CLAIM, Key, LiveState, api_path, belongs_to, known_to_state, object_keys
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan

FOR_PODS = "waiting until all pods have ended"
_GONE_WITHIN = 120.0
#: Kinds with fields that can't be changed, of which an interrupted run may have left others than are wanted now.
_RIGID = ("Job", "Service", "StatefulSet")


def delete(stack: Stack, api: Api, keys: Collection[Key], which: str) -> None:
    """Delete objects, and wait until they are gone."""
    for kind, name in keys:
        api.delete(api_path(kind, stack.namespace, name))
    until_gone(stack, api, keys, which)


def until_gone(stack: Stack, api: Api, keys: Iterable[Key], which: str) -> None:
    deadline = time.monotonic() + _GONE_WITHIN
    for kind, name in keys:
        with progress.step(f"waiting until {kind} '{name}' {which} is gone", is_transient=True):
            while api.find(api_path(kind, stack.namespace, name)) is not None:
                stack.stop_if_interrupted()
                if time.monotonic() > deadline:
                    raise ComposeplatError(
                        f"{kind} '{name}' {which} is not gone after {_GONE_WITHIN:.0f} s",
                        f"see what holds it: kubectl -n {stack.namespace} describe {kind.lower()} {name}",
                    )
                stack.pause()


def until_no_pods(stack: Stack, api: Api) -> None:
    path = kind_path("v1", "Pod", stack.namespace) + environment_selector(stack.environment_name)
    deadline = time.monotonic() + _GONE_WITHIN
    with progress.step(FOR_PODS, is_transient=True):
        while time.monotonic() < deadline:
            stack.stop_if_interrupted()
            if not any(belongs_to(pod, stack.environment_name) for pod in api.object_metadata(path)):
                return
            stack.pause()


def clear_the_way(stack: Stack, api: Api, plan: Plan, live_state: LiveState, state: Mapping[str, Any]) -> None:
    """Remove what an interrupted run left that can't be taken up: made by another plan, and not to be changed."""
    unknown = live_state.object_metadata.keys() - known_to_state(state)
    in_the_way = [
        (desired.kind, desired.name)
        for desired in plan.objects
        if desired.kind in _RIGID and (desired.kind, desired.name) in unknown and not _fits(api, desired.manifest)
    ]
    delete(stack, api, in_the_way, "of an interrupted deploy")


def remove_volume(stack: Stack, api: Api, plan: Plan, name: str) -> None:
    """Delete a volume and what uses it, so that both are made anew."""
    volume = next(one for one in plan.volumes if one.name == name)
    users = [service.workload for service in plan.users_of(name)]
    stack.note(f"deleting volume {name} and what it holds")
    delete(stack, api, [*users, (CLAIM, volume.cluster_name)], "that is replaced")


def remove_leftovers(stack: Stack, api: Api, plan: Plan) -> list[str]:
    """Remove what carries our labels and is no part of the plan: leavings of runs that were cut off."""
    wanted = set(object_keys(plan.objects))
    removed = []
    for (kind, name), head in read_live_state(api, stack.namespace).ours(stack.environment_name).items():
        is_wanted = kind == CLAIM or (kind, name) in wanted or is_dev_workload(head)
        if not is_wanted and "deletionTimestamp" not in head["metadata"]:
            api.delete(api_path(kind, stack.namespace, name))
            removed.append(f"{kind}/{name}")
    return removed


def _fits(api: Api, manifest: dict[str, Any]) -> bool:
    """Say whether an object that is there can be made what is wanted."""
    try:
        api.apply(_plain(manifest), dry_run=True)
    except ApiError as error:
        return error.status not in (http.client.UNPROCESSABLE_ENTITY, http.client.BAD_REQUEST)
    return True


def _plain(value: Any) -> Any:
    """A manifest as text alone: late values are what can be said of them before."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case str() | int() | float() | bool() | None:
            return value
        case _:
            return str(value)
