"""The decision of ``platform import`` on each object that is in a namespace already: pure.

Owns the decision, object by object, from the plan and the live objects. Must not read or change a cluster:
:mod:`~composeplat.engine.adoption_look` reads, :mod:`~composeplat.engine.adoption_steps` acts.

*Nothing is replaced* means: no claim, so no data; and no Service, so no address. Pods are replaced by every change of
their template, and the first one adds our labels. A workload is *handed over*, since its selector can never change:

- Of the same kind, its pods stay while it is deleted (``kubectl delete --cascade=orphan``), and get the labels that we
  select by. The workload that the deploy makes adopts them by these, and its own rolling update replaces them: a
  Deployment starts new pods before it ends old ones.
- Of another kind, such as the Deployment that kompose makes for a service with a volume, it is scaled to zero first,
  and deleted when its successor runs: two pods must never write to one volume.
- A CronJob selects no pods, but its template would keep containers of other names, which run beside the plan's.

To keep the selector instead would avoid the new workload object. But then the selector would be a fact that only the
cluster has: ``render``, plain Pulumi and a second environment would need it in the file for ever, and two environments
of one namespace with the same old labels would adopt each other's pods.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, owner_uid
from composeplat.diagnostics import PathKey
from composeplat.engine.adoption_fields import FieldChange, field_changes, kept_fields
from composeplat.engine.ownership import LAST_APPLIED, owner_of
from composeplat.engine.preflight import CLAIM, Key, LiveState, belongs_to, by_origin, changes_of_claim
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.templates import SELECTING, pod_template
from composeplat.system.records import record

KOMPOSE_LABEL = "io.kompose.service"
#: The policy for the claims of a StatefulSet that is scaled down or deleted.
_RETENTION = "persistentVolumeClaimRetentionPolicy"
_EXTERNAL = ("LoadBalancer", "NodePort", "ExternalName")


class Action(StrEnum):
    ADOPT = "adopt"
    """The object stays, and is of the environment from now on."""
    HAND_OVER = "hand-over"
    """A workload is replaced by the plan's."""
    FOLLOW = "follow"
    """A Service of somebody else stays, and selects the new pods."""
    LEAVE = "leave"
    REFUSE = "refuse"


@record(kw_only=True)
class Adoption:
    """The decision on one live object."""

    action: Action
    kind: str
    name: str
    path: PathKey = ()
    """The part of the definition that it is for."""
    successor: Key | None = None
    """The workload of the plan that takes its place."""
    is_interrupted: bool = False
    """Whether the service is away for a moment."""
    changes: tuple[FieldChange, ...] = ()
    kept: tuple[str, ...] = ()
    """Fields that stay as somebody else has set them."""
    reason: str = ""
    hint: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    """The selector that a Service gets."""

    @property
    def key(self) -> Key:
        return self.kind, self.name

    @property
    def is_in_place(self) -> bool:
        """Whether a workload of the same kind takes its place, with its pods."""
        return self.successor is not None and self.kind == self.successor[0]


@record(kw_only=True)
class LiveObjects:
    """The objects of a namespace, whole, and the answers of the API server to dry runs."""

    state: LiveState
    objects: Mapping[Key, Object]
    pods: tuple[Object, ...] = ()
    applied: Mapping[Key, Object] = field(default_factory=dict)
    """By a dry run: an object that the plan has too, once the plan is applied."""
    refused: Mapping[Key, str] = field(default_factory=dict)
    """Why the API server refuses an object of the plan, by a dry run."""


def decide(plan: Plan, live: LiveObjects) -> list[Adoption]:
    """Decide on each live object that is for the plan, or in its way."""
    found = [*_planned(plan, live), *_other_workloads(plan, live)]
    handed = [entry for entry in found if entry.action is Action.HAND_OVER]
    refusals = {entry.key: entry for entry in _data_left_behind(plan, live, handed)}
    found = [refusals.get(entry.key, entry) for entry in found]
    found += _services_of_others(plan, live, handed)
    known = {entry.key for entry in found} | {(desired.kind, desired.name) for desired in plan.objects}
    return [*found, *_left(plan, live, handed, known)]


# objects of the plan --------------------------------------------------------------------------------------------------


def _planned(plan: Plan, live: LiveObjects) -> Iterator[Adoption]:
    for path, objects in by_origin(plan):
        for desired in objects:
            found = live.objects.get((desired.kind, desired.name))
            if found is not None and not _is_done(found, plan):
                yield replace(_decide(desired, found, plan, live), kind=desired.kind, name=desired.name, path=path)


def _is_done(found: Object, plan: Plan) -> bool:
    """Whether an object is of the environment, and no earlier import stopped half way."""
    return belongs_to(found, plan.environment) and LAST_APPLIED not in (found["metadata"].get("annotations") or {})


def _decide(desired: DesiredObject, found: Object, plan: Plan, live: LiveObjects) -> Adoption:
    key = desired.kind, desired.name
    obstacle = "" if belongs_to(found, plan.environment) else owner_of(found)
    if obstacle:
        return _refused(f"belongs to {obstacle}", _hint_for_owner(desired))
    if "deletionTimestamp" in found["metadata"]:
        return _refused("is being deleted", "wait until it is gone, then run the command again")
    if desired.kind == CLAIM and (changes := changes_of_claim(desired, live.state)):
        return _refused(f"can't be changed without losing its data: {' and '.join(changes)}", _claim_hint(changes))
    if desired.kind == "Service" and (change := _lost_address(desired, found)):
        return change
    reason = live.refused.get(key, "")
    if reason and (desired.kind != "Job" or "immutable" not in reason):
        return _refused(f"can't become the plan's: {reason}", "change the file, or the object, so that both agree")
    if desired.kind == "Job" and reason:
        return _handed_over(key, key, "a Job can't change: it is deleted, and runs again")
    if is_replaced(found, desired.manifest, plan.environment):
        return _handed_over(key, key)
    after = live.applied.get(key, found)
    return Adoption(action=Action.ADOPT, kind="", name="", changes=field_changes(found, after), kept=kept_fields(after))


def _refused(reason: str, hint: str) -> Adoption:
    return Adoption(action=Action.REFUSE, kind="", name="", reason=reason, hint=hint)


def _hint_for_owner(desired: DesiredObject) -> str:
    if desired.kind == CLAIM:
        return "rename the volume, or use this claim as it is: 'external' in full mode"
    return "rename it here, take it away from its owner first, or deploy into another namespace with --namespace"


def _claim_hint(changes: Iterable[str]) -> str:
    if any(change.startswith("its size") for change in changes):
        return "set the size that it has: driver_opts.size of the volume"
    return "set those of the claim: driver_opts.class of the volume, or its access mode in full mode"


def _lost_address(desired: DesiredObject, found: Object) -> Adoption | None:
    """Refuse a Service that would lose its address, in the cluster or outside."""
    spec, wanted = found["spec"], desired.manifest["spec"]
    kind = spec.get("type", "ClusterIP")
    if kind in _EXTERNAL:
        return _refused(
            f"is a Service of type {kind}, and would lose its address outside of the cluster",
            "keep that address with a Service of another name first, which 'platform import' then keeps up to date",
        )
    if spec.get("clusterIP") != "None" and wanted.get("clusterIP") == "None":
        ports = ", ".join(str(port["port"]) for port in spec.get("ports") or ())
        return _refused("has an address, and would lose it", f"list its ports in the file, under 'expose': {ports}")
    if spec.get("clusterIP") == "None" and wanted.get("clusterIP") != "None":
        return _refused(
            "has no address of its own, and can't get one", "use deploy.endpoint_mode: dnsrr, or delete it first"
        )
    return None


def _handed_over(key: Key, successor: Key, reason: str = "") -> Adoption:
    if reason:
        text, is_interrupted = reason, True
    elif key[0] == "CronJob":
        text, is_interrupted = "it is deleted and created again, and its running Jobs continue", False
    elif key[0] == successor[0] == "Deployment":
        text, is_interrupted = "new pods start before the old ones end", False
    elif key[0] == successor[0]:
        text, is_interrupted = "its pods stay, and are replaced one after another", True
    else:
        text = f"it is scaled to zero, and the {successor[0]} starts when its pods have ended"
        is_interrupted = True
    return Adoption(
        action=Action.HAND_OVER,
        kind=key[0],
        name=key[1],
        successor=successor,
        reason=text,
        is_interrupted=is_interrupted,
    )


def is_replaced(found: Object, manifest: Mapping[str, Any], environment: str) -> bool:
    """Check for a workload that can't become the plan's: it selects other pods, or runs containers of somebody else."""
    if found["kind"] == "CronJob":
        return not belongs_to(found, environment)
    return found["kind"] in SELECTING and found["spec"].get("selector") != manifest["spec"].get("selector")


# workloads of other names and kinds -----------------------------------------------------------------------------------


def _other_workloads(plan: Plan, live: LiveObjects) -> Iterator[Adoption]:
    """Decide on workloads that run a service of the plan under another name, or as another kind."""
    for service in plan.services:
        for key, found in live.objects.items():
            is_its = key[0] in SELECTING and key != service.workload and not service.pod_of
            if is_its and _runs(found, service) and not belongs_to(found, plan.environment):
                yield replace(_decide_other(key, found, service, live), path=("services", service.name))


def _decide_other(key: Key, found: Object, service: ServicePlan, live: LiveObjects) -> Adoption:
    owner, reason = owner_of(found), live.refused.get(service.workload, "")
    if owner:
        return Adoption(action=Action.LEAVE, kind=key[0], name=key[1], reason=f"belongs to {owner}")
    if reason:
        entry = _refused(f"can't be followed by the plan's {service.workload_kind}: {reason}", "change the file")
        return replace(entry, kind=key[0], name=key[1])
    if key[0] != service.workload_kind and "Delete" in (found["spec"].get(_RETENTION) or {}).values():
        entry = _refused(
            "deletes its claims, with their data, once it is scaled to zero or deleted", _retention_hint(key)
        )
        return replace(entry, kind=key[0], name=key[1])
    return _handed_over(key, service.workload)


def _retention_hint(key: Key) -> str:
    patch = {"spec": {_RETENTION: {"whenScaled": "Retain", "whenDeleted": "Retain"}}}
    return f"let it keep them: kubectl patch {key[0].lower()} {key[1]} --patch '{json.dumps(patch)}'"


def _runs(found: Object, service: ServicePlan) -> bool:
    metadata = found["metadata"]
    names = (service.name, service.cluster_name)
    return metadata["name"] == service.cluster_name or (metadata.get("labels") or {}).get(KOMPOSE_LABEL) in names


def _data_left_behind(plan: Plan, live: LiveObjects, handed: Iterable[Adoption]) -> Iterator[Adoption]:
    """Refuse a workload whose data is in another claim than the plan's: its successor would find an empty volume."""
    workloads = {(desired.kind, desired.name): desired.manifest for desired in plan.objects}
    for entry in handed:
        planned = _claims_by_path(workloads[entry.successor]) if entry.successor in workloads else {}
        for path, name in _claims_by_path(live.objects[entry.key]).items():
            wanted = planned.get(path, name)
            if wanted != name:
                yield _refuse_other_claim(plan, entry, path, name, wanted)


def _refuse_other_claim(plan: Plan, entry: Adoption, path: str, name: str, wanted: str) -> Adoption:
    volume = next((found.name for found in plan.volumes if any(d.name == wanted for d in found.objects)), "")
    hint = (
        f"use that claim, in full mode: volumes: {{{volume}: {{name: {name}}}}} with x-platform: {{full: true}}"
        if volume
        else "give the volume a name in the file, and that of the claim in full mode: volumes.NAME.name"
    )
    return replace(
        entry,
        action=Action.REFUSE,
        successor=None,
        is_interrupted=False,
        reason=f"has its data for {path} in claim '{name}', and the file's volume is another one, '{wanted}'",
        hint=hint,
    )


def _claims_by_path(workload: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims that the pods of a workload mount, by their paths in any container."""
    spec = pod_template(dict(workload)).get("spec") or {}
    name = workload["metadata"]["name"]
    templates = workload["spec"].get("volumeClaimTemplates") or ()
    claims = {found["metadata"]["name"]: f"{found['metadata']['name']}-{name}-0" for found in templates}
    for volume in spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            claims[volume["name"]] = str(volume["persistentVolumeClaim"].get("claimName"))
    mounts = [mount for container in spec.get("containers") or () for mount in container.get("volumeMounts") or ()]
    return {str(mount["mountPath"]): claims[mount["name"]] for mount in mounts if mount["name"] in claims}


def _pod_labels(workload: Mapping[str, Any]) -> Mapping[str, str]:
    return (pod_template(dict(workload)).get("metadata") or {}).get("labels") or {}


# objects of others ----------------------------------------------------------------------------------------------------


def _services_of_others(plan: Plan, live: LiveObjects, handed: Iterable[Adoption]) -> Iterator[Adoption]:
    """Let Services of other names select the new pods: they would lead to none.

    One that leads to other pods too stays as it is: it would lose these.
    """
    planned = {(desired.kind, desired.name) for desired in plan.objects}
    by_key = {entry.key: entry for entry in handed}
    for key, found in live.objects.items():
        if key[0] != "Service" or key in planned or belongs_to(found, plan.environment):
            continue
        selected = _selected_workloads(found, live)
        entries = [by_key[workload] for workload in selected if workload in by_key]
        if entries:
            follower = _follower(plan, found, entries[0], is_shared=len(selected) > 1)
            yield replace(follower, kind=key[0], name=key[1])


def _selected_workloads(service: Object, live: LiveObjects) -> list[Key]:
    selector = service["spec"].get("selector") or {}
    workloads = (key for key in live.objects if key[0] in WORKLOAD_KINDS) if selector else ()
    return [key for key in workloads if selector.items() <= _pod_labels(live.objects[key]).items()]


def _follower(plan: Plan, service: Object, entry: Adoption, *, is_shared: bool) -> Adoption:
    owner = owner_of(service)
    reason = "it leads to the new pods"
    if owner:
        reason = f"belongs to {owner}, and will lead to no pods"
    elif is_shared:
        reason = "it leads to pods of several workloads, and will not lead to the new ones"
    successor = entry.successor[1] if entry.successor else ""
    return Adoption(
        action=Action.LEAVE if owner or is_shared else Action.FOLLOW,
        kind="",
        name="",
        path=entry.path,
        selector=plan.identity.selector(successor),
        reason=reason,
    )


def _left(plan: Plan, live: LiveObjects, handed: Iterable[Adoption], known: Iterable[Key]) -> Iterator[Adoption]:
    """List objects of a converter that the plan has no use for, and policies that lose their pods."""
    names = {name for service in plan.services for name in (service.name, service.cluster_name)}
    olds = [_pod_labels(live.objects[entry.key]) for entry in handed]
    mounted = {claim for entry in handed for claim in _claims_by_path(live.objects[entry.key]).values()}
    taken = set(known)
    for key, found in {**live.objects, **{("Pod", pod["metadata"]["name"]): pod for pod in live.pods}}.items():
        labels = found["metadata"].get("labels") or {}
        if key in taken or belongs_to(found, plan.environment) or owner_uid(found):
            continue
        reason = ""
        if key[0] == "NetworkPolicy" and any(_selects(found["spec"].get("podSelector"), old) for old in olds):
            reason = "it selects pods by labels that the new pods lack"
        elif key[0] == CLAIM and key[1] in mounted:
            reason = "the file has no such volume; its data stays"
        elif labels.get(KOMPOSE_LABEL) in names:
            reason = "it still runs, beside the plan's" if key[0] in ("Pod", "Job", "CronJob") else "nothing uses it"
        if reason:
            yield Adoption(action=Action.LEAVE, kind=key[0], name=key[1], reason=reason)


def _selects(selector: Any, labels: Mapping[str, str]) -> bool:
    matched = (selector or {}).get("matchLabels") or {}
    return bool(matched) and matched.items() <= labels.items()
