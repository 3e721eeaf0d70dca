"""Convert a plan's manifest for Pulumi: late values are filled in, confidential values marked, and waiting turned off.

Pulumi does not wait for readiness here: our own watcher does, for all services at once and by Compose's rules
(:mod:`composeplat.components.dependency_gate`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import pulumi

from composeplat.plan.desired import BuiltImage, Manifest
from composeplat.plan.fingerprint import SALT_ANNOTATION, Fingerprint
from composeplat.plan.resource_keys import ResourceKey

FIELD_MANAGER = "composeplat"
SALT_PATH = f'metadata.annotations["{SALT_ANNOTATION}"]'

#: One owner of the fields, so that an object whose deploy was killed is taken up again as our own.
_OWNER = {"pulumi.com/patchFieldManager": FIELD_MANAGER}
#: The garbage collector takes an object's pods away; we see to it that they are gone.
_OURS_TO_WAIT = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LateValues:
    """What manifests are given that only Pulumi's run knows."""

    confidential: tuple[str, ...] = ()
    images: dict[str, pulumi.Input[str]] = field(default_factory=dict)
    """By service."""
    salts: dict[ResourceKey, pulumi.Output[str]] = field(default_factory=dict)
    """By the key of the Secret that has it."""


def bind(manifest: Manifest, late: LateValues, *, awaits: bool) -> Manifest:
    """Give a manifest of its own; ``awaits`` leaves waiting to Pulumi."""
    bound: Manifest = _bind(manifest, late)
    annotations = bound["metadata"].get("annotations") or {}
    # A claim is bound when its first pod starts, and an Ingress may never get an address: nothing may wait for them.
    ours = not awaits or manifest["kind"] in ("PersistentVolumeClaim", "Ingress", "Service")
    bound["metadata"]["annotations"] = {**annotations, **_OWNER, **(_OURS_TO_WAIT if ours else {})}
    if manifest["kind"] == "Secret":
        bound["data"] = pulumi.Output.secret(bound.get("data"))
    return bound


def add_salt(bound: Manifest) -> Manifest:
    """Give a Secret a salt; one that it has stays, as :data:`SALT_PATH` is among its options."""
    annotations = {**bound["metadata"]["annotations"], SALT_ANNOTATION: make_salt()}
    return {**bound, "metadata": {**bound["metadata"], "annotations": annotations}}


def make_salt() -> str:
    return secrets.token_hex(16)


def read_salt(secret: pulumi.CustomResource) -> pulumi.Output[str]:
    """The salt that a Secret has; where someone has taken it away, what else is its own and not to be guessed."""
    metadata: pulumi.Output[Any] = secret.metadata  # type: ignore[attr-defined]
    return metadata.apply(lambda found: str((found.annotations or {}).get(SALT_ANNOTATION) or found.uid))


def _bind(value: Any, late: LateValues) -> Any:
    match value:
        case BuiltImage():
            return late.images[value.service]
        case Fingerprint():
            return late.salts[value.secret].apply(value.keyed)
        case dict():
            return {key: _bind(item, late) for key, item in value.items()}
        case list():
            return [_bind(item, late) for item in value]
        case str() if any(secret in value for secret in late.confidential):
            return pulumi.Output.secret(value)
        case _:
            return value
