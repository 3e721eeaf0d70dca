"""What the volumes of the local cluster take: objects as the API server has them, and folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from composeplat.local.controllers import base_objects
from composeplat.local.volume_use import ENFORCES_SIZES, VolumeUse, volume_uses

MIB = 1024 * 1024


def volume(name: str, storage_class: str, claim: str, **more: Any) -> dict[str, Any]:
    claimed = {"namespace": "demo", "name": claim}
    spec = {"storageClassName": storage_class, "capacity": {"storage": "1Gi"}, "claimRef": claimed}
    return {"metadata": {"name": name}, "spec": {**spec, **more}}


def test_use_of_volumes(tmp_path: Path) -> None:
    """A volume is named by its claim; a mount that can't be reached has no figure, and other volumes are left out."""
    (tmp_path / "pvc-1").mkdir()
    (tmp_path / "pvc-1" / "data").write_bytes(os.urandom(3 * MIB))
    sized = tmp_path / "pvc-2" / "mount" / "data"
    sized.mkdir(parents=True)
    volumes = [
        volume("pvc-2", "local-sized", "sized"),
        volume("pvc-1", "local", "data"),
        volume("pvc-3", "nfs", "far"),
        volume("pvc-4", "local", "", claimRef=None),
    ]

    data, found = volume_uses(volumes, tmp_path, os.getpid())
    assert data.used in range(3 * MIB, 3 * MIB + 64 * 1024)
    assert (data.claim, data.storage_class, data.size, data.is_enforced) == ("data", "local", 1024 * MIB, False)
    disk = os.statvfs(sized)
    assert (found.claim, found.is_enforced) == ("sized", True)
    assert found.used is not None
    assert abs(found.used - (disk.f_blocks - disk.f_bfree) * disk.f_frsize) < 512 * MIB
    without = VolumeUse(namespace="demo", claim="sized", storage_class="local-sized", size=1024 * MIB, used=None)
    assert volume_uses(volumes[:1], tmp_path, None) == [without]
    assert volume_uses(volumes[:1], tmp_path / "other", os.getpid()) == [without]


def test_each_class_is_known() -> None:
    """Each storage class that the cluster has is one whose sizes are described."""
    classes = {item["metadata"]["name"] for item in base_objects() if item["kind"] == "StorageClass"}

    assert classes == set(ENFORCES_SIZES)
