"""Opens the URLs of a registry: over HTTP and HTTPS only, and no longer than a deadline.

Owns which protocols and proxies are used, and that the deadline holds for each byte that is read.
Must not know what is read. It is apart because the timeout of a connection begins again with each byte that it
receives, so that a registry which sends one now and then would hold a command for ever.
"""

from __future__ import annotations

import http.client
import io
import socket
import urllib.request
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from composeplat.system.deadline import Deadline
from composeplat.system.proxy_handler import ThroughProxies


def deadline_opener(deadline: Deadline, environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """Return an opener of HTTP and HTTPS only, as a registry may redirect to any URL; through the proxy of each URL.

    The library's own proxies know no networks and patterns in ``NO_PROXY``.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        ThroughProxies(environment),
        _Handler(deadline),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Handler(urllib.request.AbstractHTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connect, http.client.HTTPConnection, self._deadline), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connect, http.client.HTTPSConnection, self._deadline), req)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


def _connect(kind: type[http.client.HTTPConnection], deadline: Deadline, host: str, /, **options: Any) -> Any:
    """Return a connection whose request and responses have the time that is left."""
    left_s = deadline.remaining_s
    if not left_s:
        raise TimeoutError
    connection = kind(host, **options | {"timeout": left_s})
    connection.response_class = cast("type[http.client.HTTPResponse]", partial(_Response, deadline))
    return connection


class _Response(http.client.HTTPResponse):
    """A response that is read until the deadline, its headers too."""

    def __init__(self, deadline: Deadline, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_DeadlineReader(deadline, sock, self.fp.detach()))


class _DeadlineReader(io.RawIOBase):
    def __init__(self, deadline: Deadline, sock: socket.socket, received: io.RawIOBase) -> None:
        self._deadline = deadline
        self._socket = sock
        self._received = received

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._deadline.remaining_s
        if not left_s:
            raise TimeoutError
        self._socket.settimeout(left_s)
        return cast("int | None", self._received.readinto(buffer))

    def close(self) -> None:
        self._received.close()
        super().close()
