"""Programs that come in one release share its download: the archive stays until all of them are in the cache.

Each of containerd's three programs downloaded the same 33 MB.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.setup import Origin, Toolchain
from composeplat.toolchain.tools import CONTAINERD, CONTAINERD_SHIM, CTR, FRONTDOOR, TOOLS, Tool, programs_of_release
from tests.conftest import ROOT
from tests.toolchain.test_downloads import Releases, upstream
from tests.toolchain.test_setup import environment

__all__ = ["upstream"]

NAMES = ("one", "two", "three")
ARCHIVE = "it.tar.gz"
#: A setup of one program of the release; its arguments are the URL, the pins, and the program.
SETUP = """
import os, sys
from pathlib import Path
from composeplat.toolchain.setup import Toolchain
from tests.toolchain.test_shared_release import make_table
table = make_table(sys.argv[1], Path(sys.argv[2]))
found = Toolchain(os.environ, table).need(next(tool for tool in table if tool.name == sys.argv[3]))
print(found.origin)
"""


def make_table(url: str, pins: Path) -> list[Tool]:
    return [replace(FRONTDOOR, name=name, download=url, version_args=(), checksums=pins) for name in NAMES]


def program(name: str) -> bytes:
    return f"#!/bin/sh\necho {name}\n".encode()


@pytest.fixture
def table(upstream: Releases) -> list[Tool]:
    """Three programs of one release, which is pinned."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name in NAMES:
            member = tarfile.TarInfo(f"bin/{name}")
            member.size = len(program(name))
            made.addfile(member, io.BytesIO(program(name)))
    content = stream.getvalue()
    upstream.tool(ARCHIVE, content, pinned=content)
    return make_table(f"{upstream.base}/{ARCHIVE}", upstream.pins)


def kept(tmp_path: Path) -> Path:
    """The archive, as long as it is kept."""
    return Cache(cache_folder(environment(tmp_path))).parts("one") / ARCHIVE


def test_one_download_for_all(tmp_path: Path, upstream: Releases, table: list[Tool]) -> None:
    """All programs of a release are downloaded by one request, and then nothing is left of the archive."""
    found = Toolchain(environment(tmp_path), table).need_all(table)

    assert {name: item.origin for name, item in found.items()} == dict.fromkeys(NAMES, Origin.DOWNLOADED)
    assert [item.path.read_bytes() for item in found.values()] == [program(name) for name in NAMES]
    assert upstream.asked == ["/", f"/{ARCHIVE}"]
    assert not kept(tmp_path).parent.exists()


def test_the_archive_is_kept_for_the_next_run(tmp_path: Path, upstream: Releases, table: list[Tool]) -> None:
    """A run that needs one program leaves the archive for the others, whichever comes last."""
    first, *others = table
    for tool in others:
        assert Toolchain(environment(tmp_path), table).need(tool).origin == Origin.DOWNLOADED
        assert kept(tmp_path).exists()
    assert Toolchain(environment(tmp_path), table).need(first).origin == Origin.DOWNLOADED

    assert upstream.asked.count(f"/{ARCHIVE}") == 1
    assert not kept(tmp_path).parent.exists()


def test_a_kept_archive_is_checked_again(tmp_path: Path, upstream: Releases, table: list[Tool]) -> None:
    """An archive that was changed while it was kept is not used: it is downloaded again."""
    toolchain = Toolchain(environment(tmp_path), table)
    toolchain.need(table[0])
    kept(tmp_path).write_bytes(b"changed")

    assert toolchain.need(table[1]).path.read_bytes() == program("two")
    assert upstream.asked.count(f"/{ARCHIVE}") == 2


def test_two_setups_download_once(tmp_path: Path, upstream: Releases, table: list[Tool]) -> None:
    """Two setups that need different programs of a release take turns: the second one takes what the first got."""
    variables = environment(tmp_path)
    cache = Cache(cache_folder(variables))
    with cache.lock("one", lambda: None):
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", SETUP, table[0].download, str(upstream.pins), name],
                env=variables, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for name in ("two", "three")
        ]  # fmt: skip
        for run in runs:
            assert run.stderr is not None
            assert run.stderr.readline() == "waiting for another setup, which installs one 0.1.0\n"
        assert upstream.asked == []

    assert [run.communicate(timeout=60)[0] for run in runs] == ["downloaded\n"] * 2
    assert upstream.asked.count(f"/{ARCHIVE}") == 1
    assert kept(tmp_path).exists()


def test_programs_of_a_release() -> None:
    """Programs share a release by its address and version; those that are only built have none."""
    shared = (CONTAINERD, CONTAINERD_SHIM, CTR)
    assert [programs_of_release(tool, TOOLS) for tool in shared] == [shared] * 3
    assert all(programs_of_release(tool, TOOLS) == (tool,) for tool in TOOLS if tool not in shared)
    later = replace(CTR, version="99.0.0")
    assert programs_of_release(later, TOOLS) == (later,)
    assert programs_of_release(CTR, (*TOOLS, later)) == shared


def test_the_checksum_decides(tmp_path: Path, upstream: Releases, table: list[Tool]) -> None:
    """Of an archive with another checksum no program is taken: it is built, and nothing of the archive stays."""
    (upstream.folder / ARCHIVE).write_bytes(b"another")

    found = Toolchain(environment(tmp_path), table).need(table[0])

    assert found.origin == Origin.BUILT
    assert not kept(tmp_path).exists()
