"""The cache keeps only what is whole, whatever was killed when."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.tools import FRONTDOOR, TOOLS


def test_folder_is_the_users() -> None:
    """The cache is where the user's caches are, unless another folder is named."""
    assert Path("/home/a/.cache/composeplat") == cache_folder({"HOME": "/home/a"})
    assert Path("/c/composeplat") == cache_folder({"HOME": "/home/a", "XDG_CACHE_HOME": "/c"})
    assert Path("/x") == cache_folder({"HOME": "/home/a", "COMPOSEPLAT_CACHE": "/x"})


def test_other_pins_are_another_place(tmp_path: Path) -> None:
    """A program built from other pins, or with other flags, does not be in for this one."""
    cache = Cache(tmp_path)

    assert cache.program_path(FRONTDOOR) != cache.program_path(replace(FRONTDOOR, cgo=True))
    assert len({cache.program_path(tool) for tool in TOOLS}) == len(TOOLS)


def test_what_ends_well_is_in_place(tmp_path: Path) -> None:
    """A folder built aside is put in place as a whole."""
    cache = Cache(tmp_path)
    with cache.staging(cache.program_path(FRONTDOOR)) as aside:
        (aside / FRONTDOOR.name).write_text("program")
        assert not cache.has(FRONTDOOR)

    assert cache.has(FRONTDOOR)
    assert [cache.program_path(FRONTDOOR).parent.name] == [path.name for path in (tmp_path / "tools").iterdir()]


@contextlib.contextmanager
def mounted(disk: Path) -> Iterator[Path]:
    """Mount a file system from a file."""
    folder = disk.with_suffix(".mounted")
    folder.mkdir()
    if subprocess.run(["mount", "-o", "loop", disk, folder], capture_output=True, check=False).returncode:
        pytest.skip("can't mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(not shutil.which("mke2fs"), reason="can't make a file system")
def test_a_program_is_whole_after_a_lost_power(tmp_path: Path) -> None:
    """Each command that needs it would fail, until somebody looks into the cache."""
    disk, lost = tmp_path / "disk", tmp_path / "lost"
    with disk.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", disk], check=True)
    with mounted(disk) as folder:
        cache = Cache(folder)
        with cache.staging(cache.program_path(FRONTDOOR)) as aside:
            (aside / FRONTDOOR.name).write_text("program" * 50_000)
        # Names come to the disk some seconds after they are made, here at once, and contents up to half a minute later.
        with (folder / "other").open("w") as other:
            os.fsync(other.fileno())
        shutil.copyfile(disk, lost)

    with mounted(lost) as folder:
        assert Cache(folder).program_path(FRONTDOOR).read_text() == "program" * 50_000


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    """A build that fails leaves neither a program nor a folder."""
    cache = Cache(tmp_path)

    def build_half() -> None:
        with cache.staging(cache.program_path(FRONTDOOR)) as aside:
            (aside / FRONTDOOR.name).write_text("half")
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        build_half()

    assert not cache.has(FRONTDOOR)
    assert list((tmp_path / "tools").iterdir()) == []


def test_leftovers_of_a_killed_build_go(tmp_path: Path) -> None:
    """What a killed build left aside is removed by the next one."""
    cache = Cache(tmp_path)
    killed = cache.program_path(FRONTDOOR).parent.with_name(f".{cache.program_path(FRONTDOOR).parent.name}.killed")
    killed.mkdir(parents=True)
    (killed / FRONTDOOR.name).write_text("half")

    with cache.staging(cache.program_path(FRONTDOOR)) as aside:
        (aside / FRONTDOOR.name).write_text("program")

    assert not killed.exists()
    assert cache.program_path(FRONTDOOR).read_text() == "program"


def test_two_setups_take_turns(tmp_path: Path) -> None:
    """A second holder waits, and is reported so, until the first has ended, however it ends."""
    program = (
        "import sys, time; from pathlib import Path; from composeplat.toolchain.cache import Cache\n"
        "with Cache(Path(sys.argv[1])).lock('x', lambda: None):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    output: list[str] = []
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        def waiting() -> None:
            output.append("waiting")
            holder.kill()

        with Cache(tmp_path).lock("x", waiting):
            assert output == ["waiting"]


def test_durations_are_remembered(tmp_path: Path) -> None:
    """How long a step took is known the next time; a spoiled memory is none."""
    cache = Cache(tmp_path)

    assert cache.duration("kube") is None
    cache.remember_duration("kube", 12.34)
    cache.remember_duration("go", 5)
    assert (cache.duration("kube"), cache.duration("go")) == (12.3, 5)
    (tmp_path / "durations.json").write_text("{")
    assert cache.duration("kube") is None
