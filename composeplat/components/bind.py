"""Make a plan's manifest what Pulumi is given: images put in, confidential values marked, Pulumi told not to wait.

Pulumi does not wait for readiness here: one watcher of ours does, for every service at once and by Compose's rules
(:mod:`composeplat.components.gate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from composeplat.plan.desired import ImageOf, Manifest

FIELD_MANAGER = "composeplat"

#: One owner of the fields, so that an object whose deploy was killed is taken up again as our own.
_OWNER = {"pulumi.com/patchFieldManager": FIELD_MANAGER}
#: The garbage collector takes an object's pods away; we see to it that they are gone.
_OURS_TO_WAIT = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}


def bind(
    manifest: Manifest, images: Mapping[str, pulumi.Input[str]], confidential: tuple[str, ...], *, awaits: bool
) -> Manifest:
    """Give a manifest of its own; ``awaits`` leaves waiting to Pulumi."""
    bound: Manifest = _bind(manifest, images, confidential)
    annotations = bound["metadata"].get("annotations") or {}
    # A claim is bound when its first pod comes, and an Ingress's address may never be told: no one is to wait for them.
    ours = not awaits or manifest["kind"] in ("PersistentVolumeClaim", "Ingress", "Service")
    bound["metadata"]["annotations"] = {**annotations, **_OWNER, **(_OURS_TO_WAIT if ours else {})}
    if manifest["kind"] == "Secret":
        bound["data"] = pulumi.Output.secret(bound.get("data"))
    return bound


def _bind(value: Any, images: Mapping[str, pulumi.Input[str]], confidential: tuple[str, ...]) -> Any:
    match value:
        case ImageOf():
            return images[value.service]
        case dict():
            return {key: _bind(item, images, confidential) for key, item in value.items()}
        case list():
            return [_bind(item, images, confidential) for item in value]
        case str() if any(one in value for one in confidential):
            return pulumi.Output.secret(value)
        case _:
            return value
