"""The headers of requests to an API server, and the pauses that its responses ask for.

Must not open a connection, nor decide what is done: :mod:`~composeplat.cluster.api` does.
"""

from __future__ import annotations

import http.client
import re
from typing import Any

from composeplat.cluster.credentials import Credential

_MAX_PAUSE_S = 10.0
_STATUS = re.compile(rb'"kind":\s*"Status"')
#: The answer of an API server that has not looked at the request.
_TOO_MANY = b"Too many requests"
_NO_LEADER = re.compile(rb"etcdserver: (?:leader changed|no leader|request timed out)")
_NO_LEADER_PAUSE_S = 1.0
_BUSY = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)


def is_from_api_server(path: str, body: bytes) -> bool:
    """Return whether a refusal is the API server's own, and not proxied from a service."""
    return "/proxy/" not in path or _STATUS.search(body) is not None or body.startswith(_TOO_MANY)


def request_headers(credential: Credential, kind: str = "", accept: str = "application/json") -> Any:
    """Return headers, of which several may have one name: a user can act with several groups."""
    headers = http.client.HTTPMessage()
    own = ("Accept", accept), ("Authorization", credential.authorization), ("Content-Type", kind)
    for name, value in (*own, *credential.impersonation):
        if value:
            headers[name] = value
    return headers


def requested_pause(method: str, answer: http.client.HTTPResponse, body: bytes, shortest_s: float) -> float:
    """Return the pause that a busy server asks for, in seconds; 0 without one.

    A server whose storage elects a leader asks for none, and may have done what it answers so.
    """
    if answer.status >= http.client.INTERNAL_SERVER_ERROR and method != "POST" and _NO_LEADER.search(body):
        return _NO_LEADER_PAUSE_S
    wanted = answer.headers.get("Retry-After", "")
    if answer.status not in _BUSY or not wanted.isdigit():
        return 0.0
    return min(max(float(wanted), shortest_s), _MAX_PAUSE_S)
