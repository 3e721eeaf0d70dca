"""The objects of others that a plan requires: whether each exists, with the key that a service reads.

Owns this check, which stops a deploy before anything changes: a pod would wait for a missing object without end.
An object that this user may not read is not reported: the kubelet may.
"""

from __future__ import annotations

import http.client

from composeplat.cluster.api import Api, ApiError
from composeplat.compose.origins import Origins
from composeplat.diagnostics import Report, dotted
from composeplat.engine.preflight import api_path
from composeplat.plan.desired import Plan, RequiredObject

_MAX_KEYS = 5
_COMMANDS = {"ConfigMap": "create configmap", "Secret": "create secret generic"}


def check_required(api: Api, plan: Plan, origins: Origins, report: Report) -> None:
    """Report required objects that are missing, or lack their key."""
    for required in plan.required:
        try:
            found = api.find(api_path(required.kind, plan.namespace, required.name))
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            continue
        if found is None:
            _report_missing(required, plan.namespace, origins, report)
        elif required.key:
            keys = {*(found.get("data") or {}), *(found.get("binaryData") or {})}
            if required.key not in keys:
                _report_key(required, sorted(keys), origins, report)


def _report_missing(required: RequiredObject, namespace: str, origins: Origins, report: Report) -> None:
    message = f"{dotted(required.path)} is external, and {required.kind} '{required.name}' is not in namespace"
    command = _COMMANDS.get(required.kind, "")
    create = f"create it: kubectl --namespace {namespace} {command} {required.name} --from-file={required.key}=FILE"
    hint = f"{create if command else 'create it'}, or correct its 'name'"
    report.add("missing-object", origins.at(*required.path), required.path, f"{message} '{namespace}'", hint)


def _report_key(required: RequiredObject, keys: list[str], origins: Origins, report: Report) -> None:
    have = ", ".join(f"'{key}'" for key in keys[:_MAX_KEYS]) + (" …" if len(keys) > _MAX_KEYS else "")
    message = f"{dotted(required.path)} reads the key '{required.key}', and {required.kind} '{required.name}' has"
    hint = f"name its key: x-key: {keys[0]}" if len(keys) == 1 else "name one of its keys with 'x-key'"
    where = origins.at(*required.path)
    report.add("missing-object", where, required.path, f"{message} {have or 'no key'}", hint if keys else "add the key")
