"""Programs are fetched from their makers where these can be reached, and built where they can't."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from composeplat.toolchain.makers import address, can_fetch
from composeplat.toolchain.setup import BUILT, CACHED, FETCHED, Toolchain
from composeplat.toolchain.tools import BUILDKITD, BUILDX, FRONTDOOR, Tool
from tests.toolchain.test_setup import environment

PROGRAM = b"#!/bin/sh\necho the program\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A maker's server on loopback: its folder and its address."""
    folder = tmp_path / "releases"
    folder.mkdir()
    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def of(tool: Tool, base: str, name: str) -> Tool:
    return replace(tool, download=f"{base}/{name}", ask=())


def test_a_program_by_itself(tmp_path: Path, maker: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A release that is the program is put in place, told once, and found in the cache the next time."""
    folder, base = maker
    (folder / "frontdoor-0.1.0").write_bytes(PROGRAM)
    tool = of(FRONTDOOR, base, "frontdoor-{version}")

    first = Toolchain(environment(tmp_path)).need(tool)
    second = Toolchain(environment(tmp_path)).need(tool)

    assert (first.origin, second.origin) == (FETCHED, CACHED)
    assert first.path.read_bytes() == PROGRAM
    assert os.access(first.path, os.X_OK)
    assert "fetching frontdoor 0.1.0 from its makers" in capsys.readouterr().err


def test_a_program_in_an_archive(tmp_path: Path, maker: tuple[Path, str]) -> None:
    """Of an archive the program alone is taken, whatever names it holds."""
    folder, base = maker
    with tarfile.open(folder / "it.tar.gz", "w:gz") as archive:
        for name in ("../../outside", "bin/other", "bin/frontdoor"):
            member = tarfile.TarInfo(name)
            member.size = len(PROGRAM)
            archive.addfile(member, io.BytesIO(PROGRAM))

    found = Toolchain(environment(tmp_path)).need(of(FRONTDOOR, base, "it.tar.gz"))

    assert found.origin == FETCHED
    assert [path.name for path in found.path.parent.iterdir()] == ["frontdoor"]
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no-such-release"),
        pytest.param(b"<html>not found</html>", id="a-page-instead"),
        pytest.param(b"\x1f\x8b broken", id="a-broken-archive"),
    ],
)
def test_what_can_not_be_fetched_is_built(
    tmp_path: Path, maker: tuple[Path, str], capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    """A release that is missing or does not run is left, and the program is built."""
    folder, base = maker
    name = "it.tar.gz" if content and content.startswith(b"\x1f") else "it"
    if content:
        (folder / name).write_bytes(content)

    found = Toolchain(environment(tmp_path)).need(of(FRONTDOOR, base, name))

    assert found.origin == BUILT
    assert "frontdoor 0.1.0 could not be fetched; it is built instead" in capsys.readouterr().err


def test_makers_out_of_reach_or_not_wanted(maker: tuple[Path, str]) -> None:
    """A maker that does not answer is passed over, and so is every maker where downloads are off."""
    _, base = maker

    assert can_fetch(of(FRONTDOOR, base, "it"), {})
    assert not can_fetch(of(FRONTDOOR, base, "it"), {"COMPOSEPLAT_DOWNLOADS": "off"})
    assert not can_fetch(of(FRONTDOOR, "http://127.0.0.1:9", "it"), {})
    assert not can_fetch(FRONTDOOR, {})


@pytest.mark.parametrize("tool", [BUILDKITD, BUILDX], ids=lambda tool: tool.name)
def test_addresses_name_the_pinned_version(tool: Tool) -> None:
    """An address is that of the pinned version, for this machine."""
    assert f"v{tool.version}" in address(tool)
    assert "linux" in address(tool)
