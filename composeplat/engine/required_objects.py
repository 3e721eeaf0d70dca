"""The objects and kinds of others that a plan requires: whether each exists, with the key that a service reads.

Owns this check, which stops a deploy before anything changes: a pod would wait for a missing object without end.
An object that this user may not read is not reported: the kubelet may.
Owns too that a claim which was the environment's own is someone else's once it is external.
"""

from __future__ import annotations

import http.client

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.endpoints import ROUTE
from composeplat.cluster.kinds import kind_path
from composeplat.compose.origins import Origins
from composeplat.diagnostics import MissingPiece, PathKey, Report, dotted, join_some
from composeplat.engine.preflight import CLAIM, api_path, belongs_to
from composeplat.engine.stack import Stack
from composeplat.names import LABEL_PREFIX
from composeplat.plan.desired import RUNTIME_CLASS, Plan, RequiredObject

_MAX_KEYS = 5
_NODE_API = "node.k8s.io/v1"
#: The beginnings of labels that say whose an object is.
_OURS = ("app.kubernetes.io/", f"{LABEL_PREFIX}/")
_COMMANDS = {"ConfigMap": "create configmap", "Secret": "create secret generic"}


def check_required(api: Api, plan: Plan, origins: Origins, report: Report) -> None:
    """Report required objects that are missing, lack their key, or would be deleted by this very deploy."""
    for required in plan.required:
        try:
            found = api.find(_path(required, plan.namespace))
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            continue
        if found is None and required.kind == RUNTIME_CLASS:
            _report_runtime(api, required, origins, report)
        elif found is None:
            _report_missing(required, plan.namespace, origins, report)
        elif required.key and belongs_to(found, plan.environment):
            _report_own(required, origins, report)
        elif required.key:
            keys = {*(found.get("data") or {}), *(found.get("binaryData") or {})}
            if required.key not in keys:
                _report_key(required, sorted(keys), origins, report)


def check_routes(api: Api, plan: Plan) -> None:
    """Check that the cluster has the kind of routes; Pulumi's preview would show them as any others."""
    version, kind = ROUTE
    route = next((desired.manifest for desired in plan.objects if desired.kind == kind), None)
    if route is None:
        return
    try:
        served = api.find(f"/apis/{version}")
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return
    if not any(resource.get("kind") == kind for resource in (served or {}).get("resources", ())):
        gateway = route["spec"]["parentRefs"][0]["name"]
        raise MissingPiece(
            f"endpoints are routes of Gateway '{gateway}', and the cluster lacks their kind: {kind} of {version}",
            "install the Gateway API in the cluster, or leave --gateway out for Ingresses",
        )


def release_claims(stack: Stack, api: Api, plan: Plan) -> None:
    """Take the environment's labels from claims that are external now, so that nothing of it deletes them."""
    for required in plan.required:
        head = api.find(_path(required, plan.namespace)) if required.kind == CLAIM else None
        if head is not None and belongs_to(head, plan.environment):
            labels = dict.fromkeys(name for name in head["metadata"]["labels"] if name.startswith(_OURS))
            api.patch(_path(required, plan.namespace), {"metadata": {"labels": labels}})
            stack.note(f"volume {required.path[-1]} is external now: it is of this environment no more")


def _path(required: RequiredObject, namespace: str) -> str:
    if required.kind == RUNTIME_CLASS:
        return f"{kind_path(_NODE_API, RUNTIME_CLASS)}/{required.name}"
    return api_path(required.kind, namespace, required.name)


def _shown(required: RequiredObject, origins: Origins) -> str:
    """Quote the name of an object, as the file has it if it comes from a variable."""
    place = _place_of_variable(required, origins)
    return origins.shown(*place) if place else f"'{required.name}'"


def _place_of_variable(required: RequiredObject, origins: Origins) -> PathKey:
    """Return the path of the name if it comes from a variable; empty if it does not."""
    places = (required.path, (*required.path, "name"), (*required.path, "external", "name"))
    return next((place for place in places if origins.is_substituted(*place)), ())


def _report_missing(required: RequiredObject, namespace: str, origins: Origins, report: Report) -> None:
    shown = _shown(required, origins)
    message = f"{dotted(required.path)} is external, and {required.kind} {shown} is not in namespace"
    command = _COMMANDS.get(required.kind, "")
    name = "NAME" if _place_of_variable(required, origins) else required.name
    key = "KEY" if origins.is_substituted(*required.path, "x-key") else required.key
    create = f"create it: kubectl --namespace {namespace} {command} {name} --from-file={key}=FILE"
    hint = f"{create if command else 'create it'}, or correct its 'name'"
    report.add("missing-object", origins.at(*required.path), required.path, f"{message} '{namespace}'", hint)


def _report_runtime(api: Api, required: RequiredObject, origins: Origins, report: Report) -> None:
    names = sorted(item["metadata"]["name"] for item in api.items(kind_path(_NODE_API, RUNTIME_CLASS)))
    message = f"{dotted(required.path)} needs RuntimeClass {_shown(required, origins)}, which the cluster lacks"
    hint = (
        f"classes are: {join_some(names, _MAX_KEYS)}"
        if names
        else "leave it out, or ask the administrator of the cluster for it"
    )
    report.add("missing-object", origins.at(*required.path), required.path, message, hint)


def _report_own(required: RequiredObject, origins: Origins, report: Report) -> None:
    message = (
        f"{dotted(required.path)} is external, and {required.kind} {_shown(required, origins)} is of this environment,"
        " whose deploy would delete it"
    )
    hint = "create one under another name, and give that as its 'name'"
    report.add("missing-object", origins.at(*required.path), required.path, message, hint)


def _report_key(required: RequiredObject, keys: list[str], origins: Origins, report: Report) -> None:
    have = join_some([f"'{key}'" for key in keys], _MAX_KEYS)
    shown, path = _shown(required, origins), required.path
    key = origins.shown(*path, "x-key") if origins.is_substituted(*path, "x-key") else f"'{required.key}'"
    message = f"{dotted(path)} reads the key {key}, and {required.kind} {shown} has"
    hint = f"name its key: x-key: {keys[0]}" if len(keys) == 1 else "name one of its keys with 'x-key'"
    where = origins.at(*path)
    report.add("missing-object", where, path, f"{message} {have or 'no key'}", hint if keys else "add the key")
