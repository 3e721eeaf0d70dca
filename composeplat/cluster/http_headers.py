"""The headers of requests to an API server, and the pauses before one that is busy is asked again.

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
#: For how long a request to a busy server is sent again, and one to a server whose storage has no leader.
_BUSY_TIMEOUT_S, _NO_LEADER_TIMEOUT_S = 30.0, 10.0
_NO_LEADER_PAUSE_S = 1.0
#: For a read that a busy server, or a proxy in front of it, refuses without a time to come back.
_READ_PAUSE_S, _READ_TIMEOUT_S = 1.0, 5.0
#: Paths whose status is that of a program behind the API server, which may be down for good.
_OF_OTHERS = ("/proxy/", "/apis/metrics.k8s.io/")
_BUSY = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)


def is_from_api_server(path: str, body: bytes) -> bool:
    """Return whether a refusal is the API server's own, and not proxied from a service."""
    return "/proxy/" not in path or _STATUS.search(body) is not None or body.startswith(_TOO_MANY)


def request_headers(credential: Credential, kind: str = "", accept: str = "application/json", host: str = "") -> Any:
    """Return headers, of which several may have one name: a user can act with several groups."""
    headers = http.client.HTTPMessage()
    own = ("Host", host), ("Accept", accept), ("Authorization", credential.authorization), ("Content-Type", kind)
    for name, value in (*own, *credential.impersonation):
        if value:
            headers[name] = value
    return headers


def pause_after(
    method: str, path: str, answer: http.client.HTTPResponse, body: bytes, *, shortest_s: float, waited_s: float
) -> float:
    """Return the pause before a request to a busy server is sent again, in seconds; 0 if it is not.

    A server whose storage elects a leader asks for no pause, and may have done what it answers so.
    """
    if answer.status >= http.client.INTERNAL_SERVER_ERROR and method != "POST" and _NO_LEADER.search(body):
        pause_s, limit_s = _NO_LEADER_PAUSE_S, _NO_LEADER_TIMEOUT_S
    elif requested_s := _requested_pause(answer, shortest_s):
        pause_s, limit_s = requested_s, _BUSY_TIMEOUT_S
    elif method == "GET" and answer.status in _BUSY and not any(part in path for part in _OF_OTHERS):
        pause_s, limit_s = _READ_PAUSE_S, _READ_TIMEOUT_S
    else:
        return 0.0
    return pause_s if pause_s < limit_s - waited_s else 0.0


def _requested_pause(answer: http.client.HTTPResponse, shortest_s: float) -> float:
    wanted = answer.headers.get("Retry-After", "")
    if answer.status not in _BUSY or not wanted.isdigit():
        return 0.0
    return min(max(float(wanted), shortest_s), _MAX_PAUSE_S)
