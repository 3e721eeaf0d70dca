"""Whether a deploy would change nothing: the record of the last run, and why it does not hold any more.

Owns the form of the record, which objects and plans it can be about, and every reason to run Pulumi instead.
Pure: :mod:`~composeplat.engine.no_change_inputs` gathers what a deploy depends on, and
:mod:`~composeplat.engine.no_change_check` reads, looks and writes.

A record holds digests alone, keyed with a secret of this machine: they can be compared, and nothing can be guessed from
them. Whatever is in doubt is a reason, and a reason never stops a deploy: it only takes longer.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Self

from composeplat.cluster.snapshot import Object, owner_uid
from composeplat.engine.dev_workloads import dev_workloads_by_service
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import AUTOSCALER, CLAIM, Key, LiveState, belongs_to, object_keys
from composeplat.engine.recorded_plan import ENCRYPTION_MARK
from composeplat.engine.scaling import sleeping_workloads
from composeplat.names import MANAGED_BY_LABEL
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.records import record

_FORMAT = 3
#: Only their owners write them, so that the version of the whole object counts.
_VERSIONED = ("Service", "ConfigMap", "Secret", CLAIM)
_FACTS = ("uid", "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")
#: The options of a deploy that change no object.
_FREE_OPTIONS = ("timeout", "safe_checkpoints")


class Digester:
    """Makes digests that only the holder of a key can make."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digest(self, value: Any) -> str:
        text = json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":"))
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256").hex()


def _plain(value: Any) -> Any:
    """A part of a plan as plain data, with the name of its type: no two values have the same text."""
    if is_dataclass(value):
        return [type(value).__name__, {found.name: getattr(value, found.name) for found in fields(value)}]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, frozenset | set):
        return ["set", sorted(map(str, value))]
    return [type(value).__name__, str(value)]


@record(kw_only=True)
class Record:
    """What the last run depended on and left, as digests."""

    inputs: Mapping[str, str]
    parts: Mapping[str, str]
    """What :mod:`~composeplat.engine.changed_parts` lets a run change alone, by part."""
    state: str
    objects: Mapping[str, str]
    """By kind and name."""
    resources: int
    """The number of resources that Pulumi found unchanged, or left so."""

    def to_text(self) -> str:
        content = {found.name: getattr(self, found.name) for found in fields(self)}
        return json.dumps({"format": _FORMAT, **content}, indent=0) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read a record; none if it is of another version of the platform, or broken."""
        try:
            content = json.loads(text)
            if content.pop("format") != _FORMAT:
                return None
            return cls(**content)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


# which deploys a record can be about ----------------------------------------------------------------------------------


def doubt_about_options(options: DeployOptions) -> str:
    """Why a run with these options needs Pulumi; empty if it does not."""
    usual = DeployOptions()
    given = (found.name for found in fields(options) if found.name not in _FREE_OPTIONS)
    changed = [name for name in given if getattr(options, name) != getattr(usual, name)]
    return f"the option {changed[0]} is given" if changed else ""


def doubt_about_plan(plan: Plan) -> str:
    """Why a plan depends on more than a record has; empty if it does not."""
    return next(_doubts_about_plan(plan), "")


def _doubts_about_plan(plan: Plan) -> Iterator[str]:
    if plan.providers:
        yield "a provider's program sets variables"
    if plan.required:
        yield f"{plan.required[0].kind} '{plan.required[0].name}' of somebody else is used"
    for service in plan.services:
        if service.pull_period_s is not None:
            yield f"the image of {service.name} may be newer in its registry"
    for desired in plan.objects:
        if desired.patched_at:
            yield f"the API server checks the patch of {desired.kind} '{desired.name}'"
        if desired.kind == AUTOSCALER or desired.key.kind is ResourceKind.EXPOSED:
            yield f"the cluster decides on a part of {desired.kind} '{desired.name}'"
    for image in plan.images:
        if image.is_loaded:
            yield f"the image of {image.service} is loaded into nodes"


# the objects of a cluster ---------------------------------------------------------------------------------------------


def object_name(key: Key) -> str:
    return "/".join(key)


def object_facts(kind: str, item: Object) -> Any:
    """What of an object changes with everything but its status."""
    metadata = item["metadata"]
    facts = {name: metadata.get(name) for name in _FACTS}
    if kind in _VERSIONED:
        return {**facts, "version": metadata["resourceVersion"]}
    written = [entry for entry in metadata.get("managedFields") or () if entry.get("subresource") != "status"]
    return {**facts, "generation": metadata.get("generation"), "written": written}


def doubt_about_objects(plan: Plan, live_state: LiveState) -> str:
    """Why the objects of an environment are not what a deploy leaves; empty if they are."""
    return next(_doubts_about_objects(plan, live_state), "")


def _doubts_about_objects(plan: Plan, live_state: LiveState) -> Iterator[str]:
    planned, live = set(object_keys(plan.objects)), live_state.object_metadata
    for kind, name in sorted(planned):
        if not belongs_to(live.get((kind, name), {"metadata": {}}), plan.environment):
            yield f"{kind} '{name}' is missing, or not of this environment"
    for (kind, name), head in live.items():
        if "deletionTimestamp" in head["metadata"]:
            yield f"{kind} '{name}' is being deleted"
        if kind != CLAIM and (kind, name) not in planned and belongs_to(head, plan.environment):
            yield f"{kind} '{name}' is in no plan"
    if dev_workloads_by_service(live, plan.environment):
        yield "a service is under development"
    if sleeping_workloads(live_state, plan.environment):
        yield "a service is asleep"


# the state ------------------------------------------------------------------------------------------------------------


def doubt_about_state(state: Mapping[str, Any], *, has_changes: bool) -> str:
    """Why Pulumi might find changes in the next run; empty if it can't.

    After a run without changes it finds none. After changes it finds those of the cluster, which it keeps in the state.
    """
    if state.get("pending_operations"):
        return "the state has pending operations"
    for resource in state.get("resources") or () if has_changes else ():
        if resource.get("delete") or resource.get("pendingReplacement"):
            return f"{resource['urn']} is still to be deleted"
        is_object = str(resource.get("type", "")).startswith("kubernetes:")
        if is_object and not has_all(resource.get("outputs") or {}, resource.get("inputs") or {}):
            return f"the cluster has changed a field of {resource['urn']}"
    return ""


def has_all(found: Any, asked: Any) -> bool:
    """Return whether a live object has each field as it was asked for; encrypted fields can't be compared."""
    if isinstance(asked, dict):
        if ENCRYPTION_MARK in asked:
            return True
        return isinstance(found, dict) and all(name in found and has_all(found[name], asked[name]) for name in asked)
    if isinstance(asked, list):
        is_as_long = isinstance(found, list) and len(found) == len(asked)
        return is_as_long and all(map(has_all, found, asked))
    return bool(found == asked)


# the comparison -------------------------------------------------------------------------------------------------------


def doubt_about_inputs(record: Record, inputs: Mapping[str, str]) -> str:
    """Which input of a deploy is another one than in the last run; empty if none is."""
    changed = _different(record.inputs, inputs)
    return f"changed since the last run: {', '.join(changed)}" if changed else ""


def changed_parts(record: Record, parts: Mapping[str, str]) -> frozenset[str]:
    """Return the parts that are other ones than in the last run; their names are an input of their own."""
    return frozenset(_different(record.parts, parts))


def doubt_about_digests(record: Record, objects: Mapping[str, str]) -> str:
    """Which object of the cluster is not as the last run left it; empty if none is."""
    changed = _different(record.objects, objects)
    return f"changed in the cluster: {changed[0]}" if changed else ""


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def digest_objects(digester: Digester, objects: Mapping[Key, Object]) -> dict[str, str]:
    """Return the digest of each object, except those that a controller makes and deletes, as the Jobs of a CronJob."""
    own = {key: item for key, item in objects.items() if not (owner_uid(item) and _lacks_manager(item))}
    return {object_name(key): digester.digest(object_facts(key[0], item)) for key, item in own.items()}


def _lacks_manager(item: Object) -> bool:
    return MANAGED_BY_LABEL not in (item["metadata"].get("labels") or {})


def unchanged_resources(counts: Mapping[str, int]) -> int:
    """The number of resources that are unchanged in the next run, by the operations of this one."""
    return sum(counts.values()) - counts.get("delete", 0)
