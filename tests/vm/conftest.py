"""The machines: one for each kind of init, in which the tests run in their order."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm.disks import INITS, find_debian, make_home, make_root
from tests.vm.machine import Machine

_PROGRAMS = ("mke2fs", "mmdebstrap", "qemu-system-x86_64")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ready = sys.platform == "linux" and os.geteuid() == 0 and all(map(shutil.which, _PROGRAMS))
    needs = pytest.mark.skipif(not ready, reason="machines need Linux, root, QEMU and mmdebstrap: make extras")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(needs)


@pytest.fixture(scope="session", params=sorted(INITS))
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp(request.param)
    debian = find_debian(request.param)
    root, home = folder / "root.raw", folder / "home.raw"
    make_root(debian, root)
    make_home(debian, home)
    made = Machine(folder=folder, kernel=debian.kernel, initrd=debian.initrd, disks=(root, home))
    made.start()
    try:
        yield made
    finally:
        made.kill()
        for disk in (root, home):
            disk.unlink()
