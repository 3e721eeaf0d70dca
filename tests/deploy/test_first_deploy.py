"""The first deploy on a machine that has Python and nothing else: the wheel is installed, the programs are downloaded.

The hosts of the releases are out of reach of a test machine. So releases are made of the programs in the cache, and a
proxy on loopback serves them under their real addresses, with a certificate of its own; one of them is cut.
The checksums are pinned in the wheel, as ``make pins`` would write them. ``PATH`` has no Go: nothing can be built.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from composeplat.toolchain.downloads import archive_name, release_url
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment
from tests.deploy.release import WHEEL, build, run, write_constraints

LIMIT_S = 120
#: GitHub keeps the files of its releases on another host.
FILES = "release-assets.githubusercontent.com"
HOSTS = {str(urlsplit(release_url(tool)).hostname) for tool in DEPLOY_TOOLS} | {FILES}
pytestmark = [pytest.mark.build, pytest.mark.endurance]


@dataclass
class Hosts:
    """The hosts of the releases, behind a proxy."""

    folder: Path
    keys: ssl.SSLContext
    to_cut: set[str]
    """The releases whose first answer ends in the middle."""
    asked: list[str] = field(default_factory=list)
    port: int = 0


def make_releases(folder: Path) -> dict[str, str]:
    """Pack the programs as their projects do; gives the checksum of each release."""
    pins: dict[str, str] = {}
    for tool in DEPLOY_TOOLS:
        program, archive = Toolchain(os.environ).need(tool).path, folder / archive_name(release_url(tool))
        if archive.name.endswith(".tar.gz"):
            run("tar", "-C", program.parent, "--use-compress-program=gzip -1", "-cf", archive, program.name)
        else:
            shutil.copyfile(program, archive)
        with archive.open("rb") as stream:
            pins[archive.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return pins


def make_keys(folder: Path) -> ssl.SSLContext:
    names = ",".join(f"DNS:{host}" for host in sorted(HOSTS))
    subprocess.run(
        [
            "openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-days", "2", "-subj", "/CN=hosts", "-addext", f"subjectAltName={names}",
            "-keyout", folder / "hosts.key", "-out", folder / "hosts.crt",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hosts.crt", folder / "hosts.key")
    return context


def handler(hosts: Hosts) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            """Be the host that the tunnel is meant for."""
            if self.path.partition(":")[0] not in HOSTS:
                self.send_error(502)
                return
            self.send_response(200)
            self.end_headers()
            self.connection = hosts.keys.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
            self.close_connection = False

        def finish(self) -> None:
            super().finish()
            self.connection.close()

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            host, name = self.headers["Host"], archive_name(self.path)
            hosts.asked.append(f"{host} {name} {self.headers.get('Range', '')}".strip())
            if host == "github.com":
                self.send_response(302)
                self.send_header("Location", f"https://{FILES}/{name}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._send(hosts.folder / name)

        def _send(self, path: Path) -> None:
            content = path.read_bytes()
            start = int(self.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("ETag", f'"{path.name}"')
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = len(content)
            if path.name in hosts.to_cut:
                hosts.to_cut.remove(path.name)
                end, self.close_connection = end // 2, True
            self.wfile.write(memoryview(content)[start:end])

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Hosts, dict[str, str]]]:
    folder = tmp_path / "releases"
    folder.mkdir()
    pins = make_releases(folder)
    made = Hosts(folder, make_keys(tmp_path), {name for name in pins if "kubernetes" in name})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(made))
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made, pins
    server.shutdown()
    thread.join()
    server.server_close()


def build_with_pins(folder: Path, pins: dict[str, str]) -> Path:
    """Build the wheel of a release, whose checksums are pinned."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "composeplat", folder / "composeplat", ignore=shutil.ignore_patterns("__pycache__"))
    lines = "".join(f"{checksum}  {name}\n" for name, checksum in sorted(pins.items()))
    (folder / "composeplat" / "toolchain" / "checksums.txt").write_text(lines)
    build(folder, folder, "wheel")
    return folder / WHEEL


def test_first_deploy(hosts: tuple[Hosts, dict[str, str]], environment: Environment, tmp_path: Path) -> None:
    """From an empty machine to running pods in two minutes, with a download that is cut on the way."""
    server, pins = hosts
    wheel = build_with_pins(tmp_path / "source", pins)
    environment.write(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0s}}}}")
    variables = {
        **environment.variables,
        "COMPOSEPLAT_CACHE": str(tmp_path / "cache"),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_CONSTRAINT": str(write_constraints(tmp_path / "constraints")),
        "PATH": "/usr/bin:/bin",
    }
    online = {"HTTPS_PROXY": f"http://127.0.0.1:{server.port}", "SSL_CERT_FILE": str(tmp_path / "hosts.crt")}
    _, *deploy = environment.command_line("deploy")
    uv = Path(sys.executable).parent / "uv"

    began = time.monotonic()
    run(uv, "tool", "install", "--quiet", "--python", sys.executable, wheel, variables=variables)
    installed = time.monotonic() - began
    done = subprocess.run(
        [tmp_path / "bin" / "composeplat", *deploy], cwd=environment.folder, env={**variables, **online},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    seconds = time.monotonic() - began

    assert done.returncode == 0, done.stderr
    assert environment.pods("web")
    assert "building" not in done.stderr
    archive = next(name for name in pins if "kubernetes" in name)
    size = (server.folder / archive).stat().st_size
    assert f"get.pulumi.com {archive} bytes={size // 2}-" in server.asked
    print(f"installed in {installed:.1f} s, deployed after {seconds:.1f} s\n{done.stderr}")
    assert seconds < LIMIT_S
