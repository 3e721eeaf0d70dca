"""What Pulumi's events say of each object: pure, from events to changes.

Owns the shape of the events and of URNs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from composeplat.components.resource_names import ResourceName, last_part
from composeplat.names import OURS
from composeplat.plan.resource_keys import ResourceKey

CREATE, UPDATE, REPLACE, DELETE, KEEP, FORGET = "create", "update", "replace", "delete", "same", "forget"
IMAGE = "Image"
_OPERATIONS = {
    "create": CREATE,
    "update": UPDATE,
    "delete": DELETE,
    "same": KEEP,
    "discard": DELETE,
    "replace": REPLACE,
    "create-replacement": REPLACE,
    "delete-replaced": REPLACE,
    "import": CREATE,
    "refresh": KEEP,
}
#: What only tells Pulumi how to go about an object.
_NOT_SHOWN = ("metadata.annotations.pulumi.com/", 'metadata.annotations["pulumi.com/')


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One property that changes; what is not to be seen stands as ``[secret]``."""

    path: str
    old: Any = None
    new: Any = None
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is done with one object."""

    operation: str
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


@dataclass(slots=True)
class Events:
    """What the events of one operation have told so far."""

    changes: dict[str, Change] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    messages: dict[str, list[str]] = field(default_factory=dict)
    """Errors by URN; those of no resource under the empty one."""
    drifted: list[Change] = field(default_factory=list)
    """What a refresh found to be otherwise in the cluster than in the state."""
    references: dict[str, str] = field(default_factory=dict)
    """What images are known by, by URN: a name and a digest."""
    summary: Mapping[str, Any] | None = None
    _refreshing: set[str] = field(default_factory=set)

    def take(self, event: Mapping[str, Any]) -> str | None:
        """Take an event in; gives the URN of an object whose standing it changes."""
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            urn = str(metadata["urn"])
            if metadata["op"] == "refresh":
                self._refreshing.add(urn)
                return None
            self._begin(metadata)
            return urn
        if "resOutputsEvent" in event:
            metadata = event["resOutputsEvent"]["metadata"]
            urn = str(metadata["urn"])
            if urn in self._refreshing:
                self._refreshing.remove(urn)
                change = _change(metadata)
                if change is not None and change.operation != KEEP:
                    self.drifted.append(change)
                return None
            self.done.add(urn)
            reference = ((metadata.get("new") or {}).get("outputs") or {}).get("ref")
            if isinstance(reference, str):
                self.references[urn] = reference
            return urn
        if "resOpFailedEvent" in event:
            urn = str(event["resOpFailedEvent"]["metadata"]["urn"])
            self.failed.add(urn)
            return urn
        if "diagnosticEvent" in event:
            told = event["diagnosticEvent"]
            if told.get("severity") == "error":
                self.messages.setdefault(str(told.get("urn") or ""), []).append(str(told.get("message") or "").strip())
        elif "summaryEvent" in event:
            self.summary = event["summaryEvent"]
        return None

    def _begin(self, metadata: Mapping[str, Any]) -> None:
        change = _change(metadata)
        if change is None:
            return
        known = self.changes.get(change.urn)
        if known is not None:
            differences = change.differences or known.differences
            operation = REPLACE if known.operation == REPLACE else change.operation
            change = replace(change, operation=operation, differences=differences)
        self.changes[change.urn] = change

    def counted(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for change in self.changes.values():
            counts[change.operation] = counts.get(change.operation, 0) + 1
        return counts

    @property
    def failed_builds(self) -> bool:
        return any(urn in self.changes and self.changes[urn].kind == IMAGE for urn in self.failed)

    @property
    def changing(self) -> list[Change]:
        return [change for change in self.changes.values() if change.operation != KEEP]

    @property
    def kept(self) -> list[str]:
        """The volumes that leave the definition, and stay in the cluster."""
        return [change.name for change in self.changing if change.kept]


def _change(metadata: Mapping[str, Any]) -> Change | None:
    operation = _OPERATIONS.get(str(metadata["op"]))
    kind = kind_of(str(metadata["type"]))
    if operation is None or not kind:
        return None
    differences = tuple(_differences(metadata))
    return Change(
        operation=KEEP if operation == UPDATE and not differences else operation,
        urn=str(metadata["urn"]),
        kind=kind,
        name=name_of(metadata),
        differences=differences,
        kept=operation == DELETE and kind == "PersistentVolumeClaim",
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
        yield Difference(
            path=path,
            old=look_up(old, path),
            new=look_up(new, path),
            replaces=str(how.get("diffKind") or how.get("kind") or "").endswith("replace"),
        )


def look_up(value: Any, path: str) -> Any:
    """Find a value by Pulumi's way of writing its place: ``spec.a[0]["b.c"]``."""
    for part in parts_of(path):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


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


# in words -------------------------------------------------------------------------------------------------------------

_CONTAINER = ("spec", "template", "spec", "containers", "0")
_WORDS = {
    "spec.replicas": "replicas",
    "spec.strategy.type": "update policy",
    "spec.resources.requests.storage": "size",
    "spec.storageClassName": "storage class",
    "spec.clusterIP": "cluster address",
    "contextHash": "files of its build",
}


def reasons(change: Change) -> list[str]:
    """Say in words what changes, each thing once: ``image a → b``."""
    told = dict.fromkeys(_reason(difference) for difference in change.differences)
    return [one for one in told if one]


def _reason(difference: Difference) -> str:
    parts = parts_of(difference.path)
    dotted = ".".join(parts)
    if f"{OURS}/config-hash" in parts:
        return "its variables or files"
    if parts[: len(_CONTAINER)] == list(_CONTAINER):
        parts = parts[len(_CONTAINER) :]
    elif parts[:3] == ["spec", "template", "spec"]:
        parts = parts[3:]
    name = _WORDS.get(dotted) or ".".join(parts)
    # Of what is hidden, or is Pulumi's own to know, both sides look the same.
    is_seen = show(difference.old) != show(difference.new)
    if not is_seen or isinstance(difference.old, dict | list) or isinstance(difference.new, dict | list):
        return name
    return f"{name} {show(difference.old)} → {show(difference.new)}"


def show(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004 -- as much as reads well in a line


def names_of(changes: Iterable[Change]) -> list[str]:
    return [f"{change.kind}/{change.name}" for change in changes]
