"""Read the objects of a namespace for ``platform import``, and ask the API server for its answers to each change.

Owns the dry runs: an object that the plan has too is applied, and a workload of the plan is created under another name,
as its predecessor has its own. So the preview has the answers of the API server, and nothing is changed.
Must not decide: :mod:`~composeplat.engine.adoption` does.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import MissingPiece
from composeplat.engine.adoption import LiveObjects, is_replaced
from composeplat.engine.deletion import as_plain, under_another_name
from composeplat.engine.live_state import read_live_state
from composeplat.engine.ownership import owner_of
from composeplat.engine.preflight import KINDS, Key, belongs_to, object_keys
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.templates import SELECTING

#: The cluster role ``edit`` does not have it, whether the cluster knows it or not.
_OF_GATEWAYS = "HTTPRoute"
_REFUSALS = (
    http.client.BAD_REQUEST,
    http.client.FORBIDDEN,
    http.client.CONFLICT,
    http.client.UNPROCESSABLE_ENTITY,
)


def read_live_objects(api: Api, plan: Plan) -> LiveObjects:
    """Read the objects of a namespace, and the answers of the API server about the plan's."""
    namespace = plan.namespace
    state = read_live_state(api, namespace, object_keys(plan.objects))
    objects: dict[Key, Object] = {}
    planned = {desired.kind for desired in plan.objects}
    for kind, version in KINDS.items() if state.namespace else ():
        is_needed = kind != _OF_GATEWAYS or kind in planned
        for found in list_objects(api, namespace, kind, version, is_needed=is_needed):
            objects[kind, found["metadata"]["name"]] = {**found, "apiVersion": version, "kind": kind}
    pods = list_objects(api, namespace, "Pod", "v1") if state.namespace else []
    applied: dict[Key, Object] = {}
    refused: dict[Key, str] = {}
    for desired in plan.objects if objects else ():
        _rehearse(api, desired, objects, plan, applied=applied, refused=refused)
    return LiveObjects(state=state, objects=objects, pods=tuple(pods), applied=applied, refused=refused)


def list_objects(api: Api, namespace: str, kind: str, version: str, *, is_needed: bool = True) -> list[Object]:
    """List the objects of a kind; none if the cluster does not know it, or if it may be left out and not be listed."""
    try:
        return api.items(kind_path(version, kind, namespace))
    except ApiError as error:
        if error.status == http.client.NOT_FOUND:
            return []
        if error.status != http.client.FORBIDDEN:
            raise
        if not is_needed:
            return []
        plural = kind_path(version, kind).rpartition("/")[2]
        raise MissingPiece(
            f"can't look for objects to take over: you may not list {plural} in namespace '{namespace}'",
            f"let those who import see them: kubectl --namespace {namespace} create role see-what-is-there"
            f" --verb=get,list --resource={plural}, and bind it",
        ) from error


def _rehearse(
    api: Api,
    desired: DesiredObject,
    objects: Mapping[Key, Object],
    plan: Plan,
    *,
    applied: dict[Key, Object],
    refused: dict[Key, str],
) -> None:
    """Ask about the next version of a live object, or about a workload that takes the place of another."""
    key = desired.kind, desired.name
    found = objects.get(key)
    is_own = found is not None and belongs_to(found, plan.environment)
    if (found is None and desired.kind not in SELECTING) or (found is not None and not is_own and owner_of(found)):
        return
    manifest = as_plain(desired.manifest)
    try:
        if found is not None and not is_replaced(found, manifest, plan.environment):
            applied[key] = api.apply(manifest, dry_run=True)
        else:
            api.create(under_another_name(manifest), dry_run=True)
    except ApiError as error:
        if error.status not in _REFUSALS:
            raise
        refused[key] = str(error)
