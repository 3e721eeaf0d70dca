"""The sync on file systems that other people's machines have, in an emulated machine that mounts them for real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from composeplat.system.folders import cache_folder
from composeplat.toolchain.tools import LINK
from tests.golang.modules import go
from tests.golang.small_machine import FILE_SYSTEMS, SmallMachine


@pytest.mark.endurance
@pytest.mark.timeout(900)
def test_the_sync_on_other_file_systems(tmp_path: Path) -> None:
    """FAT, exFAT, NTFS and ext4 that folds case: no change is lost, no mode spreads, no name is taken for another."""
    if missing := SmallMachine.missing():
        pytest.skip(f"no file system can be mounted without {missing}: left out are {', '.join(FILE_SYSTEMS)}")
    program = tmp_path / "machine.test"
    built = go(LINK.module, "test", "-c", "-ldflags", "-s -w", "-o", str(program), "./internal/machine")
    assert built.returncode == 0, built.stdout + built.stderr

    machine = SmallMachine(cache_folder(os.environ))
    limits = ("-test.timeout", "200s", "-test.parallel", "2")
    statuses, printed = machine.run(program, "-test.run", "TestOther", "-test.v", *limits, seconds=850)

    assert statuses == dict.fromkeys(FILE_SYSTEMS, "0"), printed
