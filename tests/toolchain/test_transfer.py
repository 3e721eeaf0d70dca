"""A release that is cut is continued: on slow lines a file of 100 MB never came whole, as each try began at zero."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from composeplat import progress
from composeplat.toolchain import transfer
from composeplat.toolchain.downloads import download
from composeplat.toolchain.setup import Origin, Toolchain
from composeplat.toolchain.tools import FRONTDOOR, Tool
from composeplat.toolchain.transfer import BadDownload, fetch
from tests.cluster.objects import Answer, Server
from tests.conftest import ROOT
from tests.system.test_proxies import behind, keys
from tests.toolchain.test_setup import environment

__all__ = ["behind", "keys"]

PROGRAM = b"#!/bin/sh\n" + bytes(range(256)) * 400
HALF = len(PROGRAM) // 2


@dataclass
class Line:
    """A server of one file on loopback, over a line that is cut."""

    content: bytes = PROGRAM
    cuts: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers ends."""
    etag: str = '"one"'
    has_ranges: bool = True
    redirect: str = ""
    pause: float = 0.0
    """Before each part of an answer."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """What each request wanted: the range, and the version it is of."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/it"

    def tool(self, folder: Path, pinned: bytes = PROGRAM) -> Tool:
        pins = folder / "pins"
        pins.write_text(f"{hashlib.sha256(pinned).hexdigest()}  it\n")
        return replace(FRONTDOOR, download=self.url, version_args=(), checksums=pins)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    made = Line()
    monkeypatch.setattr(transfer, "_RETRY_PAUSE_S", 0.0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted, version = self.headers.get("Range", ""), self.headers.get("If-Range", "")
            made.asked.append((wanted, version))
            if made.redirect:
                self.send_response(302)
                self.send_header("Location", made.redirect)
                self.end_headers()
                return
            start = int(wanted[len("bytes=") : -1]) if wanted and made.has_ranges else 0
            if start and version not in ("", made.etag):
                start = 0
            if start >= len(made.content):
                self.send_error(416)
                return
            self._send(start)

        def _send(self, start: int) -> None:
            rest = made.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(made.content) - 1}/{len(made.content)}")
            if made.etag:
                self.send_header("ETag", made.etag)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            rest = rest[: made.cuts.pop(0)] if made.cuts else rest
            for begin in range(0, len(rest), 8192):
                time.sleep(made.pause)
                self.wfile.write(rest[begin : begin + 8192])

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def ignore(_: int, __: int | None) -> None:
    """Show nothing."""


def test_a_cut_answer_is_continued(line: Line, tmp_path: Path) -> None:
    """Each cut costs what was not yet there: the rest of the same version is asked for, until the file is whole."""
    line.cuts = [HALF, 100]
    shown: list[tuple[int, int | None]] = []

    assert fetch(line.url, tmp_path / "it", {}, lambda *amount: shown.append(amount))

    assert (tmp_path / "it").read_bytes() == PROGRAM
    assert line.asked == [("", ""), (f"bytes={HALF}-", '"one"'), (f"bytes={HALF + 100}-", '"one"')]
    assert shown[-1] == (len(PROGRAM), len(PROGRAM))
    assert sorted(shown) == shown


def test_another_run_continues(line: Line, tmp_path: Path) -> None:
    """A setup that is killed leaves what has come, which the next one continues; then nothing of it is left."""
    line.pause = 0.05
    program = (
        "import os, sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from composeplat.toolchain.setup import Toolchain\n"
        "from composeplat.toolchain.tools import FRONTDOOR\n"
        "tool = replace(FRONTDOOR, download=sys.argv[1], version_args=(), checksums=Path(sys.argv[2]))\n"
        "Toolchain(os.environ).need(tool)\n"
    )
    tool, parts = line.tool(tmp_path), tmp_path / "cache" / "downloads" / "frontdoor"
    command = [sys.executable, "-c", program, line.url, str(tool.checksums)]
    with subprocess.Popen(command, env=environment(tmp_path), cwd=ROOT) as running:
        while not (parts / "it").exists() or (parts / "it").stat().st_size < 20_000:
            time.sleep(0.01)
        running.kill()
    line.pause = 0.0

    found = Toolchain(environment(tmp_path)).need(tool)

    assert (found.origin, found.path.read_bytes()) == (Origin.DOWNLOADED, PROGRAM)
    wanted, version = line.asked[-1]
    assert re.fullmatch(r"bytes=\d+-", wanted)
    assert version == '"one"'
    assert not parts.exists()


def test_a_server_without_ranges(line: Line, tmp_path: Path) -> None:
    """A server that sends the whole file whatever it is asked for starts from the beginning."""
    line.cuts, line.has_ranges = [HALF], False

    assert not fetch(line.url, tmp_path / "it", {}, ignore)

    assert (tmp_path / "it").read_bytes() == PROGRAM


def test_another_version(line: Line, tmp_path: Path) -> None:
    """A part of a file that has changed is not continued: the server sends the new one."""
    line.cuts = [HALF] * 3
    line.etag = '"old"'
    (tmp_path / "it").write_bytes(b"another file" * 9)
    (tmp_path / "it.version").write_text('"older"')

    fetch(line.url, tmp_path / "it", {}, ignore)

    assert (tmp_path / "it").read_bytes() == PROGRAM
    assert line.asked[0] == ("bytes=108-", '"older"')


def test_parts_that_do_not_fit(line: Line, tmp_path: Path) -> None:
    """Parts that give another checksum together are thrown away, and the release is downloaded once more."""
    line.etag = ""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "it").write_bytes(b"x" * 100)
    (parts / "older-release").write_bytes(b"x")

    download(line.tool(tmp_path), tmp_path, parts, {}, ignore)

    assert (tmp_path / "frontdoor").read_bytes() == PROGRAM
    assert line.asked == [("bytes=100-", ""), ("", "")]
    assert not (parts / "older-release").exists()


def test_a_wrong_file_is_downloaded_twice_at_most(line: Line, tmp_path: Path) -> None:
    """Where the whole release has another checksum, that is the message, and nothing of it is kept."""
    tool = line.tool(tmp_path, pinned=b"another")
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "it").write_bytes(PROGRAM[:100])

    with pytest.raises(BadDownload, match="does not have the pinned checksum"):
        download(tool, tmp_path, parts, {}, ignore)

    assert len(line.asked) == 2
    assert list(parts.iterdir()) == []
    with pytest.raises(BadDownload, match="does not have the pinned checksum"):
        download(tool, tmp_path, parts, {}, ignore)
    assert len(line.asked) == 3


def test_a_whole_part(line: Line, tmp_path: Path) -> None:
    """A release that came whole before its run was killed is not asked for again."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "it").write_bytes(PROGRAM)

    download(line.tool(tmp_path), tmp_path, parts, {}, ignore)

    assert line.asked == []


def test_more_than_there_is(line: Line, tmp_path: Path) -> None:
    """A part that is longer than the file is thrown away."""
    (tmp_path / "it").write_bytes(PROGRAM * 2)

    fetch(line.url, tmp_path / "it", {}, ignore)

    assert (tmp_path / "it").read_bytes() == PROGRAM


def test_a_line_that_brings_nothing(line: Line, tmp_path: Path) -> None:
    """Where three answers in a row bring nothing, the message says how much came; it stays for the next run."""
    line.cuts = [HALF, 0, 0, 0]

    with pytest.raises(BadDownload) as caught:
        fetch(line.url, tmp_path / "it", {}, ignore)

    assert str(caught.value) == (
        f"can't be downloaded from {line.url}: the connection was closed after {HALF} of {len(PROGRAM)} bytes"
    )
    assert (tmp_path / "it").stat().st_size == HALF


def test_redirects(line: Line, tmp_path: Path, keys: Path, behind: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may send the request on to another host by HTTPS alone."""
    monkeypatch.setenv("SSL_CERT_FILE", str(keys / "server.crt"))
    behind.answers = {"/it": Answer(PROGRAM)}
    line.redirect = f"http://127.0.0.1:{behind.port}/it"

    with pytest.raises(BadDownload) as caught:
        fetch(line.url, tmp_path / "it", {}, ignore)

    host = f"127.0.0.1:{behind.port}"
    reason = f"it redirects to http://{host}, which is not HTTPS"
    assert str(caught.value) == f"can't be downloaded from {line.url}: {reason}"
    assert behind.asked == []
    line.redirect = f"https://{host}/it"
    fetch(line.url, tmp_path / "it", {}, ignore)
    assert (tmp_path / "it").read_bytes() == PROGRAM


def test_how_far_it_is(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A download is a step with its size; how far it is comes about once a second."""
    monkeypatch.setattr(progress, "_TRANSFER_INTERVAL_S", 0.0)
    events: list[progress.Event] = []

    with progress.use_handler(events.append):
        Toolchain(environment(tmp_path)).need(line.tool(tmp_path))

    assert progress.event_message(events[0]) == "downloading frontdoor 0.1.0, 100.0 KiB …"
    amounts = [progress.event_message(event) for event in events if isinstance(event, progress.Transfer)]
    assert amounts[-1] == "downloading frontdoor 0.1.0, 100.0 KiB: 100.0 KiB, 100 %"
    assert progress.event_message(events[-1]).startswith("downloading frontdoor 0.1.0, 100.0 KiB: 0.")
