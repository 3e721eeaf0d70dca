"""What the cleaner deletes, when, and in which order: the stores are files here, and the clients are not there."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from composeplat.cluster.access import Access
from composeplat.local import cleaner as module
from composeplat.local.cleaner import Cleaner, cleaner_arguments
from composeplat.local.disk_use import Disk
from composeplat.local.image_stores import ImageStores, Leftover
from composeplat.local.layout import Layout

MIB = 1024 * 1024
NOWHERE = Access(host="127.0.0.1", port=1)


def cache_image(layout: Layout, name: str, *, used: float) -> None:
    """Put an image of 1 MiB into the mirror's cache."""
    cache = layout.mirror_cache
    for kind in ("blobs", "manifests", "tags", "partial"):
        (cache / kind).mkdir(parents=True, exist_ok=True)
    layer = os.urandom(MIB)
    content = json.dumps({"layers": [{"digest": "sha256:" + hashlib.sha256(layer).hexdigest()}]}).encode()
    digest = hashlib.sha256(content).hexdigest()
    files = {
        cache / "blobs" / hashlib.sha256(layer).hexdigest(): layer,
        cache / "manifests" / digest: b"type\n" + content,
    }
    for path, text in files.items():
        path.write_bytes(text)
        os.utime(path, (used, used))
    (cache / "tags" / hashlib.sha256(name.encode()).hexdigest()).write_text(f"sha256:{digest} {name}\n")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(folder=tmp_path, run=tmp_path / "run", disk_limit=5 * MIB // 2)
    for number, name in enumerate(("c/second:1", "b/first:1", "a/third:1")):
        cache_image(found, name, used=1000.0 + (10, 0, 20)[number])
    (found.volumes / "pvc-1").mkdir(parents=True)
    (found.volumes / "pvc-1" / "data").write_bytes(os.urandom(MIB))
    return found


def make_cleaner(layout: Layout, lines: list[str]) -> Cleaner:
    return Cleaner(ImageStores(layout, None, None, {}), NOWHERE, log=lines.append)


def cached(layout: Layout) -> list[str]:
    return sorted(path.read_text().split()[1] for path in (layout.mirror_cache / "tags").iterdir())


def test_over_the_limit(layout: Layout) -> None:
    """What was unused for longest goes, and no more than is needed; volumes don't count."""
    lines: list[str] = []

    make_cleaner(layout, lines).check()
    assert cached(layout) == ["a/third:1", "c/second:1"]
    assert lines == ["over the limit of images and caches: deleted cached b/first:1, 1.0 MiB"]


def test_within_the_limit(layout: Layout) -> None:
    """Nothing is deleted where nothing is too much."""
    lines: list[str] = []
    for limit in (0, 10 * MIB):
        object.__setattr__(layout, "disk_limit", limit)
        make_cleaner(layout, lines).check()

    assert (lines, len(cached(layout))) == ([], 3)


def test_a_nearly_full_disk(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes until enough is free, without an API server; a volume stays, and then there is a pause."""
    monkeypatch.setattr(module, "read_disk", lambda _: Disk(size=1000 * MIB, free=MIB))
    lines: list[str] = []
    cleaner = make_cleaner(layout, lines)

    cleaner.check()
    assert [line.rpartition(" deleted ")[2] for line in lines if "deleted" in line] == [
        "cached b/first:1, 1.0 MiB", "cached c/second:1, 1.0 MiB", "cached a/third:1, 1.0 MiB",
    ]  # fmt: skip
    assert (layout.volumes / "pvc-1" / "data").stat().st_size == MIB
    cleaner.check()
    before = len(lines)
    cleaner.check()
    assert len(lines) == before


def test_after_a_deletion_the_next_look_is_not_put_off(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills the disk again is deleted at once: only where nothing was left to delete is there a pause."""
    fits = 2
    monkeypatch.setattr(
        module, "read_disk", lambda _: Disk(1000 * MIB, (1000 if len(cached(layout)) <= fits else 1) * MIB)
    )
    lines: list[str] = []
    cleaner = make_cleaner(layout, lines)
    cleaner.check()
    assert len(cached(layout)) == fits

    fits = 1
    cleaner.check()
    assert len(cached(layout)) == fits


def test_what_can_t_be_deleted_is_passed_over(layout: Layout) -> None:
    """A store that fails is named, and does not keep the others from being cleaned."""
    lines: list[str] = []

    class Broken(ImageStores):
        def of_mirror(self) -> list[Leftover]:  # type: ignore[override]  # a list is enough
            def fail() -> None:
                raise OSError(30, "Read-only file system")

            return [Leftover("cached", "a:1", 1, fail)]

        def of_builder(self) -> list[Leftover]:  # type: ignore[override]
            raise TimeoutError("timed out")

    Cleaner(Broken(layout, None, None, {}), NOWHERE, log=lines.append).check()
    assert lines[:2] == ["can't delete a:1: [Errno 30] Read-only file system", "can't list images: timed out"]


def test_its_command_line() -> None:
    """The part gets the folders, the limit and the clients."""
    layout = Layout(folder=Path("/data"), run=Path("/run/x"), disk_limit=7)

    assert cleaner_arguments(layout, sys.executable, ctr="/t/ctr", buildx="") == (
        sys.executable, "-P", "-m", "composeplat.local.cleaner", "/data", "/run/x", "7", "/t/ctr", "",
    )  # fmt: skip
