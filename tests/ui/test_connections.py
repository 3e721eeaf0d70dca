"""Connections of other users of the machine, who have no code: they take no descriptors from the page."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from composeplat.ui.connections import MAX_OPEN
from tests.ui import documents
from tests.ui.live import FakeEnvironment
from tests.ui.served import Client, serving, site_of, wait_until

STREAM = f"/api/environments/{documents.NAMESPACE}/{documents.ENVIRONMENT}/stream"
#: What a stranger sends and then waits with: nothing, a part of a head, a part of a body, a whole request.
BEGINNINGS = {
    "nothing": b"",
    "head": b"GET / HTTP/1.1\r\nHost: ",
    "body": b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 50\r\n\r\ncode=",
    "request": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
}


@contextlib.contextmanager
def strangers(client: Client, count: int, beginning: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", client.gate.port), timeout=10))
            with contextlib.suppress(OSError):
                connection.sendall(beginning.replace(b"PORT", str(client.gate.port).encode()))
            opened.append(connection)
        yield opened


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        while received := connection.recv(65536):
            assert received
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_many_strangers(beginning: bytes) -> None:
    """The oldest of their connections make room; the stream of the page stays, and it can ask for more."""
    fake = FakeEnvironment()
    with serving(site_of(fake.environment())) as client, client.stream(STREAM) as shown:
        assert next(shown)
        with strangers(client, 2 * MAX_OPEN, beginning) as opened:
            assert client.get("/api/page")["version"] == "1.0.0"
            wait_until(lambda: sum(map(is_open, opened)) <= MAX_OPEN)
            fake.documents["history"] = {**documents.history(), "changed": True}
            assert any("changed" in (document["data"] or {}) for document in shown if document["topic"] == "history")
