"""Whether a backend answers: asked beside Pulumi, without a login."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.engine import backend_health
from composeplat.engine.backend_health import BackendHealth, Silence, answers, health_of
from composeplat.engine.backend_url import BackendAddress


@contextlib.contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that answers each connection so, or not at all; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    kept.append(connection)
                    if answer is not None:
                        connection.recv(1000)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in kept:
            connection.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits, a hundred times shorter."""
    for name in ("MAX_SILENCE_S", "_PING_INTERVAL_S", "_PING_TIMEOUT_S"):
        monkeypatch.setattr(backend_health, name, getattr(backend_health, name) / 100)


@pytest.mark.parametrize("is_postgres", [True, False])
@pytest.mark.parametrize(("answer", "expected"), [(b"N", True), (b"", False), (None, False)])
def test_answers(answer: bytes | None, *, is_postgres: bool, expected: bool) -> None:
    """Any answer counts; a connection that is accepted, and nothing more, does not."""
    if answer == b"":
        assert not answers(BackendAddress(host="127.0.0.1", port=9, is_postgres=is_postgres))
        return
    with listening(answer) as port:
        assert answers(BackendAddress(host="127.0.0.1", port=port, is_postgres=is_postgres)) == expected


def test_silence() -> None:
    """A server that stays silent is an error after the limit; one that answers never is."""
    with listening(b"HTTP/1.0 403\r\n\r\n") as alive, listening(None) as silent:
        for port, is_silent in ((alive, False), (silent, True)):
            health = BackendHealth("s3://b", BackendAddress(host="127.0.0.1", port=port))
            with health.watch() as silence:
                time.sleep(0.6)
                with pytest.raises(MissingPiece) if is_silent else contextlib.nullcontext():
                    silence.check()


def test_message() -> None:
    """The message names the backend and the time."""
    with pytest.raises(MissingPiece) as caught:
        Silence("s3://b", [time.monotonic() - 1]).check()

    assert str(caught.value) == "the state backend s3://b has not answered for 0 s"
    assert caught.value.hint.startswith("check that it runs, then run this again")


@pytest.mark.parametrize(
    ("url", "environment", "is_asked"),
    [
        ("postgres://me:abcd@db/x", {"HTTPS_PROXY": "http://p"}, True),
        ("https://pulumi.example.com", {}, True),
        ("https://pulumi.example.com", {"HTTPS_PROXY": "http://p"}, False),
        ("gs://b", {}, True),
        ("gs://b", {"HTTPS_PROXY": "http://p"}, False),
        ("s3://b", {}, False),
    ],
)
def test_health_of(url: str, environment: dict[str, str], *, is_asked: bool) -> None:
    """Amazon's own servers are not asked, nor those behind a proxy; the name has no login."""
    health = health_of(url, environment)

    assert (health.address is not None) == is_asked
    assert "abcd" not in health.name
