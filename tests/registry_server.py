"""A registry on loopback that answers what a test shows it to."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Registry:
    """What is in it, by path below ``/v2/``, and what was asked of it."""

    port: int = 0
    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and what was given to be let in."""
    gate: Callable[[str, str], Answer | None] = field(default=lambda _path, _authorization: None)
    """Answers before the content does."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def push(self, name: str, *ports: str, tag: str = "latest", user: str = "", layers: Sequence[bytes] = ()) -> str:
        """Put an image there that exposes ports, with layers from the lowest; gives its digest."""
        settings: dict[str, Any] = {"ExposedPorts": {port: {} for port in ports}} if ports else {}
        config = json.dumps({"config": settings | ({"User": user} if user else {})}).encode()
        for blob in (config, *layers):
            self.content[f"{name}/blobs/{_digest(blob)}"] = blob
        manifest = {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"digest": _digest(config)},
            "layers": [{"digest": _digest(layer)} for layer in layers],
        }
        return self.put(name, manifest, tag)

    def put(self, name: str, manifest: Any, tag: str = "latest") -> str:
        text = json.dumps(manifest).encode()
        for reference in (tag, _digest(text)):
            self.content[f"{name}/manifests/{reference}"] = text
        return _digest(text)

    def answer(self, path: str, authorization: str) -> Answer:
        self.asked.append((path, authorization))
        first = self.gate(path, authorization)
        if first is not None:
            return first
        found = self.content.get(path.removeprefix("/v2/"))
        return (200, {}, found) if found is not None else (404, {}, b"{}")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@contextlib.contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = registry.answer(self.path, self.headers.get("Authorization", ""))
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
