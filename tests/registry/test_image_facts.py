"""The facts of images, read from their registry."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from composeplat.registry.image_config import ImageConfig, ImageFacts, RegistryAccess, read_images
from composeplat.system.deadline import Deadline
from tests.registry_server import Registry, serving


def put_config(registry: Registry, name: str, blob: dict[str, Any]) -> str:
    """Push an image and replace its configuration; gives the digest of its manifest."""
    digest = registry.push(name)
    manifest = json.loads(registry.content[f"{name}/manifests/{digest}"])
    registry.content[f"{name}/blobs/{manifest['config']['digest']}"] = json.dumps(blob).encode()
    return digest


def test_facts(tmp_path: Path) -> None:
    """User, volumes, ports and the architecture come from the configuration."""
    config = {"User": "999:999", "Volumes": {"/b": {}, "/a": {}}, "ExposedPorts": {"5432/tcp": {}}}
    with serving(Registry()) as registry:
        put_config(registry, "db", {"architecture": "arm64", "config": config})
        name = f"{registry.host}/db"
        found = read_images([name], {"HOME": str(tmp_path)})

    assert found == {
        name: ImageFacts(
            user="999:999", volumes=("/a", "/b"), ports=((5432, "tcp"),), architectures=frozenset(("arm64",))
        )
    }


def test_architectures_of_an_index(tmp_path: Path) -> None:
    """An image for several platforms has the architectures of all, without attestations."""
    with serving(Registry()) as registry:
        digest = put_config(registry, "app", {"config": {}})
        platforms = [{"os": "linux", "architecture": name} for name in ("amd64", "arm64", "unknown")]
        registry.put("app", {"manifests": [{"digest": digest, "platform": platform} for platform in platforms]})
        (found,) = read_images([f"{registry.host}/app"], {"HOME": str(tmp_path)}).values()

    assert isinstance(found, ImageFacts)
    assert found.architectures == {"amd64", "arm64"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b"{}"), "is not in its registry"),
        ((403, b"{}"), "is denied by its registry"),
        ((500, b"{}"), "can't be read: its registry answered 500"),
        ((200, b"<html>"), "can't be read: the answer is not a registry's"),
        ((200, b"[" * 100_000), "can't be read: the answer is not a registry's"),
    ],
)
def test_reasons(tmp_path: Path, answer: tuple[int, bytes], reason: str) -> None:
    """An image that can't be read has the reason."""
    with serving(Registry(gate=lambda _path, _authorization: (answer[0], {}, answer[1]))) as registry:
        name = f"{registry.host}/app"

        assert read_images([name], {"HOME": str(tmp_path)}) == {name: reason}


def test_no_registry(tmp_path: Path) -> None:
    """A registry that can't be reached, or not in time, is a reason too."""
    with serving(Registry()) as registry:
        name = f"{registry.host}/app"
        assert read_images([name], {"HOME": str(tmp_path)}, timeout=0.0) == {
            name: "can't be read: its registry did not answer in time"
        }

    assert read_images([name], {"HOME": str(tmp_path)}) == {name: "can't be read: its registry can't be reached"}


def test_the_digest_of_a_tag(tmp_path: Path) -> None:
    """It is that of the manifest that the tag has now."""
    with serving(Registry()) as registry:
        digests = []
        for ports in ("80/tcp", "81/tcp"):
            pushed = registry.push("app", ports)
            config = ImageConfig(f"{registry.host}/app", RegistryAccess({}, {"HOME": str(tmp_path)}), Deadline(5))
            digests.append((pushed, config.digest()))

    assert all(pushed == read for pushed, read in digests)
    assert len(set(digests)) == 2


@contextlib.contextmanager
def dripping(interval_s: float, start: bytes) -> Iterator[str]:
    """A registry that sends a byte of its answer now and then, and never the last one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                self.wfile.write(start)
                while not ended.wait(interval_s):
                    self.wfile.write(b" ")

        def log_message(self, *_: object) -> None: ...

    ended = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nServer:",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000\r\n",
    ],
    ids=["status", "headers", "body", "chunk"],
)
def test_an_answer_without_end(start: bytes, tmp_path: Path) -> None:
    """A deploy asks for the digest of an image itself: a registry that never ends its answer holds it no longer."""
    started = time.monotonic()
    with dripping(0.05, start) as host:
        config = ImageConfig(f"{host}/app", RegistryAccess({}, {"HOME": str(tmp_path)}), Deadline(0.5))
        with pytest.raises(TimeoutError):
            config.digest()

    assert time.monotonic() - started < 2


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[str]]]:
    """The URL of a proxy that refuses every connection, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            self.send_error(403)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("registry", "listed"), [("192.0.2.7:5000", "192.0.2.0/24"), ("registry.corp.invalid", "*.corp.invalid")]
)
def test_a_registry_that_no_proxy_lists(
    registry: str, listed: str, proxy: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked directly, also where a network or a pattern lists it."""
    address, asked = proxy
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    image, environment = f"{registry}/app", {"HOME": str(tmp_path), "HTTPS_PROXY": address}
    monkeypatch.setenv("HTTPS_PROXY", address)

    through = read_images([image], environment, timeout=5.0)
    assert asked == [registry if ":" in registry else f"{registry}:443"]
    monkeypatch.setenv("NO_PROXY", listed)
    read_images([image], {**environment, "NO_PROXY": f"example.com, {listed}"}, timeout=0.3)

    assert len(asked) == 1
    assert through == {image: "can't be read: its registry can't be reached"}


def test_a_proxy_that_can_not_be_used(tmp_path: Path) -> None:
    """It is the reason, and not an answer of a registry."""
    reasons = read_images(["example.com/app"], {"HOME": str(tmp_path), "HTTPS_PROXY": "socks5://127.0.0.1:9"})

    assert reasons == {
        "example.com/app": "can't be read: the environment variable HTTPS_PROXY names a proxy of the kind 'socks5', "
        "which is not supported"
    }
