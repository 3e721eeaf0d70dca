"""Who may use the server: which requests it refuses, and the headers of its responses.

Owns the token, and the rules against pages of other sites. Pure: the head of a request comes in, a refusal goes out.

Every user of the machine can connect to a port of the loopback interface, and so can every page that the user has open
in the browser. So each request for data has the token in a header, which neither other users know nor another site can
send: a header makes the browser ask the server first, and this one allows no other origin. The token is in no address,
so it is neither in the browser's history nor in the list of processes, and in no cookie, which a browser would send to
every port of this host.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http import HTTPStatus

from composeplat.system.records import record

_TOKEN_BYTES = 20
#: An address of HTTP leaves it out.
_HTTP_PORT = 80
#: A form on a page of this machine's disk sends the token to this path; every other path gets it in a header.
SIGN_IN_PATH = "/sign-in"
API_PREFIX = "/api/"
_READING = ("GET", "HEAD")
_SCHEME = "Bearer "

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
RESPONSE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


@record(kw_only=True)
class Head:
    """The parts of a request that decide whether it is answered."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By their names in lower case."""


@record
class Refusal:
    status: HTTPStatus
    message: str


@record
class Gate:
    """The rules of one server, which listens at a port of the loopback interface."""

    port: int
    token: str

    @property
    def hosts(self) -> tuple[str, ...]:
        names = ("127.0.0.1", "localhost")
        return (*(f"{name}:{self.port}" for name in names), *(names if self.port == _HTTP_PORT else ()))

    def check(self, head: Head) -> Refusal | None:
        """Return why a request is not answered; None if it is."""
        # Another name for this address is one that a hostile site has made.
        if head.headers.get("host", "") not in self.hosts:
            return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name: see the terminal")
        if head.path == SIGN_IN_PATH:
            return None if head.method == "POST" else Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
        if not head.path.startswith(API_PREFIX):
            return None if head.method in _READING else Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
        return self._check_api(head)

    def _check_api(self, head: Head) -> Refusal | None:
        origin, site = head.headers.get("origin"), head.headers.get("sec-fetch-site")
        if (origin is not None and not self._is_own(origin)) or site not in (None, "same-origin"):
            return Refusal(HTTPStatus.FORBIDDEN, "only the page of this server may ask")
        if not self.admits(head.headers.get("authorization", "")):
            return Refusal(HTTPStatus.UNAUTHORIZED, "the code is missing or wrong: the terminal shows it")
        if head.method not in _READING and head.headers.get("content-type") != "application/json":
            return Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only application/json")
        return None

    def admits(self, authorization: str) -> bool:
        """Check the header of a request for data."""
        return self.knows(authorization.removeprefix(_SCHEME))

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def _is_own(self, origin: str) -> bool:
        return origin in tuple(f"http://{host}" for host in self.hosts)
