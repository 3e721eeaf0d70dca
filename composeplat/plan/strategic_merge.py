"""Strategic merge patches, as Kubernetes defines them: lists of objects are merged by key, others are replaced.

Owns the keys of lists. Pure: plain data comes in, other plain data goes out, and nothing is shared or changed.
Must not know objects or Compose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from composeplat.compose.extension_model import DELETE, DIRECTIVE, REPLACE

#: The keys of lists that are merged, by the field that has the list.
_LIST_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
}
_DEFAULTS = {"protocol": "TCP"}


#: Fields that are a number or a text.
_INT_OR_STRING = frozenset(("maxSurge", "maxUnavailable", "targetPort", "port"))


class BadPatch(ValueError):
    """A patch does not fit; has the path of the part, what is wrong with it, and the fix."""

    def __init__(self, path: tuple[str | int, ...], message: str, fix: str = "") -> None:
        super().__init__(message)
        self.path, self.fix = path, fix


def merge(target: Any, patch: Any, path: tuple[str | int, ...] = ()) -> Any:
    """Merge a patch into a value; the path is that of the patch."""
    if not isinstance(patch, dict):
        return patch
    if patch.get(DIRECTIVE) == REPLACE:
        target = {}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key == DIRECTIVE:
            continue
        _check_type(merged.get(key), value, (*path, key))
        if value is None or _is_deletion(value):
            merged.pop(key, None)
        elif isinstance(value, list):
            merged[key] = _merge_list(merged.get(key), value, key, (*path, key))
        else:
            merged[key] = merge(merged.get(key), value, (*path, key))
    return merged


def _check_type(present: Any, value: Any, path: tuple[str | int, ...]) -> None:
    """Refuse a value of another kind than the one that is there."""
    if value is None or present is None or isinstance(value, type(present)) or _is_deletion(value):
        return
    if isinstance(present, str) and not isinstance(value, dict | list):
        return
    if isinstance(present, int) and isinstance(value, str) and path[-1] in _INT_OR_STRING:
        return
    expected = {dict: "a mapping", list: "a list", bool: "true or false", int: "a whole number"}
    raise BadPatch(path, f"must be {expected.get(type(present), 'a text')}")


def _is_deletion(value: Any) -> bool:
    return isinstance(value, dict) and value.get(DIRECTIVE) == DELETE


def _merge_list(target: Any, patch: list[Any], field: str, path: tuple[str | int, ...]) -> list[Any]:
    entries = [entry for entry in patch if not (isinstance(entry, dict) and set(entry) == {DIRECTIVE})]
    keys = _keys_of(field, entries)
    if not keys:
        return entries
    merged = list(target) if isinstance(target, list) and len(entries) == len(patch) else []
    for index, entry in enumerate(entries):
        _merge_entry(merged, entry, keys, (*path, index))
    return merged


def _keys_of(field: str, entries: Iterable[Any]) -> tuple[str, ...]:
    """Return the keys that identify an entry; none for a list that is replaced."""
    if not all(isinstance(entry, dict) for entry in entries):
        return ()
    if field == "ports":
        # Those of a container have another key than those of a Service.
        is_service = any("port" in entry for entry in entries)
        return ("port" if is_service else "containerPort", "protocol")
    return _LIST_KEYS.get(field, ())


def _merge_entry(merged: list[Any], entry: dict[str, Any], keys: tuple[str, ...], path: tuple[str | int, ...]) -> None:
    missing = next((key for key in keys if key not in entry and key not in _DEFAULTS), None)
    if missing is not None:
        raise BadPatch(path, f"must have '{missing}', by which the entries of this list are merged", f"write {missing}")
    wanted = _identity(entry, keys)
    found = next((i for i, present in enumerate(merged) if _identity(present, keys) == wanted), None)
    if _is_deletion(entry):
        if found is not None:
            del merged[found]
    elif found is None:
        merged.append(merge({}, entry, path))
    else:
        merged[found] = merge(merged[found], entry, path)


def _identity(entry: dict[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(key, _DEFAULTS.get(key)) for key in keys)
