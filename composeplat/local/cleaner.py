"""The part ``cleaner``: deletes images and caches that are not used, when the disk is nearly full or over its limit.

Owns when that is and in which order: first images of other registries, then layers of builds, then images on the node
that no workload names, last versions in the registry without a tag. Never deletes a volume, or an image with a tag in
the registry: these can't be had again by pulling.
The first two need no API server, as etcd can't write to a full disk. The same process makes space in etcd.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.diagnostics import ComposeplatError
from composeplat.local.disk_use import image_use, read_disk
from composeplat.local.etcd_cleaner import EtcdCleaner, make_etcd_cleaner
from composeplat.local.image_stores import ImageStores, Leftover, used_versions
from composeplat.local.layout import API_PORT, ETCD_PORT, Layout
from composeplat.local.own_access import own_access
from composeplat.system.processes import python_module

_CHECK_INTERVAL_S = 2.0
#: Measuring images reads every folder, so it is rarer.
_MEASURE_INTERVAL_S = 30.0
#: Where nothing was left to delete, asking all stores again at once would be of no use.
_USELESS_PAUSE_S = 60.0
_MIB = 1024 * 1024


@dataclass(slots=True)
class Cleaner:
    stores: ImageStores
    access: Access
    log: Callable[[str], object] = field(default=lambda line: sys.stderr.write(f"{line}\n"))
    _next_measure: float = 0.0
    _next_clean: float = 0.0

    def run(self, etcd: EtcdCleaner) -> None:
        while True:
            etcd.check()
            self.check()
            time.sleep(_CHECK_INTERVAL_S)

    def check(self) -> None:
        """Delete images until enough space is free and the limit is kept."""
        now = time.monotonic()
        if now < self._next_clean:
            return
        for reason, missing in ((_NEARLY_FULL, self._missing_space), (_OVER_LIMIT, self._excess)):
            if missing() > 0 and not self._clean(reason, missing):
                self._next_clean = now + _USELESS_PAUSE_S

    def _missing_space(self) -> int:
        disk = read_disk(self.stores.layout)
        return disk.reserve - disk.free

    def _excess(self) -> int:
        limit, now = self.stores.layout.disk_limit, time.monotonic()
        if not limit or now < self._next_measure:
            return 0
        excess = image_use(self.stores.layout) - limit
        if excess <= 0:
            self._next_measure = now + _MEASURE_INTERVAL_S
        return excess

    def _clean(self, reason: str, missing: Callable[[], int]) -> bool:
        """Delete leftovers until nothing is missing, and return whether there were any."""
        count = 0
        for leftover in self._leftovers():
            if self._delete(leftover, reason):
                count += 1
                if missing() <= 0:
                    break
        return count > 0

    def _delete(self, leftover: Leftover, reason: str) -> bool:
        try:
            leftover.delete()
        except _FAILURES as error:
            self.log(f"can't delete {leftover.name}: {error}")
            return False
        self.log(f"{reason}: deleted {leftover.kind} {leftover.name}, {leftover.size / _MIB:.1f} MiB")
        return True

    def _leftovers(self) -> Iterator[Leftover]:
        """Yield deletable images and layers, the cheapest loss first; a store that fails does not stop the others."""
        stores = (
            self.stores.of_mirror,
            self.stores.of_builder,
            lambda: self.stores.of_node(self._used()),
            lambda: self.stores.of_registry(self._used(), with_tags=False),
        )
        for store in stores:
            try:
                yield from list(store())
            except _FAILURES as error:
                self.log(f"can't list images: {error}")

    def _used(self) -> set[tuple[str, str]]:
        with Api(self.access) as api:
            return used_versions(api)


_NEARLY_FULL, _OVER_LIMIT = "the disk is nearly full", "over the limit of images and caches"
_FAILURES = (ComposeplatError, OSError, subprocess.SubprocessError)


def cleaner_arguments(layout: Layout, python: str, *, ctr: str, buildx: str) -> tuple[str, ...]:
    """The command line of the part."""
    limit = str(layout.disk_limit)
    program = python_module(python, "composeplat.local.cleaner")
    return (*program, str(layout.folder), str(layout.run), limit, ctr, buildx)


def main() -> None:
    folder, run, limit, ctr, buildx = sys.argv[1:]
    layout = Layout(folder=Path(folder), run=Path(run), disk_limit=int(limit))
    stores = ImageStores(
        layout, Path(ctr) if ctr else None, Path(buildx) if buildx else None, environment={"HOME": run}
    )
    Cleaner(stores, own_access(layout.keys, API_PORT)).run(make_etcd_cleaner(layout, ETCD_PORT))


if __name__ == "__main__":
    main()
