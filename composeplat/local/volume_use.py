"""The volumes of the local cluster: their claims, their sizes, and what they take.

Owns which storage class enforces sizes, and how the use of a volume is measured. Must not know how volumes are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType

from composeplat.cluster.quotas import parse_quantity
from composeplat.cluster.snapshot import Object
from composeplat.local import sized_volumes
from composeplat.local.disk_use import folder_size
from composeplat.local.layout import SIZED_CLASS, STORAGE_CLASS
from composeplat.system.records import record

#: Whether a volume of the class holds no more than its size.
ENFORCES_SIZES = MappingProxyType({STORAGE_CLASS: False, SIZED_CLASS: True})


@record(kw_only=True)
class VolumeUse:
    """One volume, by its claim. ``used`` is none where it can't be measured."""

    namespace: str
    claim: str
    storage_class: str
    size: int
    used: int | None

    @property
    def is_enforced(self) -> bool:
        return ENFORCES_SIZES[self.storage_class]


def volume_uses(volumes: Iterable[Object], folder: Path, supervisor: int | None) -> list[VolumeUse]:
    """Return the volumes with a claim, by namespace and claim.

    A volume of ``local-sized`` is mounted in the namespaces of the cluster alone, which the supervisor's process has.
    """
    found = []
    for volume in volumes:
        spec, name = volume["spec"], str(volume["metadata"]["name"])
        claim, storage_class = spec.get("claimRef"), spec.get("storageClassName")
        if not claim or storage_class not in ENFORCES_SIZES:
            continue
        place = folder / name
        is_sized = ENFORCES_SIZES[storage_class]
        use = VolumeUse(
            namespace=str(claim["namespace"]),
            claim=str(claim["name"]),
            storage_class=storage_class,
            size=int(parse_quantity(str(spec["capacity"]["storage"]))),
            used=_used_of_mount(place, supervisor) if is_sized else folder_size(place),
        )
        found.append(use)
    return sorted(found, key=lambda use: (use.namespace, use.claim))


def _used_of_mount(folder: Path, supervisor: int | None) -> int | None:
    if supervisor is None:
        return None
    seen = Path(f"/proc/{supervisor}/root") / sized_volumes.data_folder(folder).relative_to("/")
    try:
        found = os.statvfs(seen)
    except OSError:
        return None
    return (found.f_blocks - found.f_bfree) * found.f_frsize
