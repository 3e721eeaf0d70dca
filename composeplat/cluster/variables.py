"""The variables of a namespace, stored in a Secret for everyone who deploys there.

Owns the form of the Secret: a key for each variable, and an annotation with the names of those that may be shown.
Must not know the meaning of variables: a variable without the annotation, such as one added by hand, is confidential.
"""

from __future__ import annotations

import base64
import binascii
import http.client
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.namespaces import make_namespace
from composeplat.names import LABEL_PREFIX, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.system.records import record

SECRET_NAME = "platform-variables"  # noqa: S105 -- the object's name
SHOWN = f"{LABEL_PREFIX}/shown-variables"
_MAX_ATTEMPTS = 10


@record
class StoredVariables:
    """The variables of a namespace."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    shown: frozenset[str] = frozenset()
    """The names of the variables that are not confidential."""
    not_text: frozenset[str] = frozenset()
    """The names of those whose values are not UTF-8, such as one added by hand: nothing can use them."""

    @property
    def names(self) -> list[str]:
        return sorted({*self.values, *self.not_text})

    @property
    def confidential(self) -> tuple[str, ...]:
        """The confidential values, the longest first."""
        hidden = {value for name, value in self.values.items() if name not in self.shown}
        return tuple(sorted(hidden, key=lambda value: (-len(value), value)))


def read_variables(api: Api, namespace: str) -> StoredVariables:
    """Read the variables of a namespace: none if there are none, or if the Secret may not be read."""
    try:
        return _read(api.get(_path(namespace)))
    except ApiError as error:
        if error.status in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            return StoredVariables()
        raise


def list_variables(api: Api, namespace: str) -> StoredVariables:
    """Read the variables for a user who asks for them; an error if the Secret may not be read."""
    found = api.find(_path(namespace))
    return StoredVariables() if found is None else _read(found)


def set_variable(api: Api, namespace: str, name: str, value: str, *, confidential: bool) -> None:
    """Store a variable; a missing namespace is created."""
    data = {name: base64.b64encode(value.encode()).decode()}

    def change(shown: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
        return data, shown - {name} if confidential else shown | {name}

    _change(api, namespace, change)


def unset_variables(api: Api, namespace: str, names: Collection[str]) -> None:
    """Remove variables; a Secret that is deleted at that moment has none."""
    _change(api, namespace, lambda shown: (dict.fromkeys(names), shown - set(names)), creates=False)


def _change(
    api: Api,
    namespace: str,
    change: Callable[[frozenset[str]], tuple[dict[str, Any], frozenset[str]]],
    *,
    creates: bool = True,
) -> None:
    """Change the Secret in its current version: of two concurrent changes, one is repeated."""
    for attempt in range(_MAX_ATTEMPTS):
        found = api.find(_path(namespace))
        if found is None and not creates:
            return
        data, shown = change(_read(found).shown if found is not None else frozenset())
        annotations = {SHOWN: ",".join(sorted(shown))}
        try:
            if found is None:
                _create(api, namespace, data, annotations)
            else:
                version = found["metadata"]["resourceVersion"]
                metadata = {"resourceVersion": version, "annotations": annotations}
                api.patch(_path(namespace), {"metadata": metadata, "data": data})
        except ApiError as error:
            # It is not found if it was deleted since.
            is_other_now = error.status in (http.client.CONFLICT, http.client.NOT_FOUND)
            if not is_other_now or attempt == _MAX_ATTEMPTS - 1:
                raise
        else:
            return


def _create(api: Api, namespace: str, data: dict[str, Any], annotations: dict[str, str]) -> None:
    labels = {MANAGED_BY_LABEL: MANAGED_BY}
    try:
        api.get(f"/api/v1/namespaces/{namespace}")
    except ApiError as error:
        if error.status not in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            raise
        if error.status == http.client.NOT_FOUND:
            make_namespace(api, namespace)
    metadata = {"name": SECRET_NAME, "namespace": namespace, "labels": labels, "annotations": annotations}
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})


def _path(namespace: str) -> str:
    return f"{kind_path('v1', 'Secret', namespace)}/{SECRET_NAME}"


def _read(found: Mapping[str, Any]) -> StoredVariables:
    shown = str(((found.get("metadata") or {}).get("annotations") or {}).get(SHOWN, ""))
    data = found.get("data") or {}
    values = {name: text for name, coded in data.items() if (text := _text(coded)) is not None}
    return StoredVariables(
        values, frozenset(filter(None, shown.split(","))) & values.keys(), frozenset(data.keys() - values.keys())
    )


def _text(coded: str) -> str | None:
    """Decode a value; None if it is not text."""
    try:
        return base64.b64decode(coded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
