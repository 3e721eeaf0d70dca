"""Monitor whether a state backend answers, beside runs of Pulumi, which would wait for its answer without end.

Owns how a server is asked that needs no login for it, and how long its silence is borne.
Must not read a state. Amazon's own servers and folders are not asked: Pulumi's own limits apply there.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import field

from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend_url import BackendAddress, address_of, shown_url
from composeplat.system.proxies import find_proxy
from composeplat.system.records import record
from composeplat.system.threads import start_thread

MAX_SILENCE_S = 30.0
_PING_INTERVAL_S = 2.0
_PING_TIMEOUT_S = 5.0
#: PostgreSQL's request for TLS: a server answers it before any login.
_TLS_REQUEST = struct.pack("!ii", 8, 80877103)


def answers(address: BackendAddress) -> bool:
    """Return whether a server answers the first message of its protocol, whatever the answer is."""
    try:
        with socket.create_connection((address.host, address.port), timeout=_PING_TIMEOUT_S) as plain:
            if address.is_postgres:
                plain.sendall(_TLS_REQUEST)
                return bool(plain.recv(1))
            with _wrapped(plain, address) as stream:
                stream.sendall(f"HEAD / HTTP/1.0\r\nHost: {address.host}\r\n\r\n".encode())
                return bool(stream.recv(1))
    except OSError:
        return False


def _wrapped(plain: socket.socket, address: BackendAddress) -> socket.socket:
    if not address.has_tls:
        return plain
    # Nothing confidential is sent, and the certificate is Pulumi's concern.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=address.host)


@record
class Silence:
    """For how long a server has not answered."""

    name: str = ""
    since: list[float] = field(default_factory=list)
    """When the first request was sent that has no answer yet; empty if there is none."""

    def check(self) -> None:
        """Raise if it has been silent for too long."""
        since = self.since
        if since and time.monotonic() - since[0] > MAX_SILENCE_S:
            raise MissingPiece(
                f"the state backend {self.name} has not answered for {MAX_SILENCE_S:.0f} s",
                "check that it runs, then run this again: what was done is recorded, or found by its labels",
            )


@record
class BackendHealth:
    """The server of a backend; without an address it is not asked."""

    name: str = ""
    address: BackendAddress | None = None

    @contextlib.contextmanager
    def watch(self) -> Iterator[Silence]:
        """Ask the server now and then while the block runs."""
        silence, ended = Silence(self.name), threading.Event()
        address = self.address
        if address is not None:
            start_thread("backend-health", lambda: _ask(address, silence, ended), lambda _: None)
        try:
            yield silence
        finally:
            ended.set()


def _ask(address: BackendAddress, silence: Silence, ended: threading.Event) -> None:
    while not ended.wait(_PING_INTERVAL_S):
        if not silence.since:
            silence.since.append(time.monotonic())
        if answers(address):
            silence.since.clear()


def health_of(url: str, environment: Mapping[str, str]) -> BackendHealth:
    """Return the monitor of a backend. One that is behind a proxy is not asked."""
    address = address_of(url, environment)
    scheme = "https" if address is not None and address.has_tls else "http"
    if address is None or (
        not address.is_postgres and find_proxy(environment, scheme, address.host, address.port) is not None
    ):
        return BackendHealth()
    return BackendHealth(shown_url(url), address)
