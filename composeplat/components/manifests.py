"""Convert a manifest of the plan for Pulumi: with late values, secrets, and the annotations of Pulumi's provider.

Owns these annotations. They make the provider not wait for readiness: the engine's watcher waits for all services at
once, by Compose's conditions (:mod:`composeplat.components.dependency_gate`).
"""

from __future__ import annotations

import secrets
from dataclasses import field
from typing import Any

import pulumi

from composeplat.cluster.api import FIELD_MANAGER
from composeplat.components.late_texts import LateTexts
from composeplat.components.outputs import independent
from composeplat.compose.placeholders import LateNumber
from composeplat.plan.desired import BuiltImage, Manifest
from composeplat.plan.fingerprint import SALT_ANNOTATION, Fingerprint
from composeplat.plan.pods import DOCKER_CONFIG_TYPE
from composeplat.plan.resource_keys import ResourceKey
from composeplat.plan.restarts import TemplatesHash, hash_text
from composeplat.plan.revealed import Revealed
from composeplat.system.records import record

SALT_PATH = f'metadata.annotations["{SALT_ANNOTATION}"]'

#: The fields in which Kubernetes expands ``$(X)``.
_EXPANDED = ("command", "args")
#: The field within which it expands nothing.
_HOOKS = "lifecycle"
#: With a fixed field manager, the next deploy owns the objects of a killed one.
_FIELD_MANAGER_ANNOTATION = {"pulumi.com/patchFieldManager": FIELD_MANAGER}
#: The garbage collector deletes the pods of an object, and the engine waits until they are gone.
_SKIP_AWAIT = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}


@record(kw_only=True)
class LateValues:
    """Values for manifests that are only known while Pulumi runs."""

    confidential: tuple[str, ...] = ()
    images: dict[str, pulumi.Input[str]] = field(default_factory=dict)
    """By service."""
    texts: LateTexts = field(default_factory=LateTexts)
    """The arguments that are outputs."""
    salts: dict[ResourceKey, pulumi.Output[str]] = field(default_factory=dict)
    """By the key of the Secret that has it."""


def bind(manifest: Manifest, late: LateValues, *, awaits: bool, is_moved: bool = False) -> Manifest:
    """Return a copy of a manifest with all late values; with ``awaits``, Pulumi waits for its readiness.

    An object that was another resource before keeps the field manager that the state has: a new one would be in
    conflict with it, and could not remove its fields.
    """
    bound: Manifest = bind_value(manifest, late)
    for field_name in ("data", "binaryData"):
        if field_name in manifest and (manifest["kind"] == "Secret" or field_name == "binaryData"):
            bound[field_name] = _bind_data(manifest, manifest[field_name], late)
    annotations = bound["metadata"].get("annotations") or {}
    # A claim is bound when its first pod starts, and an Ingress may never get an address: nothing may wait for them.
    skips = not awaits or manifest["kind"] in ("PersistentVolumeClaim", "Ingress", "Service")
    manager = {} if is_moved else _FIELD_MANAGER_ANNOTATION
    bound["metadata"]["annotations"] = {**annotations, **manager, **(_SKIP_AWAIT if skips else {})}
    if manifest["kind"] == "Secret":
        bound["data"] = pulumi.Output.secret(bound.get("data"))
    return bound


def add_salt(bound: Manifest) -> Manifest:
    """Add a salt to a Secret without one.

    A salt in the state stays, since the resource ignores changes of :data:`SALT_PATH`.
    """
    annotations = {SALT_ANNOTATION: make_salt(), **bound["metadata"]["annotations"]}
    return {**bound, "metadata": {**bound["metadata"], "annotations": annotations}}


def make_salt() -> str:
    return secrets.token_hex(16)


def read_salt(secret: pulumi.CustomResource) -> pulumi.Output[str]:
    """Read the salt of a Secret; if someone has removed it, use its UID, which can't be guessed either."""
    metadata: pulumi.Output[Any] = secret.metadata  # type: ignore[attr-defined]
    return metadata.apply(lambda found: str((found.get("annotations") or {}).get(SALT_ANNOTATION) or found["uid"]))


def _bind_data(manifest: Manifest, data: Any, late: LateValues) -> Any:
    """Put late values into data in Base64; data that was read from a state has a value of its own."""
    if not isinstance(data, dict):
        return bind_value(data, late)
    bind_text = late.texts.docker_config if manifest.get("type") == DOCKER_CONFIG_TYPE else late.texts.data
    return {key: bind_text(text) if isinstance(text, str) else bind_value(text, late) for key, text in data.items()}


def bind_value(value: Any, late: LateValues, *, escapes: bool | None = False) -> Any:
    """Return a part of a manifest with all late values, and confidential ones as secrets.

    With ``escapes``, Kubernetes expands nothing in the late ones; None is for a field within which it never does.
    """
    match value:
        case BuiltImage():
            return late.images[value.service]
        case Revealed():
            return pulumi.Output.secret(value.value)
        case Fingerprint():
            return _bind_fingerprint(value, late)
        case LateNumber():
            return late.texts.number(value.placeholder)
        case TemplatesHash():
            return pulumi.Output.json_dumps(bind_value(list(value.templates), late), sort_keys=True).apply(hash_text)
        case dict() | list() | str():
            return _bind_parts(value, late, escapes=escapes)
        case _:
            return value


def _bind_parts(value: dict[str, Any] | list[Any] | str, late: LateValues, *, escapes: bool | None) -> Any:
    match value:
        case dict():
            never = escapes is None
            return {
                key: bind_value(item, late, escapes=None if never or key == _HOOKS else key in _EXPANDED)
                for key, item in value.items()
            }
        case list():
            return [bind_value(item, late, escapes=escapes) for item in value]
        case str() if late.texts.is_late(value):
            return late.texts.text(value, escapes=bool(escapes))
        case str() if any(secret in value for secret in late.confidential):
            return pulumi.Output.secret(value)
        case _:
            return value


def _bind_fingerprint(value: Fingerprint, late: LateValues) -> Any:
    """Return a hash without the resources that it is of: its workload comes after the Secret by ``depends_on``.

    Where a provider replaces the Secret, Pulumi would replace whatever has a property of it: it would end all pods.
    """
    return independent(_hash(value, late))


def _hash(value: Fingerprint, late: LateValues) -> pulumi.Output[str]:
    salt = late.salts[value.secret]
    if not value.late:
        return salt.apply(value.keyed)
    # Like the hash of any value, it reveals none.
    values = pulumi.Output.unsecret(late.texts.values_of(value.late))
    return pulumi.Output.all(salt, values).apply(lambda known: value.keyed(*known))
