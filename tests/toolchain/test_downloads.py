"""A program's release is downloaded only where its checksum is pinned, and used only where it has that checksum.

Downloads were trusted as far as a certificate goes: whatever came was run.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from composeplat.toolchain import downloads
from composeplat.toolchain.downloads import (
    MACHINES,
    SYSTEMS,
    archive_name,
    can_download,
    pinned_checksum,
    read_checksums,
    release_url,
)
from composeplat.toolchain.pin import pin
from composeplat.toolchain.setup import Origin, Toolchain
from composeplat.toolchain.tools import BUILDX, CHECKSUMS, FRONTDOOR, PULUMI, TOOLS, Tool
from composeplat.toolchain.transfer import BadDownload
from tests.cluster.objects import Answer, Server
from tests.conftest import ROOT
from tests.system.test_proxies import Tunnel, behind, keys, tunnel
from tests.toolchain.test_setup import environment

__all__ = ["behind", "keys", "tunnel"]

PROGRAM = b"#!/bin/sh\necho the program\n"
HEAD = "# Pins.\n"
PAGE = ROOT / "docs" / "local-cluster.md"


@dataclass
class Releases:
    """A server of releases on loopback: its folder and URL, its requests, and the pins of its releases."""

    folder: Path
    base: str
    asked: list[str]
    pins: Path

    def tool(self, name: str, content: bytes | None = PROGRAM, *, pinned: bytes | None = None) -> Tool:
        """A program whose release is this, and whose checksum is pinned where that is reported about a content."""
        if content is not None:
            (self.folder / name).write_bytes(content)
        if pinned is not None:
            with self.pins.open("a") as stream:
                stream.write(f"{hashlib.sha256(pinned).hexdigest()}  {name}\n")
        return replace(FRONTDOOR, download=f"{self.base}/{name}", version_args=(), checksums=self.pins)


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Releases]:
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
    yield Releases(folder, f"http://127.0.0.1:{server.server_address[1]}", asked, tmp_path / "checksums.txt")
    server.shutdown()
    thread.join()
    server.server_close()


def download(tool: Tool, folder: Path, environment: dict[str, str]) -> None:
    """Download a program into a folder, with the parts of its release in a folder beside it."""
    downloads.download(tool, folder, folder.with_name(f"{folder.name}-parts"), environment, lambda *_: None)


def archive(*names: str) -> bytes:
    """A gzipped tar of folders, whose names end with a slash, and files: the program where one is named so."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(name.rstrip("/"))
            content = PROGRAM if name.endswith("/frontdoor") else b"#!/bin/sh\nexit 1\n"
            if name.endswith("/"):
                member.type, content = tarfile.DIRTYPE, b""
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_a_program_by_itself(tmp_path: Path, upstream: Releases, capsys: pytest.CaptureFixture[str]) -> None:
    """A release that is the program is put in place, said once, and found in the cache the next time."""
    tool = upstream.tool("frontdoor-0.1.0", pinned=PROGRAM)

    first = Toolchain(environment(tmp_path)).need(tool)
    second = Toolchain(environment(tmp_path)).need(tool)

    assert (first.origin, second.origin) == (Origin.DOWNLOADED, Origin.CACHE)
    assert first.path.read_bytes() == PROGRAM
    assert os.access(first.path, os.X_OK)
    assert "downloading frontdoor 0.1.0" in capsys.readouterr().err


def test_a_program_in_an_archive(tmp_path: Path, upstream: Releases) -> None:
    """Of an archive the program alone is taken, whatever names it holds."""
    content = archive("../../outside", "frontdoor/", "frontdoor/other", "bin/frontdoor", "bin/last")
    tool = upstream.tool("it.tar.gz", content, pinned=content)

    found = Toolchain(environment(tmp_path)).need(tool)

    assert found.origin == Origin.DOWNLOADED
    assert found.path.read_bytes() == PROGRAM
    assert [path.name for path in found.path.parent.iterdir()] == ["frontdoor"]
    assert not (tmp_path / "outside").exists()


def test_a_wrong_checksum(tmp_path: Path, upstream: Releases, capsys: pytest.CaptureFixture[str]) -> None:
    """A release with another checksum is never run: the program is built, and both checksums are reported."""
    trap = b"#!/bin/sh\ntouch " + str(tmp_path / "was-run").encode() + b"\n"
    tool = upstream.tool("it", trap, pinned=PROGRAM)

    found = Toolchain(environment(tmp_path)).need(tool)

    assert found.origin == Origin.BUILT
    assert not (tmp_path / "was-run").exists()
    wrong, right = (hashlib.sha256(item).hexdigest() for item in (trap, PROGRAM))
    assert (
        f"frontdoor 0.1.0 does not have the pinned checksum: {upstream.base}/it has the SHA-256 {wrong}, not {right};"
        " it is built instead: COMPOSEPLAT_DOWNLOADS=off skips the download\n"
    ) in capsys.readouterr().err
    assert not list((tmp_path / "cache").rglob("it"))


def test_no_checksum(upstream: Releases) -> None:
    """A release without a pinned checksum is not asked for at all; one of another name does not count."""
    upstream.tool("other", pinned=PROGRAM)

    assert not can_download(upstream.tool("it"), {})
    assert upstream.asked == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("it", None, "can't be downloaded from {base}/it: HTTP Error 404: File not found", id="no-release"),
        pytest.param("it", b"<html>no program</html>", "does not run on this machine: {base}/it", id="no-program"),
        pytest.param("it.tar.gz", b"\x1f\x8b broken", "is no archive: {base}/it.tar.gz (", id="a-broken-archive"),
        pytest.param("it.tar.gz", archive("x"), "has no program 'frontdoor': {base}/it.tar.gz", id="another-program"),
    ],
)
def test_what_can_not_be_used(
    tmp_path: Path, upstream: Releases, name: str, content: bytes | None, reason: str
) -> None:
    """A release that is pinned and can't be used is reported with its reason, and leaves nothing."""
    tool = upstream.tool(name, content, pinned=content or b"")
    folder = tmp_path / "place"
    folder.mkdir()

    with pytest.raises(BadDownload) as caught:
        download(tool, folder, {})

    assert str(caught.value).startswith(reason.format(base=upstream.base))
    assert list(folder.iterdir()) == []


def test_upstreams_out_of_reach_or_not_wanted(upstream: Releases) -> None:
    """An upstream that does not answer is not read, and so is every upstream where downloads are off."""
    tool = upstream.tool("it", pinned=PROGRAM)

    assert can_download(tool, {})
    assert not can_download(tool, {"COMPOSEPLAT_DOWNLOADS": "off"})
    assert not can_download(replace(tool, download="http://127.0.0.1:9/it"), {})
    assert not can_download(FRONTDOOR, {})


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.download], ids=lambda tool: tool.name)
def test_addresses_name_the_pinned_version(tool: Tool) -> None:
    """An address is that of the pinned version, for this machine, over HTTPS."""
    assert f"v{tool.version}" in release_url(tool)
    assert "linux" in release_url(tool)
    assert release_url(tool).startswith("https://")
    assert "{" not in release_url(tool)


def test_addresses_of_other_machines() -> None:
    """Pulumi's own releases have another word for the usual processor."""
    assert archive_name(release_url(PULUMI, "linux", "amd64")) == f"pulumi-v{PULUMI.version}-linux-x64.tar.gz"
    assert archive_name(release_url(PULUMI, "darwin", "arm64")) == f"pulumi-v{PULUMI.version}-darwin-arm64.tar.gz"


def test_the_page_names_what_is_not_pinned() -> None:
    """The page about the programs names those that are built because their release has no pin."""
    pins = read_checksums(CHECKSUMS)
    unpinned = {
        tool.name for tool in TOOLS if tool.download and archive_name(release_url(tool, "linux", "amd64")) not in pins
    }

    (line,) = re.findall("^Without a pin, and so always built: (.+)[.]$", PAGE.read_text(), flags=re.MULTILINE)

    assert set(re.findall("`([^`]+)`", line)) == unpinned


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.download], ids=lambda tool: tool.name)
def test_a_release_is_pinned_for_all_machines_or_none(tool: Tool) -> None:
    """Whether a program is downloaded does not depend on the machine."""
    systems = ("linux",) if tool.only_linux else SYSTEMS
    names = {archive_name(release_url(tool, system, machine)) for system in systems for machine in MACHINES}

    assert names & read_checksums(CHECKSUMS).keys() in (names, set())


def test_pins_are_of_the_pinned_versions() -> None:
    """No checksum is left of a version that is not used any more, and each is a SHA-256."""
    pins = read_checksums(CHECKSUMS)
    known = {archive_name(release_url(tool, system, machine)) for tool in TOOLS for system in ("linux", "darwin")
             for machine in ("amd64", "arm64")}  # fmt: skip

    assert pins.keys() <= known
    assert all(len(bytes.fromhex(pin)) == 32 for pin in pins.values())


# through a proxy ------------------------------------------------------------------------------------------------------

BEHIND = "releases.behind.invalid"
"""A name that no resolver knows: what is asked for by it was asked of the proxy."""
LOGIN = "Basic bWU6c2VjcmV0"
WANTS = "put user and password into its URL, http://user:password@host:port"


@dataclass
class HttpProxy:
    """A proxy on loopback for plain HTTP, which finds every name on this machine."""

    address: str
    asked: list[str]
    hosts: list[str]
    wanted: list[str]
    """The logins that it takes; none takes all."""
    sends_on_to: str = ""
    """Where all who ask are sent on to."""


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    made = HttpProxy("", [], [], [])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(f"{self.command} {self.path}")
            made.hosts.append(self.headers["Host"])
            if made.wanted and self.headers.get("Proxy-Authorization") not in made.wanted:
                self.send_error(407)
                return
            if made.sends_on_to:
                self.send_response(302)
                self.send_header("Location", made.sends_on_to)
                self.end_headers()
                return
            parts = urlsplit(self.path)
            server = http.client.HTTPConnection("127.0.0.1", parts.port or 80, timeout=10)
            server.request(self.command, parts.path, headers={"Host": self.headers["Host"]})
            answer = server.getresponse()
            self.send_response(answer.status)
            self.end_headers()
            self.wfile.write(answer.read())
            server.close()

        do_HEAD = do_GET  # noqa: N815 -- the library's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.address = f"127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def proxied(tmp_path: Path, name: str, url: str) -> dict[str, str]:
    """The machine's environment with one proxy."""
    clean = {key: value for key, value in environment(tmp_path).items() if not key.upper().endswith("_PROXY")}
    return {**clean, name: url}


def released(upstream: Releases) -> Tool:
    """A pinned release whose address leads to the upstream through a proxy alone."""
    tool = upstream.tool("it", pinned=PROGRAM)
    return replace(tool, download=tool.download.replace("127.0.0.1", BEHIND))


@pytest.mark.parametrize("login", ["", "me:secret@"])
@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_a_download_through_a_proxy(
    tmp_path: Path, upstream: Releases, proxy: HttpProxy, monkeypatch: pytest.MonkeyPatch, login: str, name: str
) -> None:
    """The proxy that the environment names is asked, with the login of its URL; the process's own does not count."""
    proxy.wanted = [LOGIN] if login else []
    tool, named = released(upstream), proxied(tmp_path, name, f"http://{login}{proxy.address}")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    found = Toolchain(named).need(tool)

    assert found.origin == Origin.DOWNLOADED
    server = tool.download.removesuffix("/it")
    assert proxy.asked == [f"HEAD {server}/", f"GET {server}/it"]
    assert proxy.hosts == [server.removeprefix("http://")] * 2
    assert upstream.asked == ["/", "/it"]


def test_what_is_downloaded_past_a_proxy(
    tmp_path: Path, upstream: Releases, proxy: HttpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that ``NO_PROXY`` lists is asked directly, and so is this machine."""
    monkeypatch.setattr(socket, "getaddrinfo", resolving(BEHIND))
    here, elsewhere = upstream.tool("here", pinned=PROGRAM), released(upstream)
    around = {"HTTP_PROXY": f"http://{proxy.address}", "NO_PROXY": f"example.com,{BEHIND}"}

    for tool in (here, elsewhere):
        assert can_download(tool, around)
        download(tool, tmp_path, around)

    assert proxy.asked == []
    assert upstream.asked == ["/", "/here", "/", "/it"]
    assert can_download(elsewhere, {**around, "NO_PROXY": "example.com"})
    assert len(proxy.asked) == 1


def resolving(name: str) -> Callable[..., object]:
    """What finds addresses, and for one more name this machine."""
    find = socket.getaddrinfo
    return lambda host, *rest, **more: find("127.0.0.1" if host == name else host, *rest, **more)


def test_a_redirect_goes_past_a_proxy(
    upstream: Releases, proxy: HttpProxy, keys: Path, behind: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a redirect the proxy is chosen again, by the new address: this machine needs none."""
    monkeypatch.setenv("SSL_CERT_FILE", str(keys / "server.crt"))
    behind.answers = {"/it": Answer(PROGRAM)}
    tool = released(upstream)
    proxy.sends_on_to = f"https://127.0.0.1:{behind.port}/it"

    download(tool, tmp_path, {"HTTP_PROXY": proxy.address})

    assert proxy.asked == [f"GET {tool.download}"]
    assert behind.paths == ["/it"]


@pytest.mark.parametrize(
    ("login", "wants"),
    [
        pytest.param("", "needs a login", id="none"),
        pytest.param("me:wrong-secret@", "refuses the login of its URL", id="a-wrong-one"),
    ],
)
def test_a_proxy_that_wants_a_login(
    tmp_path: Path,
    upstream: Releases,
    proxy: HttpProxy,
    capsys: pytest.CaptureFixture[str],
    login: str,
    wants: str,
) -> None:
    """A proxy that answers 407 is reported with what to do, never with a password; then the program is built."""
    proxy.wanted = [LOGIN]
    tool = released(upstream)

    found = Toolchain(proxied(tmp_path, "HTTP_PROXY", f"http://{login}{proxy.address}")).need(tool)

    assert found.origin == Origin.BUILT
    output = capsys.readouterr().err
    assert (
        f"frontdoor 0.1.0 can't be downloaded from {tool.download}: the proxy http://{proxy.address} {wants}: {WANTS};"
        " it is built instead: COMPOSEPLAT_DOWNLOADS=off skips the download\n"
    ) in output
    assert "secret" not in output


def test_a_tunnel(tmp_path: Path, keys: Path, behind: Server, tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """For HTTPS a proxy makes a tunnel: it gets the login, and where it wants one that is reported too."""
    monkeypatch.setenv("SSL_CERT_FILE", str(keys / "server.crt"))
    tunnel.wanted = LOGIN
    behind.answers = {"/it": Answer(PROGRAM)}
    pins = tmp_path / "pins"
    pins.write_text(f"{hashlib.sha256(PROGRAM).hexdigest()}  it\n")
    name = f"api.behind.invalid:{behind.port}"
    tool = replace(FRONTDOOR, download=f"https://{name}/it", version_args=(), checksums=pins)
    without, with_login = (
        {"HTTPS_PROXY": f"http://{login}127.0.0.1:{tunnel.port}", "HTTP_PROXY": "http://127.0.0.1:9"}
        for login in ("", "me:secret@")
    )

    assert can_download(tool, without)
    with pytest.raises(BadDownload) as caught:
        download(tool, tmp_path, without)
    assert str(caught.value) == (
        f"can't be downloaded from {tool.download}: the proxy {without['HTTPS_PROXY']} needs a login: {WANTS}"
    )
    assert behind.asked == []
    download(tool, tmp_path, with_login)
    assert (tmp_path / "frontdoor").read_bytes() == PROGRAM
    assert tunnel.asked == [f"CONNECT {name}"] * 3
    assert not can_download(tool, {"HTTPS_PROXY": "http://127.0.0.1:9"})


def test_a_proxy_of_another_kind(tmp_path: Path, upstream: Releases, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy that can't be used is reported by the variable that names it, and the program is built."""
    found = Toolchain(proxied(tmp_path, "HTTP_PROXY", "socks5://127.0.0.1:9")).need(released(upstream))

    assert found.origin == Origin.BUILT
    assert (
        ": the environment variable HTTP_PROXY names a proxy of the kind 'socks5', which is not supported:"
        " use an http:// proxy; it is built instead: COMPOSEPLAT_DOWNLOADS=off skips the download\n"
    ) in capsys.readouterr().err


def test_a_redirect_to_no_address(
    tmp_path: Path, upstream: Releases, proxy: HttpProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    """An upstream that sends on to what is no address is reported, and the program is built."""
    proxy.sends_on_to = "https://releases.invalid:99999999/it"

    found = Toolchain(proxied(tmp_path, "HTTP_PROXY", f"http://{proxy.address}")).need(released(upstream))

    assert found.origin == Origin.BUILT
    assert ": Port out of range 0-65535; it is built instead" in capsys.readouterr().err


def test_a_proxy_that_speaks_no_http(upstream: Releases) -> None:
    """A variable that leads to the port of something else, as of SSH, names no upstream that answers."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-Other\r\n")

        threading.Thread(target=answer, daemon=True).start()
        tool = replace(upstream.tool("it", pinned=PROGRAM), download="http://releases.invalid/it")
        assert not can_download(tool, {"HTTP_PROXY": f"http://127.0.0.1:{other.getsockname()[1]}"})


# pinning --------------------------------------------------------------------------------------------------------------


def test_pinning(upstream: Releases) -> None:
    """Each release of each machine is pinned by what it is, below the lines that explain the file."""
    names = [f"buildx-{system}-{machine}" for system in ("darwin", "linux") for machine in ("amd64", "arm64")]
    for name in names:
        (upstream.folder / name).write_bytes(name.encode())
    tool = replace(BUILDX, download=f"{upstream.base}/buildx-{{system}}-{{machine}}")

    assert pin([tool, FRONTDOOR], upstream.pins, {}) == []

    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names]
    assert upstream.pins.read_text() == "".join([HEAD, *lines])
    assert pinned_checksum(upstream.pins, names[0]) == hashlib.sha256(names[0].encode()).hexdigest()


def test_a_release_that_was_replaced(upstream: Releases) -> None:
    """A release that has another checksum now than the pinned one is reported, and nothing is pinned."""
    tool = upstream.tool("it", pinned=b"as it was")
    before = upstream.pins.read_text()

    (problem,) = pin([tool], upstream.pins, {})

    old, new = (hashlib.sha256(content).hexdigest() for content in (b"as it was", PROGRAM))
    assert problem == (
        f"it is pinned with another checksum: {old}, and is {new} now;"
        " find out which one is right, and remove the line if it is the new one"
    )
    assert upstream.pins.read_text() == before


def test_a_pin_that_was_recorded(upstream: Releases) -> None:
    """A pin that was recorded without a download is compared: where it is right it stays, beside the new ones."""
    recorded = upstream.tool("recorded", pinned=PROGRAM)
    before = upstream.pins.read_text()

    assert pin([recorded, upstream.tool("another", b"another")], upstream.pins, {}) == []

    assert upstream.asked == ["/recorded", "/another"]
    new = f"{hashlib.sha256(b'another').hexdigest()}  another\n"
    assert upstream.pins.read_text() == before.replace(HEAD, HEAD + new)


def test_a_release_that_is_not_there(upstream: Releases) -> None:
    """Where one release can't be had nothing is pinned."""
    (problem,) = pin([upstream.tool("none", None)], upstream.pins, {})

    assert problem == f"frontdoor 0.1.0 can't be downloaded from {upstream.base}/none: HTTP Error 404: File not found"
    assert upstream.pins.read_text() == HEAD


def test_pinning_as_a_command() -> None:
    """``make pins`` without a way to the upstreams says which could not be had, and changes nothing."""
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
