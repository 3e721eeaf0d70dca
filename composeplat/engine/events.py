"""From Pulumi's events to the changes of each resource.

Owns the form of the events, and the description of a change. Pure, so that it is tested with recorded events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from composeplat.components.resource_names import ResourceName, last_part
from composeplat.diagnostics import truncate
from composeplat.engine.recorded_plan import ENCRYPTION_MARK
from composeplat.names import LABEL_PREFIX
from composeplat.plan.resource_keys import ResourceKey
from composeplat.plan.restarts import RESTARTS_ANNOTATION
from composeplat.progress import MASK
from composeplat.system.records import record

IMAGE = "Image"


class Operation(StrEnum):
    """What Pulumi does with a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    SAME = "same"


_MAX_VALUE_LENGTH = 60
_OPERATIONS = {
    "create": Operation.CREATE,
    "update": Operation.UPDATE,
    "delete": Operation.DELETE,
    "same": Operation.SAME,
    "discard": Operation.DELETE,
    "replace": Operation.REPLACE,
    "create-replacement": Operation.REPLACE,
    "delete-replaced": Operation.REPLACE,
    "import": Operation.CREATE,
    "refresh": Operation.SAME,
}
#: What is around the creation of a replacement, before or after it: the resource is done when that is.
_STEPS_OF_REPLACEMENTS = frozenset({"replace", "delete-replaced"})
#: Annotations for Pulumi itself.
_NOT_SHOWN = ("metadata.annotations.pulumi.com/", 'metadata.annotations["pulumi.com/')


@record(kw_only=True)
class Difference:
    """One property that changes; a confidential value is ``[secret]``."""

    path: str
    old: Any = None
    new: Any = None
    replaces: bool = False


@record(kw_only=True)
class Change:
    """The change of one resource."""

    operation: Operation
    urn: str
    kind: str
    name: str
    differences: tuple[Difference, ...] = ()
    kept: bool = False
    """It leaves the state and stays in the cluster."""

    @property
    def key(self) -> ResourceKey | None:
        """The key of the resource in the plan; none for a resource that no plan has."""
        name = ResourceName.from_urn(self.urn)
        return name.key if name is not None else None


@record(kw_only=True)
class Violation:
    """A resource that is not as a policy wants it."""

    urn: str
    pack: str
    policy: str
    level: str
    """``mandatory``, ``advisory``, or ``remediate`` if the policy has changed the resource."""
    message: str

    @property
    def is_mandatory(self) -> bool:
        return self.level == "mandatory"

    @classmethod
    def from_event(cls, event: Mapping[str, Any], *, level: str, text: str) -> Self:
        # The first line describes the policy, and the others the resource.
        first, *rest = [line.strip() for line in text.splitlines() if line.strip()] or [""]
        return cls(
            urn=str(event.get("resourceUrn") or ""),
            pack=str(event.get("policyPackName") or ""),
            policy=str(event.get("policyName") or ""),
            level=level,
            message=f"{first.removesuffix('.')}: {' '.join(rest)}" if rest else first,
        )


@dataclass(slots=True)
class Events:
    """The changes, errors and results that the events of an operation report."""

    changes: dict[str, Change] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    messages: dict[str, list[str]] = field(default_factory=dict)
    """Errors by URN; errors without a resource have an empty URN."""
    drifted: list[Change] = field(default_factory=list)
    """Drift: the changes that a refresh found in the cluster."""
    violations: list[Violation] = field(default_factory=list)
    """The violations that policy packs report."""
    references: dict[str, str] = field(default_factory=dict)
    """Name and digest of each image, by URN."""
    summary: Mapping[str, Any] | None = None
    _refreshing: set[str] = field(default_factory=set)
    _count: int = field(default=0, compare=False)
    _has_gap: bool = field(default=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether all events of a run that ended well have come: of those that Pulumi can't write, it says nothing."""
        return self.summary is not None and not self._has_gap

    def handle(self, event: Mapping[str, Any]) -> str | None:
        """Record an event, and return the URN of a resource whose state it changes."""
        self._has_gap |= event.get("sequence") != self._count
        self._count += 1
        match event:
            case {"resourcePreEvent": {"metadata": metadata}}:
                return self._start(metadata)
            case {"resOutputsEvent": {"metadata": metadata}}:
                return self._finish(metadata)
            case {"resOpFailedEvent": {"metadata": {"urn": urn}}}:
                self.failed.add(str(urn))
                return str(urn)
            case {"diagnosticEvent": {"severity": "error"} as found}:
                message = str(found.get("message") or "").strip()
                self.messages.setdefault(str(found.get("urn") or ""), []).append(message)
            case {"policyEvent": found}:
                level, text = str(found.get("enforcementLevel") or ""), str(found.get("message") or "")
                self.violations.append(Violation.from_event(found, level=level, text=text))
            case {"policyRemediationEvent": found}:
                text = "the policy has changed the resource"
                self.violations.append(Violation.from_event(found, level="remediate", text=text))
            case {"summaryEvent": summary}:
                self.summary = summary
        return None

    def _start(self, metadata: Mapping[str, Any]) -> str | None:
        urn = str(metadata["urn"])
        if metadata["op"] == "refresh":
            self._refreshing.add(urn)
            return None
        if metadata["op"] == "delete-replaced" and kind_of(str(metadata["type"])) == IMAGE:
            # An earlier run that left other resources alone may have left it in the state: this run changes nothing.
            return None
        self._begin(metadata)
        return None if urn in self.done else urn

    def _finish(self, metadata: Mapping[str, Any]) -> str | None:
        urn = str(metadata["urn"])
        if urn in self._refreshing:
            self._refreshing.remove(urn)
            change = _change(metadata)
            if change is not None and change.operation is not Operation.SAME:
                self.drifted.append(change)
            return None
        if metadata["op"] in _STEPS_OF_REPLACEMENTS:
            return None
        self.done.add(urn)
        reference = ((metadata.get("new") or {}).get("outputs") or {}).get("ref")
        if isinstance(reference, str):
            self.references[urn] = reference
        return urn

    def _begin(self, metadata: Mapping[str, Any]) -> None:
        change = _change(metadata)
        if change is None:
            return
        known = self.changes.get(change.urn)
        if known is not None:
            differences = change.differences or known.differences
            operation = Operation.REPLACE if known.operation is Operation.REPLACE else change.operation
            change = replace(change, operation=operation, differences=differences)
        self.changes[change.urn] = change

    def leave_out(self, urns: Iterable[str]) -> None:
        """Drop the changes of resources that a deploy leaves alone."""
        for urn in urns:
            self.changes.pop(urn, None)

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes that were made without Pulumi."""
        for change in changes:
            self.changes[change.urn] = change
            self.done.add(change.urn)

    def note_made_again(self, known: Collection[tuple[str, str]]) -> None:
        """Let objects that were there before, by kind and name, be replaced ones: Pulumi only saw their creation."""
        for urn, change in self.changes.items():
            if change.operation is Operation.CREATE and (change.kind, change.name) in known:
                self.changes[urn] = replace(change, operation=Operation.REPLACE)

    def note_same_images(self, state: Mapping[str, Any]) -> None:
        """Let images that were built again be unchanged ones, where they are those of the state before."""
        before = {str(found["urn"]): (found.get("outputs") or {}).get("ref") for found in state.get("resources") or ()}
        for urn, change in self.changes.items():
            is_built_again = change.kind == IMAGE and change.operation is Operation.REPLACE
            if is_built_again and urn in self.references and self.references[urn] == before.get(urn):
                self.changes[urn] = replace(change, operation=Operation.SAME)

    def count_operations(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for change in self.changes.values():
            counts[change.operation] = counts.get(change.operation, 0) + 1
        return counts

    @property
    def has_failed_build(self) -> bool:
        return any(urn in self.changes and self.changes[urn].kind == IMAGE for urn in self.failed)

    @property
    def is_refused(self) -> bool:
        """Whether a policy refuses the operation."""
        return any(violation.is_mandatory for violation in self.violations)

    @property
    def effective_changes(self) -> list[Change]:
        return [change for change in self.changes.values() if change.operation is not Operation.SAME]

    @property
    def made_changes(self) -> list[Change]:
        """Those that are done, where others failed."""
        return [change for change in self.effective_changes if change.urn in self.done]

    @property
    def kept(self) -> list[str]:
        """The volumes that leave the definition, and stay in the cluster."""
        return [change.name for change in self.effective_changes if change.kept]

    @property
    def removed(self) -> set[tuple[str, str]]:
        """Kind and name of the objects that are deleted, or deleted and created again."""
        ends = (Operation.DELETE, Operation.REPLACE)
        return {(change.kind, change.name) for change in self.effective_changes if change.operation in ends}


def _change(metadata: Mapping[str, Any]) -> Change | None:
    operation = _OPERATIONS.get(str(metadata["op"]))
    kind = kind_of(str(metadata["type"]))
    if operation is None or not kind:
        return None
    differences = tuple(_differences(metadata))
    return Change(
        operation=Operation.SAME if operation is Operation.UPDATE and not differences else operation,
        urn=str(metadata["urn"]),
        kind=kind,
        name=name_of(metadata),
        differences=differences,
        kept=operation is Operation.DELETE and kind == "PersistentVolumeClaim",
    )


def kind_of(type_name: str) -> str:
    """The kind that a type token names; empty for what is no object: components, providers, the stack."""
    package, _, rest = type_name.partition(":")
    if package == "kubernetes":
        return rest.rpartition(":")[2]
    return IMAGE if type_name == "docker-build:index:Image" else ""


def name_of(metadata: Mapping[str, Any]) -> str:
    for state in (metadata.get("new"), metadata.get("old")):
        inputs = (state or {}).get("inputs") or {}
        written = inputs.get("metadata")
        if isinstance(written, dict) and isinstance(written.get("name"), str):
            return str(written["name"])
    return last_part(str(metadata["urn"]))


def _differences(metadata: Mapping[str, Any]) -> Iterator[Difference]:
    detailed = metadata.get("detailedDiff")
    if not isinstance(detailed, dict):
        return
    old = ((metadata.get("old") or {}).get("inputs")) or {}
    new = ((metadata.get("new") or {}).get("inputs")) or {}
    for path, how in sorted(detailed.items()):
        if path.startswith(_NOT_SHOWN):
            continue
        kind = str(how.get("diffKind") or how.get("kind") or "")
        yield Difference(
            path=path,
            old=None if kind.startswith("add") else look_up(old, path),
            new=None if kind.startswith("delete") else look_up(new, path),
            replaces=kind.endswith("replace"),
        )


def look_up(value: Any, path: str) -> Any:
    """Find a value by Pulumi's way of writing its place: ``spec.a[0]["b.c"]``; nothing in an encrypted one is shown."""
    for part in parts_of(path):
        if _is_encrypted(value):
            break
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return MASK if _is_encrypted(value) else value


def _is_encrypted(value: Any) -> bool:
    return isinstance(value, dict) and ENCRYPTION_MARK in value


def parts_of(path: str) -> list[str]:
    parts: list[str] = []
    rest = path
    while rest:
        if rest.startswith('["'):
            part, _, rest = rest[2:].partition('"]')
        elif rest.startswith("["):
            part, _, rest = rest[1:].partition("]")
        else:
            rest = rest.removeprefix(".")
            end = min((rest.find(mark) for mark in ".[" if mark in rest), default=len(rest))
            part, rest = rest[:end], rest[end:]
        parts.append(part)
    return parts


# descriptions ---------------------------------------------------------------------------------------------------------

_CONTAINER = ("spec", "template", "spec", "containers", "0")
_PROPERTY_NAMES = {
    "spec.replicas": "replicas",
    "spec.strategy.type": "update policy",
    "spec.resources.requests.storage": "size",
    "spec.storageClassName": "storage class",
    "spec.clusterIP": "cluster address",
    "contextHash": "files of its build",
}


def describe_differences(change: Change) -> list[str]:
    """Describe the differences of a change, each once: ``image a → b``."""
    found = dict.fromkeys(_describe(difference) for difference in change.differences)
    return [text for text in found if text]


def _describe(difference: Difference) -> str:
    parts = parts_of(difference.path)
    dotted = ".".join(parts)
    if f"{LABEL_PREFIX}/config-hash" in parts:
        return "its variables or files"
    if RESTARTS_ANNOTATION in parts:
        return "a service that restarts it"
    if parts[: len(_CONTAINER)] == list(_CONTAINER):
        parts = parts[len(_CONTAINER) :]
    elif parts[:3] == ["spec", "template", "spec"]:
        parts = parts[3:]
    name = _PROPERTY_NAMES.get(dotted) or ".".join(parts)
    # Both sides of a confidential value, or of one that only Pulumi knows, look the same.
    sides = (difference.old, difference.new)
    is_seen = MASK not in sides and format_value(difference.old) != format_value(difference.new)
    if not is_seen or any(isinstance(side, dict | list) for side in sides):
        return name
    return f"{name} {format_value(difference.old)} → {format_value(difference.new)}"


def format_value(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return truncate(str(value), _MAX_VALUE_LENGTH)
