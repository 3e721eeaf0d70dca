"""The fields that an adopted object gains, loses and keeps, and those that an object of ours has lost: pure.

Owns the comparison of an object as it is with the object that the API server would make of it, and the reading of
``managedFields``. An object keeps the fields that another manager set and the plan lacks, as after every deploy: they
are listed, so that somebody removes them who knows their purpose. So are, after a failed deploy, the fields of the
plan that another manager has set since.
Must not know why an object is adopted. Values of variables are never in a change: an object of somebody else may have
passwords that no mask knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from composeplat.cluster.api import FIELD_MANAGER
from composeplat.cluster.snapshot import Object
from composeplat.engine.ownership import LAST_APPLIED, is_manual
from composeplat.system.records import record

_IGNORED_METADATA = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")
_CONFIDENTIAL = ("data", "stringData", "binaryData", "value", "args", "command")
#: kubectl owns these too, as the server adds them to each object that it creates.
_DEFAULTS = {"volumeMode": "Filesystem", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
_MAX_DEPTH = 40
Path = tuple[str, ...]


@record
class FieldChange:
    path: str
    old: Any = None
    new: Any = None
    """Both are None where the values may be confidential."""

    @property
    def is_hidden(self) -> bool:
        return self.old is None and self.new is None


def field_changes(before: Object, after: Object) -> tuple[FieldChange, ...]:
    """Return the fields that differ between an object and its next version."""
    return tuple(_changes(_comparable(before), _comparable(after), (), hides=False))


def _comparable(found: Object) -> Object:
    metadata = {key: value for key, value in found["metadata"].items() if key not in _IGNORED_METADATA}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    rest = {key: value for key, value in found.items() if key not in ("status", "metadata")}
    return {**rest, "metadata": {**metadata, "annotations": annotations}}


def _changes(before: Any, after: Any, path: Path, *, hides: bool) -> Iterator[FieldChange]:
    if before == after:
        return
    old, new = _as_mapping(before), _as_mapping(after)
    if old is None or new is None or len(path) > _MAX_DEPTH:
        # Variables are a whole where two have one name.
        shown = (None, None) if hides or path[-1:] == ("env",) else (before, after)
        yield FieldChange(show_path(path), *shown)
        return
    for key in dict.fromkeys((*old, *new)):
        yield from _changes(old.get(key), new.get(key), (*path, key), hides=hides or key in _CONFIDENTIAL)


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of an object, or the entries of a list by their keys; None for any other value."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        keyed = {_entry_key(entry): entry for entry in value}
        return keyed if len(keyed) == len(value) and "" not in keyed else None
    return None


def _entry_key(entry: Mapping[str, Any]) -> str:
    if "port" in entry:
        return f"[{entry['port']}/{entry.get('protocol', 'TCP')}]"
    name = entry.get("name") or entry.get("mountPath") or entry.get("host")
    return f"[{name}]" if name else ""


# managed fields -------------------------------------------------------------------------------------------------------


def kept_fields(after: Object) -> tuple[str, ...]:
    """Return the fields that only manual managers have set of an object that is applied by us."""
    theirs: set[Path] = set()
    others: set[Path] = set()
    for entry in after["metadata"].get("managedFields") or ():
        paths = set(_paths(entry.get("fieldsV1") or {}, ()))
        if entry.get("subresource"):
            continue
        (theirs if is_manual(str(entry.get("manager", ""))) else others).update(paths)
    spec = after.get("spec") or {}
    ignored: set[Path] = {("spec", name) for name, value in _DEFAULTS.items() if spec.get(name) == value}
    ignored.add(("metadata", "annotations", LAST_APPLIED))
    return tuple(sorted(show_path(path) for path in theirs - others - ignored))


def lost_fields(metadata: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a manifest that we applied and another manager has set since, with the managers' names.

    What a webhook rewrites is not among them: it belongs to the manager whose request was rewritten.
    """
    ours: set[Path] = set()
    theirs: dict[Path, str] = {}
    for entry in metadata.get("managedFields") or ():
        manager, paths = str(entry.get("manager", "")), _paths(entry.get("fieldsV1") or {}, ())
        if manager == FIELD_MANAGER:
            ours.update(paths)
        elif not entry.get("subresource"):
            theirs.update((path, manager) for path in paths if _has(manifest, path))
    return {show_path(path): manager for path, manager in sorted(theirs.items()) if path not in ours}


def _has(value: Any, path: Path) -> bool:
    for step in path:
        value = (_as_mapping(value) or {}).get(step)
    return value is not None


def _paths(fields: Any, path: Path) -> Iterator[Path]:
    """Yield the leaves of a set of fields."""
    inner = {key: value for key, value in fields.items() if key != "."} if isinstance(fields, dict) else {}
    if not inner and path:
        yield path
    for key, value in inner.items() if len(path) < _MAX_DEPTH else ():
        yield from _paths(value, (*path, _field_name(str(key))))


def _field_name(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind == "f":
        return rest
    try:
        found = json.loads(rest)
    except ValueError:
        return f"[{rest}]"
    return (_entry_key(found) if isinstance(found, dict) else "") or f"[{rest}]"


def show_path(path: Path) -> str:
    shown = ""
    for step in path:
        shown += step if step.startswith("[") else f'["{step}"]' if "." in step or "/" in step else f".{step}"
    return shown.removeprefix(".")


def mark_patch(found: Object, labels: Mapping[str, str]) -> Object:
    """Return the patch by which an object gets our labels, and those who wrote it once give up its fields.

    It is for the version that was looked at: the API server refuses it if somebody has changed the object since.
    The entry for ourselves keeps the server from giving all fields to a manager ``before-first-apply``.
    """
    metadata = found["metadata"]
    kept = [entry for entry in metadata.get("managedFields") or () if not _is_released(entry)]
    own_labels: dict[str, Any] = {f"f:{key}": {} for key in labels}
    own = {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": found["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": own_labels}},
    }
    is_known = any(entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" for entry in kept)
    patch: Object = {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "labels": dict(labels),
        "managedFields": kept if is_known else [*kept, own],
    }
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        patch["annotations"] = {LAST_APPLIED: None}
    return {"metadata": patch}


def _is_released(entry: Mapping[str, Any]) -> bool:
    return is_manual(str(entry.get("manager", ""))) and not entry.get("subresource")
