"""Objects of a program beside those of a service, such as a PodDisruptionBudget.

Owns the additions to their manifests, and which are refused. Values of a manifest may be anything that Pulumi accepts:
they are left as they are.
An object has no label by which ``platform`` knows its own: a deploy deletes those that are not in its plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from composeplat.diagnostics import ComposeplatError, join_some, quoted
from composeplat.names import LABEL_PREFIX, clean
from composeplat.plan.desired import Manifest, Plan, ServicePlan
from composeplat.plan.identity import Identity
from composeplat.system.records import record

Extras = Mapping[str, Sequence[Mapping[str, Any]]]
"""Manifests by service."""
#: Kinds whose ``spec.selector`` selects pods, or the Kubernetes Services of a service, which have the same labels.
_SELECTING = (
    ("policy", "PodDisruptionBudget"),
    ("monitoring.coreos.com", "PodMonitor"),
    ("monitoring.coreos.com", "ServiceMonitor"),
)
_MAX_LISTED = 8
_OTHER_NAME = "give it another 'metadata.name'; to change an object of the file, use 'transforms' or 'x-kubernetes'"
_FORMS = {
    "apiVersion": (re.compile(r"([a-z0-9][a-z0-9.-]*/)?v[a-z0-9]+"), "such as 'policy/v1'"),
    "kind": (re.compile(r"[A-Za-z][A-Za-z0-9]*"), "such as 'PodDisruptionBudget'"),
    "name": (re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"), "of lowercase letters, digits, '-' and '.'"),
}


@record(kw_only=True)
class ExtraObject:
    kind: str
    name: str
    manifest: Manifest

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.name}"


def plan_extras(plan: Plan, extras: Extras) -> dict[str, tuple[ExtraObject, ...]]:
    """Complete the manifests of a program, by service; those of services whose profiles are off are left out."""
    check_services(plan, "extras", extras)
    planned = {
        service.name: tuple(_complete_all(plan, service, extras[service.name]))
        for service in plan.services
        if service.name in extras
    }
    taken = {f"{desired.kind}/{desired.name}" for desired in plan.objects}
    for extra in (extra for found in planned.values() for extra in found):
        if extra.label in taken:
            raise ComposeplatError(f"'extras' has {extra.kind} '{extra.name}', which exists already", _OTHER_NAME)
        taken.add(extra.label)
    return planned


def _complete_all(plan: Plan, service: ServicePlan, manifests: Sequence[Mapping[str, Any]]) -> Iterator[ExtraObject]:
    for index, manifest in enumerate(manifests):
        yield _complete(plan, service, f"extras[{service.name!r}][{index}]", manifest)


def check_services(plan: Plan, argument: str, names: Mapping[str, object]) -> None:
    """Refuse the name of a service that the definition does not have."""
    known = [service.name for service in plan.services]
    for name in names:
        if name not in known and clean(name) not in plan.inactive:
            message = f"'{argument}' names a service that the definition does not have: '{name}'"
            raise ComposeplatError(message, f"services are: {join_some(known, _MAX_LISTED)}")


def _complete(plan: Plan, service: ServicePlan, place: str, manifest: Mapping[str, Any]) -> ExtraObject:
    """Add the namespace, the labels, and where they are missing the name and the selector."""
    api_version, kind = (_text(manifest, place, key) for key in ("apiVersion", "kind"))
    metadata = _mapping(manifest, place, "metadata")
    name = _text(metadata, f"{place}.metadata", "name") if "name" in metadata else service.cluster_name
    _check_namespace(metadata, place, plan)
    identity = plan.identity
    completed = {**metadata, "name": name, "namespace": plan.namespace}
    completed["labels"] = {**_labels(identity, service), **dict(_own_labels(metadata, place))}
    selecting = (api_version.partition("/")[0], kind) in _SELECTING
    spec = {"spec": _with_selector(_mapping(manifest, place, "spec"), identity, service)} if selecting else {}
    return ExtraObject(kind=kind, name=name, manifest={**manifest, "metadata": completed, **spec})


def _labels(identity: Identity, service: ServicePlan) -> dict[str, str]:
    found = identity.labels(service.cluster_name)
    return {f"app.kubernetes.io/{key}": found[f"app.kubernetes.io/{key}"] for key in ("part-of", "component")}


def _own_labels(metadata: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    for key, value in _mapping(metadata, f"{place}.metadata", "labels").items():
        if str(key).startswith(f"{LABEL_PREFIX}/"):
            message = f"{place}.metadata.labels has '{key}', by which platform knows the objects of the definition"
            raise ComposeplatError(message, "leave the label out")
        yield key, value


def _with_selector(spec: Mapping[str, Any], identity: Identity, service: ServicePlan) -> Manifest:
    return {"selector": {"matchLabels": identity.selector(service.workload_name)}, **spec}


def _check_namespace(metadata: Mapping[str, Any], place: str, plan: Plan) -> None:
    if metadata.get("namespace", plan.namespace) != plan.namespace:
        message = f"{place}.metadata.namespace differs from the namespace of the stack"
        raise ComposeplatError(message, "leave it out, or make the object a resource of its own")


def _text(manifest: Mapping[str, Any], place: str, key: str) -> str:
    value = manifest.get(key) if isinstance(manifest, Mapping) else None
    if not isinstance(value, str):
        raise ComposeplatError(f"{place} must have '{key}', a plain text", "give the manifest of an object, as a dict")
    pattern, requirement = _FORMS[key]
    if not pattern.fullmatch(value):
        raise ComposeplatError(f"{place}.{key} must be {requirement}, not {quoted(value)}")
    return value


def _mapping(manifest: Mapping[str, Any], place: str, key: str) -> Mapping[str, Any]:
    value = manifest.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ComposeplatError(f"{place}.{key} must be a dict", "its values may be outputs")
    return value
