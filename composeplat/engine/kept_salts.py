"""The salts of objects that are in the cluster and not in the state, as of another machine, or of a state that is lost.

Owns their way into the plan. With a new salt, each workload with values in such an object would change: its pods would
be replaced, and a Job would run again. Pure: a plan, a state and the live state come in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from composeplat.cluster.snapshot import Object
from composeplat.engine.preflight import LiveState, unknown_to_state
from composeplat.plan.desired import DesiredObject, Plan
from composeplat.plan.fingerprint import SALT_ANNOTATION, Fingerprint
from composeplat.plan.resource_keys import ResourceKey

_SALT = re.compile(r"[0-9a-f]{32}")


def with_kept_salts(plan: Plan, state: Mapping[str, Any], live_state: LiveState) -> Plan:
    """Return the plan with the salts that only the cluster has, and the hashes of these."""
    salts = _kept_salts(plan, state, live_state)
    if not salts:
        return plan

    def with_salt(desired: DesiredObject) -> DesiredObject:
        manifest = _with_hashes(desired.manifest, salts)
        return replace(desired, manifest=_with_annotation(manifest, salts.get(desired.key, "")))

    services = tuple(replace(service, objects=tuple(map(with_salt, service.objects))) for service in plan.services)
    files = tuple(replace(file, objects=tuple(map(with_salt, file.objects))) for file in plan.files)
    return replace(plan, services=services, files=files)


def _kept_salts(plan: Plan, state: Mapping[str, Any], live_state: LiveState) -> dict[ResourceKey, str]:
    salted = {found.secret for service in plan.services for found in service.fingerprints}
    unknown = set(unknown_to_state(plan, state, live_state))
    found = {
        desired.key: _salt_of(live_state.object_metadata[desired.kind, desired.name])
        for desired in plan.objects
        if desired.key in salted and (desired.kind, desired.name) in unknown
    }
    return {key: salt for key, salt in found.items() if salt}


def _salt_of(head: Object) -> str:
    found = str((head["metadata"].get("annotations") or {}).get(SALT_ANNOTATION) or "")
    return found if _SALT.fullmatch(found) else ""


def _with_hashes(value: Any, salts: Mapping[ResourceKey, str]) -> Any:
    match value:
        case dict():
            return {key: _with_hashes(item, salts) for key, item in value.items()}
        case list():
            return [_with_hashes(item, salts) for item in value]
        case Fingerprint():
            return replace(value, salt=salts.get(value.secret, ""))
        case _:
            return value


def _with_annotation(manifest: dict[str, Any], salt: str) -> dict[str, Any]:
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), SALT_ANNOTATION: salt}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}} if salt else manifest
