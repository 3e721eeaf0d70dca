"""Connections to an API server: TLS, the client's certificate, and the tunnel through a proxy.

Owns how a connection is made, and what is said where that fails.
Must not know what is asked over it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import tempfile
from collections.abc import Hashable, Iterator

from composeplat.cluster.access import Access
from composeplat.cluster.credentials import Credential
from composeplat.diagnostics import MissingPiece


class Connector:
    """Makes connections to one server; what TLS needs is read again when the client's certificate has changed."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._context: ssl.SSLContext | None = None
        self._identity: Hashable = None

    def connect(self, credential: Credential, *, timeout: float) -> http.client.HTTPConnection:
        """Give a connection that opens when it is first used."""
        access, proxy = self.access, self.access.proxy
        host, port = (proxy.host, proxy.port) if proxy else (access.host, access.port)
        connection: http.client.HTTPConnection
        if access.plain:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        else:
            name = access.server_name or access.host
            connection = _Secure(host, port, name, self._tls(credential), timeout)
        if proxy:
            headers = {"Host": f"{access.host}:{access.port}"}
            if proxy.authorization:
                headers["Proxy-Authorization"] = proxy.authorization
            connection.set_tunnel(access.host, access.port, headers)
        return connection

    def _tls(self, credential: Credential) -> ssl.SSLContext:
        if self._context is None or self._identity != credential.identity:
            try:
                self._context = _make_tls(self.access, credential)
            except MissingPiece:
                # Certificate and key are two files: one may have been renewed, and the other be about to be.
                if self._context is None:
                    raise
            else:
                self._identity = credential.identity
        return self._context


class _Secure(http.client.HTTPSConnection):
    """A connection to a server whose certificate may be for another name than its address, or behind a proxy."""

    def __init__(self, host: str, port: int, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _make_tls(access: Access, credential: Credential) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.authority or None, cadata=access.authority_data or None)
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with _certificate_files(credential) as (certificate, key):
            if certificate:
                context.load_cert_chain(certificate, key or None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MissingPiece(f"can't use the certificates that the kubeconfig names: {reason}") from error
    return context


@contextlib.contextmanager
def _certificate_files(credential: Credential) -> Iterator[tuple[str, str]]:
    """The paths of the client's certificate and key: the library reads them from files alone."""
    if not credential.certificate_data:
        yield credential.certificate, credential.key
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = os.path.join(folder, "certificate"), os.path.join(folder, "key")
        for path, text in zip(paths, (credential.certificate_data, credential.key_data), strict=True):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as stream:
                stream.write(text)
        yield paths


def keep_alive(sock: socket.socket) -> None:
    """Let the system find out that a connection is dead: nothing may be said on it for hours."""
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def unreachable(access: Access, error: Exception, timeout: float) -> str:
    """Say why a server can't be reached, and through which proxy that was tried."""
    through = f" through the proxy {access.proxy.address}" if access.proxy else ""
    if isinstance(error, TimeoutError):
        return f"the API server at {access.address} does not answer{through}: nothing came within {timeout:.0f} s"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the API server at {access.address} can't be reached{through}: {reason.lower()}"
