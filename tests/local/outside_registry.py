"""A registry under a name of its own, behind a proxy, with TLS by an authority of its own.

Its content is that of another registry. The proxy is the only way to it: it accepts ``CONNECT`` and answers as every
host. Nothing of it leaves loopback.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "registry.example.com"
DOCKER_HUB = "index.docker.io"
#: The status, headers and body of an answer that comes before the content.
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class OutsideRegistry:
    folder: Path
    content_port: int
    """The registry on loopback that has the content."""
    port: int = 0
    requests: list[str] = field(default_factory=list)
    gate: Callable[[str, str], Answer | None] = field(default=lambda _path, _authorization: None)
    """Answers a path and an authorization, instead of the content."""

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        return self.folder / "outside.crt"

    def make_certificate(self) -> None:
        command = [str(shutil.which("openssl")), "req", "-x509", "-newkey", "ec",
                   "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                   "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},DNS:{DOCKER_HUB}",
                   "-keyout", str(self.folder / "outside.key"), "-out", str(self.authority)]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)

    def answer(self, method: str, path: str, authorization: str, accept: str) -> Answer:
        self.requests.append(f"{method} {path}")
        first = self.gate(path, authorization)
        if first is not None:
            return first
        if path == "/v2/":
            return 200, {}, b"{}"
        connection = http.client.HTTPConnection("127.0.0.1", self.content_port, timeout=10)
        with contextlib.closing(connection):
            # The node looks for what is on Docker Hub in the cluster's registry first: there it has another name.
            connection.request(method, path.replace("/hub/", "/shop/"), headers={"Accept": accept})
            answer = connection.getresponse()
            headers = {name: value for name in _HEADERS if (value := answer.getheader(name))}
            return answer.status, headers, answer.read()


_HEADERS = ("Content-Type", "Docker-Content-Digest", "Content-Length")


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@contextlib.contextmanager
def serving(registry: OutsideRegistry) -> Iterator[OutsideRegistry]:
    registry.make_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(registry.authority, registry.folder / "outside.key")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError), context.wrap_socket(self.connection, server_side=True) as secure:
                Inside(secure, self.client_address, self.server)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Inside(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            accept = ",".join(self.headers.get_all("Accept") or ())
            authorization = self.headers.get("Authorization", "")
            status, headers, body = registry.answer(self.command, self.path, authorization, accept)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", registry.port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    registry.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
