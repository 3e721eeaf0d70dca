"""Connections to an API server: TLS, the client's certificate, and the tunnel through a proxy.

Owns how a connection is opened, and the message if that fails.
Must not know the requests that use it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import tempfile
from collections.abc import Callable, Hashable, Iterator

from composeplat.cluster.access import Access
from composeplat.cluster.credentials import Credential
from composeplat.diagnostics import MissingPiece, printable
from composeplat.system.records import record

#: OpenSSL's names of an answer that is no TLS.
_WITHOUT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
_AUTHORITY_FIX = "check 'certificate-authority-data' in the kubeconfig, or get a new one"
_LOGIN_FIX = "they may have expired: log in to the cluster again, or get a new kubeconfig"
_NAME_FIX = "set 'tls-server-name' in the kubeconfig to a name in the certificate, or 'server' to such an address"
#: OpenSSL's number of an error in a certificate -> the fix.
_CERTIFICATE_FIXES = {
    9: "check the clock of this machine",
    10: "renew the certificate of the API server, or check the clock of this machine",
    62: _NAME_FIX,
    64: _NAME_FIX,
}

OnOpen = Callable[[socket.socket], None] | None
"""Gets the socket of a response without an end, once that has begun."""
OnSilence = Callable[[], None] | None
"""Called where nothing has come over a connection for longer than usual."""


class Connector:
    """Opens connections to one server; certificates are read again when the client's has changed."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._context: ssl.SSLContext | None = None
        self._identity: Hashable = None

    def connect(self, credential: Credential, *, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that opens on first use."""
        access, proxy = self.access, self.access.proxy
        host, port = (proxy.host, proxy.port) if proxy else (access.host, access.port)
        connection: http.client.HTTPConnection
        if access.plain:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        else:
            name = access.server_name or access.host
            connection = _TlsConnection(host, port, name, self._tls(credential), timeout)
        if proxy:
            headers = {"Host": access.netloc}
            if proxy.authorization:
                headers["Proxy-Authorization"] = proxy.authorization
            # The library adds brackets since Python 3.13 alone, which removes these.
            host = f"[{access.host}]" if ":" in access.host else access.host
            connection.set_tunnel(host, access.port, headers)
        return connection

    def _tls(self, credential: Credential) -> ssl.SSLContext:
        if self._context is None or self._identity != credential.identity:
            try:
                self._context = _make_tls(self.access, credential)
            except MissingPiece:
                # Certificate and key are two files: one may be renewed already, and the other not yet.
                if self._context is None:
                    raise
            else:
                self._identity = credential.identity
        return self._context


class _TlsConnection(http.client.HTTPSConnection):
    """A connection to a server that may be behind a proxy, with a certificate for another name than its address."""

    def __init__(self, host: str, port: int, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _make_tls(access: Access, credential: Credential) -> ssl.SSLContext:
    try:
        # As in kubectl, data goes before a file, which need not exist then.
        file = None if access.authority_data else access.authority or None
        _check_readable(file, credential.certificate, credential.key)
        context = ssl.create_default_context(cafile=file, cadata=access.authority_data or None)
        # Python 3.13 refuses certificates without RFC 5280's identifiers, which API servers of some providers have;
        # earlier versions refuse an authority that another one signed. Kubernetes' clients accept both.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with _certificate_files(credential) as (certificate, key):
            if certificate:
                context.load_cert_chain(certificate, key or None, _refuse_passphrase)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"can't use the certificates that the kubeconfig names: {reason}"
        raise MissingPiece(message, "get a new kubeconfig, or check the certificates and the key in it") from error
    return context


def _refuse_passphrase() -> str:
    """Refuse an encrypted key, as kubectl does: the library would read its passphrase from standard input."""
    message = "the client's key is encrypted"
    raise ValueError(message)


def _check_readable(*paths: str | None) -> None:
    """Raise an error that names the file, as the library's does not."""
    for path in filter(None, paths):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"can't read '{printable(path)}', which the kubeconfig names: {reason}"
            raise MissingPiece(message, "copy the file there, or correct its path in the kubeconfig") from error


@contextlib.contextmanager
def _certificate_files(credential: Credential) -> Iterator[tuple[str, str]]:
    """Yield the paths of the client's certificate and key: the library reads them from files only."""
    given = (credential.certificate, credential.certificate_data), (credential.key, credential.key_data)
    with contextlib.ExitStack() as stack:
        certificate, key = (stack.enter_context(_placed_data(text)) if text else path for path, text in given)
        yield certificate, key


@contextlib.contextmanager
def _placed_data(text: str) -> Iterator[str]:
    """Yield the path of a private file with a text."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        yield stream.name


def end_connection(sock: socket.socket) -> None:
    """End a connection that another thread reads from: not by the TLS socket's own method, which would write to it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


@record(kw_only=True)
class StreamLimits:
    """How long a response without an end may be silent, and in which pieces its lines come."""

    max_silence_s: float | None = None
    on_silence: OnSilence = None
    """Called once it was silent for that long."""
    max_bytes: int = -1
    """About the size of the pieces of a longer line; without a limit, a line is one piece."""


def follow_lines(sock: socket.socket, answer: http.client.HTTPResponse, limits: StreamLimits) -> Iterator[bytes]:
    """Yield the lines of a response without an end, until its connection was silent for as long as it may be."""
    sock.settimeout(limits.max_silence_s)
    _keep_alive(sock)
    while True:
        try:
            line = answer.readline(limits.max_bytes)
        except TimeoutError as error:
            if error.errno is not None:  # the system has detected a dead connection
                raise
            if limits.on_silence is not None:
                limits.on_silence()
            return
        if not line:
            return
        yield line


def _keep_alive(sock: socket.socket) -> None:
    """Let the system detect a dead connection: it may be silent for hours."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def why_refused(access: Access) -> tuple[str, str]:
    """Return the message for credentials that a server refuses, and the fix."""
    who = f"context '{access.context}'" if access.context else "the kubeconfig"
    message = f"the API server at {access.address} does not accept the credentials of {who}"
    return message, "credentials are sent to an https:// server only" if access.plain else _LOGIN_FIX


def why_unreachable(access: Access, error: Exception, timeout: float) -> tuple[str, str]:
    """Return the message for a server that can't be reached, with the proxy if there is one, and the fix if known."""
    return _describe(access, error, timeout), _fix(error)


def _describe(access: Access, error: Exception, timeout: float) -> str:
    through = f" through the proxy {access.proxy.address}" if access.proxy else ""
    if isinstance(error, TimeoutError):
        return f"the API server at {access.address} does not answer{through}: no data within {timeout:.0f} s"
    if isinstance(error, UnicodeError | http.client.InvalidURL):
        return f"the API server at {access.address} can't be reached{through}: the host name is invalid"
    return f"the API server at {access.address} can't be reached{through}: {_reason(error)}"


def _reason(error: Exception) -> str:
    """Return the reason of an error, without the names and places of a library."""
    match error:
        case ssl.SSLCertVerificationError():
            found = error.verify_message.rpartition("mismatch, ")[2].rstrip(".")
            return f"its certificate is not accepted: {found}"
        case ssl.SSLError(reason=reason) if reason in _WITHOUT_TLS:
            return "it does not answer with TLS"
        case ssl.SSLError(reason=str(reason)):
            return f"TLS failed: {reason.replace('_', ' ').lower()}"
        case http.client.IncompleteRead():
            return "the connection ended in the middle of a response"
        case http.client.RemoteDisconnected():
            return "the connection ended without a response"
        case http.client.HTTPException():
            return "it does not answer with HTTP"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(reason).lower()


def _fix(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError(verify_code=code):
            return _CERTIFICATE_FIXES.get(code, _AUTHORITY_FIX)
        case ssl.SSLError(reason=reason) if reason in _WITHOUT_TLS:
            return "check 'server' in the kubeconfig: that of a server without TLS begins with http://"
    return _proxy_hint(error)


def _proxy_hint(error: Exception) -> str:
    """Return the fix if a proxy requires a login; the library gives its response as text only."""
    wants_login = f"{http.client.PROXY_AUTHENTICATION_REQUIRED:d}" in str(error) and "Tunnel" in str(error)
    return "put user and password into the proxy's URL: http://user:password@host:port" if wants_login else ""
