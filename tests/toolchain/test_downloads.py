"""A program's release is downloaded only where its checksum is pinned, and used only where it has that checksum.

Downloads were trusted as far as a certificate goes: whatever came was run.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from composeplat.toolchain.downloads import (
    BadDownload,
    address,
    archive_name,
    can_download,
    download,
    pinned_checksum,
    read_checksums,
)
from composeplat.toolchain.pin import pin
from composeplat.toolchain.setup import BUILT, CACHED, DOWNLOADED, Toolchain
from composeplat.toolchain.tools import BUILDX, CHECKSUMS, FRONTDOOR, PULUMI, TOOLS, Tool
from tests.toolchain.test_setup import environment

PROGRAM = b"#!/bin/sh\necho the program\n"
HEAD = "# Pins.\n"


@dataclass
class Maker:
    """A maker's server on loopback: its folder, its address, what was asked of it, and the pins of its releases."""

    folder: Path
    base: str
    asked: list[str]
    pins: Path

    def tool(self, name: str, content: bytes | None = PROGRAM, *, pinned: bytes | None = None) -> Tool:
        """A program whose release is this, and whose checksum is pinned where that is said of a content."""
        if content is not None:
            (self.folder / name).write_bytes(content)
        if pinned is not None:
            with self.pins.open("a") as stream:
                stream.write(f"{hashlib.sha256(pinned).hexdigest()}  {name}\n")
        return replace(FRONTDOOR, download=f"{self.base}/{name}", ask=(), checksums=self.pins)


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[Maker]:
    folder = tmp_path / "releases"
    folder.mkdir()
    (tmp_path / "checksums.txt").write_text(HEAD)
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_: object) -> None:
            asked.append(self.path)

        def log_error(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Maker(folder, f"http://127.0.0.1:{server.server_address[1]}", asked, tmp_path / "checksums.txt")
    server.shutdown()
    thread.join()
    server.server_close()


def archive(*names: str) -> bytes:
    """A gzipped tar with a program under each of the names."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(PROGRAM)
            made.addfile(member, io.BytesIO(PROGRAM))
    return stream.getvalue()


def test_a_program_by_itself(tmp_path: Path, maker: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    """A release that is the program is put in place, said once, and found in the cache the next time."""
    tool = maker.tool("frontdoor-0.1.0", pinned=PROGRAM)

    first = Toolchain(environment(tmp_path)).need(tool)
    second = Toolchain(environment(tmp_path)).need(tool)

    assert (first.origin, second.origin) == (DOWNLOADED, CACHED)
    assert first.path.read_bytes() == PROGRAM
    assert os.access(first.path, os.X_OK)
    assert "downloading frontdoor 0.1.0 from its makers" in capsys.readouterr().err


def test_a_program_in_an_archive(tmp_path: Path, maker: Maker) -> None:
    """Of an archive the program alone is taken, whatever names it holds."""
    content = archive("../../outside", "bin/other", "bin/frontdoor")
    tool = maker.tool("it.tar.gz", content, pinned=content)

    found = Toolchain(environment(tmp_path)).need(tool)

    assert found.origin == DOWNLOADED
    assert [path.name for path in found.path.parent.iterdir()] == ["frontdoor"]
    assert not (tmp_path / "outside").exists()


def test_a_wrong_checksum(tmp_path: Path, maker: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    """A release with another checksum is never run: the program is built, and both checksums are said."""
    trap = b"#!/bin/sh\ntouch " + str(tmp_path / "was-run").encode() + b"\n"
    tool = maker.tool("it", trap, pinned=PROGRAM)

    found = Toolchain(environment(tmp_path)).need(tool)

    assert found.origin == BUILT
    assert not (tmp_path / "was-run").exists()
    wrong, right = (hashlib.sha256(one).hexdigest()[:12] for one in (trap, PROGRAM))
    assert (
        f"frontdoor 0.1.0 does not have the pinned checksum: {maker.base}/it is {wrong}…, not {right}…;"
        " it is built instead\n"
    ) in capsys.readouterr().err


def test_no_checksum(maker: Maker) -> None:
    """A release without a pinned checksum is not asked for at all; one of another name does not count."""
    maker.tool("other", pinned=PROGRAM)

    assert not can_download(maker.tool("it"), {})
    assert maker.asked == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("it", None, "can't be downloaded from {base}/it: HTTP Error 404: File not found", id="no-release"),
        pytest.param("it", b"<html>no program</html>", "does not run on this machine: {base}/it", id="no-program"),
        pytest.param("it.tar.gz", b"\x1f\x8b broken", "is no archive: {base}/it.tar.gz (", id="a-broken-archive"),
        pytest.param("it.tar.gz", archive("x"), "has no program 'frontdoor': {base}/it.tar.gz", id="another-program"),
    ],
)
def test_what_can_not_be_used(tmp_path: Path, maker: Maker, name: str, content: bytes | None, reason: str) -> None:
    """A release that is pinned and can't be used is told with its reason, and leaves nothing."""
    tool = maker.tool(name, content, pinned=content or b"")
    folder = tmp_path / "place"
    folder.mkdir()

    with pytest.raises(BadDownload) as caught:
        download(tool, folder)

    assert str(caught.value).startswith(reason.format(base=maker.base))
    assert list(folder.iterdir()) == []


def test_makers_out_of_reach_or_not_wanted(maker: Maker) -> None:
    """A maker that does not answer is passed over, and so is every maker where downloads are off."""
    tool = maker.tool("it", pinned=PROGRAM)

    assert can_download(tool, {})
    assert not can_download(tool, {"COMPOSEPLAT_DOWNLOADS": "off"})
    assert not can_download(replace(tool, download="http://127.0.0.1:9/it"), {})
    assert not can_download(FRONTDOOR, {})


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.download], ids=lambda tool: tool.name)
def test_addresses_name_the_pinned_version(tool: Tool) -> None:
    """An address is that of the pinned version, for this machine, over HTTPS."""
    assert f"v{tool.version}" in address(tool)
    assert "linux" in address(tool)
    assert address(tool).startswith("https://")
    assert "{" not in address(tool)


def test_addresses_of_other_machines() -> None:
    """Pulumi's own releases have another word for the usual processor."""
    assert archive_name(address(PULUMI, "linux", "amd64")) == f"pulumi-v{PULUMI.version}-linux-x64.tar.gz"
    assert archive_name(address(PULUMI, "darwin", "arm64")) == f"pulumi-v{PULUMI.version}-darwin-arm64.tar.gz"


def test_pins_are_of_the_pinned_versions() -> None:
    """No checksum is left of a version that is not used any more, and each is a SHA-256."""
    pins = read_checksums(CHECKSUMS)
    known = {archive_name(address(one, system, machine)) for one in TOOLS for system in ("linux", "darwin")
             for machine in ("amd64", "arm64")}  # fmt: skip

    assert pins.keys() <= known
    assert all(len(bytes.fromhex(one)) == 32 for one in pins.values())


# pinning --------------------------------------------------------------------------------------------------------------


def test_pinning(maker: Maker) -> None:
    """Each release of each machine is pinned by what it is, below the lines that explain the file."""
    names = [f"buildx-{system}-{machine}" for system in ("darwin", "linux") for machine in ("amd64", "arm64")]
    for name in names:
        (maker.folder / name).write_bytes(name.encode())
    tool = replace(BUILDX, download=f"{maker.base}/buildx-{{system}}-{{machine}}")

    assert pin([tool, FRONTDOOR], maker.pins) == []

    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names]
    assert maker.pins.read_text() == "".join([HEAD, *lines])
    assert pinned_checksum(maker.pins, names[0]) == hashlib.sha256(names[0].encode()).hexdigest()


def test_a_release_that_was_replaced(maker: Maker) -> None:
    """A release that has another checksum now than the pinned one is told, and nothing is pinned."""
    tool = maker.tool("it", pinned=b"as it was")
    before = maker.pins.read_text()

    (problem,) = pin([tool], maker.pins)

    assert problem.startswith("it is pinned with another checksum: ")
    assert maker.pins.read_text() == before


def test_a_release_that_is_not_there(maker: Maker) -> None:
    """Where one release can't be had nothing is pinned."""
    (problem,) = pin([maker.tool("none", None)], maker.pins)

    assert problem == f"frontdoor 0.1.0 can't be downloaded from {maker.base}/none: HTTP Error 404: File not found"
    assert maker.pins.read_text() == HEAD


def test_pinning_as_a_command() -> None:
    """``make pins`` without a way to the makers says which could not be had, and changes nothing."""
    before = CHECKSUMS.read_text()
    nowhere = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}

    done = subprocess.run(
        [sys.executable, "-m", "composeplat.toolchain.pin"], env=nowhere, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr.startswith(
        "nothing was pinned:\npulumi 3.259.0 can't be downloaded from https://get.pulumi.com/"
    )
    assert CHECKSUMS.read_text() == before
