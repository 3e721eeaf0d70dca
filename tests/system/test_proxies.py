"""Proxies: which one is meant for an address, and that what is asked goes through it."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kubeconfig import find_access
from composeplat.diagnostics import MissingPiece
from composeplat.registry.exposed_ports import ExposedPorts
from composeplat.system.proxies import find_proxy, find_proxy_for, parse_proxy
from tests.cluster.objects import Answer, Server


@pytest.mark.parametrize(
    ("url", "address", "authorization"),
    [
        ("http://proxy.example.com:3128", "http://proxy.example.com:3128", ""),
        ("proxy.example.com:3128", "http://proxy.example.com:3128", ""),
        ("http://proxy.example.com", "http://proxy.example.com:80", ""),
        ("http://me:se%40cret@proxy:3128", "http://proxy:3128", "Basic bWU6c2VAY3JldA=="),
        ("http://me@proxy:3128/", "http://proxy:3128", "Basic bWU6"),
        ("http://[fd00::1]:3128", "http://[fd00::1]:3128", ""),
    ],
)
def test_proxy(url: str, address: str, authorization: str) -> None:
    """A proxy's URL has a host, a port, and maybe a user and password."""
    proxy = parse_proxy(url, "HTTPS_PROXY")

    assert (address, authorization) == (proxy.address, proxy.authorization)


@pytest.mark.parametrize(
    ("url", "output"),
    [
        ("socks5://proxy:1080", "HTTPS_PROXY names a proxy of the kind 'socks5', which is not supported"),
        ("http://:3128", "HTTPS_PROXY must be the URL of a proxy"),
        ("http://me:secret@proxy:many", "HTTPS_PROXY must be the URL of a proxy"),
    ],
)
def test_what_is_no_proxy(url: str, output: str) -> None:
    """A URL that names no proxy is reported by where it comes from; it may hold a password, so it is not quoted."""
    with pytest.raises(MissingPiece) as caught:
        parse_proxy(url, "HTTPS_PROXY")

    assert output == str(caught.value)
    assert "secret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": "upper:1"}, "http://upper:1"),
        ({"https_proxy": "lower:1"}, "http://lower:1"),
        ({"HTTPS_PROXY": "upper:1", "https_proxy": "lower:1"}, "http://upper:1"),
        ({"HTTP_PROXY": "plain:1"}, ""),
        ({"HTTPS_PROXY": ""}, ""),
    ],
)
def test_variables(variables: dict[str, str], expected: str) -> None:
    """The variable for the scheme counts, in capitals before small letters."""
    proxy = find_proxy(variables, "https", "api.example.com", 6443)

    assert expected == (proxy.address if proxy else "")


@pytest.mark.parametrize(
    ("listed", "host", "direct"),
    [
        ("*", "api.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", "api.example.com", True),
        ("example.com", "notexample.com", False),
        (".example.com", "api.example.com", True),
        (".example.com", "example.com", False),
        ("*.example.com", "api.example.com", True),
        ("EXAMPLE.com", "api.Example.COM", True),
        ("other, example.com", "api.example.com", True),
        ("example.com:6443", "api.example.com", True),
        ("example.com:443", "api.example.com", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.0/8", "10.9.8.7", True),
        ("10.9.0.1/16", "10.9.8.7", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "api.example.com", False),
        ("10.0.0.0/nonsense", "10.0.0.1", False),
        ("fd00::1", "fd00::1", True),
        ("[fd00::1]:6443", "fd00::1", True),
        ("fd00::/8", "fd00::2", True),
        ("", "localhost", True),
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "api.example.com", False),
    ],
)
def test_no_proxy(listed: str, host: str, *, direct: bool) -> None:
    """What NO_PROXY lists is reached directly, as Go's programs do it; so is this machine, whatever is listed."""
    found = find_proxy({"HTTPS_PROXY": "proxy:3128", "NO_PROXY": listed}, "https", host, 6443)

    assert direct is (found is None)


@pytest.mark.parametrize(
    ("url", "direct"),
    [
        ("https://api.example.com/x", "api.example.com:443"),
        ("https://api.example.com:6443/x", "api.example.com:6443"),
        ("http://api.example.com", "api.example.com:80"),
    ],
)
def test_proxy_of_a_url(url: str, direct: str) -> None:
    """A URL's port is that of its scheme where it names none."""
    named = {"HTTPS_PROXY": "proxy:3128", "HTTP_PROXY": "proxy:3129"}
    found = find_proxy_for({**named, "NO_PROXY": "api.example.com:1"}, url)

    assert found is not None
    assert found.netloc == ("proxy:3128" if url.startswith("https") else "proxy:3129")
    assert find_proxy_for({**named, "NO_PROXY": direct}, url) is None


# through a proxy ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tunnel:
    """A proxy on loopback that takes ``CONNECT`` alone, and leads every name to this machine."""

    wanted: str = ""
    """The value of ``Proxy-Authorization`` that it wants; empty wants none."""
    asked: list[str] = field(default_factory=list)
    _listening: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._tend, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _tend(self, client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1024) or b"\r\n\r\n"
            first, *rest = head.decode().split("\r\n")
            self.asked.append(first.rpartition(" ")[0])
            given = dict(line.split(": ", 1) for line in rest if ": " in line)
            if given.get("Proxy-Authorization", "") != self.wanted:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            port = int(first.split()[1].rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                _pump(client, server)


def _pump(item: socket.socket, other: socket.socket) -> None:
    while True:
        ready, _, _ = select.select([item, other], [], [])
        for end in ready:
            content = end.recv(65536)
            if not content:
                return
            (other if end is item else item).sendall(content)


@pytest.fixture
def tunnel() -> Iterator[Tunnel]:
    made = Tunnel()
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made
    made.close()
    thread.join()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for a name that no resolver knows."""
    folder = tmp_path_factory.mktemp("keys")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-days", "2", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:api.behind.invalid,IP:127.0.0.1",
            "-keyout", folder / "server.key", "-out", folder / "server.crt",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def behind(keys: Path) -> Iterator[Server]:
    """A server with that name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "server.crt", keys / "server.key")
    with Server(otherwise=Answer(b'{"items": []}\n'), tls=context) as server:
        yield server


def api_behind(folder: Path, keys: Path, server: Server, environment: dict[str, str], proxy_url: str = "") -> Api:
    """What a kubeconfig leads to whose server can be reached through a proxy alone."""
    address = f"https://api.behind.invalid:{server.port}"
    cluster = {"server": address, "certificate-authority": str(keys / "server.crt")}
    (folder / "config").write_text(json.dumps({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me"}}],
        "clusters": [{"name": "a", "cluster": {**cluster, **({"proxy-url": proxy_url} if proxy_url else {})}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }))  # fmt: skip
    return Api(find_access(environment, str(folder / "config")))


@pytest.mark.parametrize("by", ["variable", "kubeconfig"])
@pytest.mark.parametrize("login", ["", "me:secret@"])
def test_api_behind_a_proxy(tmp_path: Path, keys: Path, behind: Server, tunnel: Tunnel, by: str, login: str) -> None:
    """Proxies were ignored: a cluster behind one could not be reached. Requests and streams go through it."""
    tunnel.wanted = "Basic bWU6c2VjcmV0" if login else ""
    url = f"http://{login}127.0.0.1:{tunnel.port}"
    environment = {"HTTPS_PROXY": url} if by == "variable" else {"NO_PROXY": "*"}
    with api_behind(tmp_path, keys, behind, environment, url if by == "kubeconfig" else "") as api:
        assert api.items("/pods") == []
        assert [part.text for part in api.lines("/log")] == ['{"items": []}']
        assert list(api.watch("/pods", "1")) == [{"items": []}]

    assert tunnel.asked == [f"CONNECT api.behind.invalid:{behind.port}"] * 3


def test_an_address_of_ipv6_behind_a_proxy(tunnel: Tunnel) -> None:
    """It has brackets in the request to the proxy, which would take the last part of it for a port, and in others."""
    with Server(otherwise=Answer(b'{"items": []}\n')) as server:
        proxy = parse_proxy(f"http://127.0.0.1:{tunnel.port}", "")
        with Api(Access(host="2001:db8::1", port=server.port, plain=True, proxy=proxy)) as api:
            assert api.items("/pods") == []
            assert list(api.watch("/pods", "1")) == [{"items": []}]

    address = f"[2001:db8::1]:{server.port}"
    assert tunnel.asked == [f"CONNECT {address}"] * 2
    assert {request.headers["Host"] for request in server.asked} == {address}


def test_a_proxy_that_wants_a_login(tmp_path: Path, keys: Path, behind: Server, tunnel: Tunnel) -> None:
    """A proxy that refuses is reported with its address and what to do, and never with a password."""
    tunnel.wanted = "Basic bWU6c2VjcmV0"
    url = f"http://me:wrong-secret@127.0.0.1:{tunnel.port}"
    with api_behind(tmp_path, keys, behind, {"HTTPS_PROXY": url}) as api, pytest.raises(ApiError) as caught:
        api.items("/pods")

    output = f"can't be reached through the proxy http://127.0.0.1:{tunnel.port}: tunnel connection failed: 407 proxy"
    assert output in str(caught.value)
    assert caught.value.hint == "put user and password into the proxy's URL: http://user:password@host:port"
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_registry_behind_a_proxy(
    tmp_path: Path, keys: Path, behind: Server, tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ports that an image exposes are read through the proxy that the environment names."""
    tunnel.wanted = "Basic bWU6c2VjcmV0"
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{tunnel.port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(keys / "server.crt"))
    manifest = {"config": {"digest": "sha256:1"}}
    config: dict[str, Any] = {"config": {"ExposedPorts": {"80/tcp": {}}}}
    behind.answers = {
        "/v2/web/manifests/1": Answer(json.dumps(manifest).encode()),
        "/v2/web/blobs/sha256:1": Answer(json.dumps(config).encode()),
    }
    exposed = ExposedPorts(tmp_path, os.environ, timeout=10.0)

    assert exposed.request(f"api.behind.invalid:{behind.port}/web:1").result() == ((80, "tcp"),)
    assert set(tunnel.asked) == {f"CONNECT api.behind.invalid:{behind.port}"}
