"""Which requests the server of the page answers: every rule, with the request of somebody who tries to break it."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from composeplat.ui.access import Gate, Head, Refusal, make_token

GATE = Gate(8222, "the-code")
OWN = {"host": "127.0.0.1:8222", "authorization": "Bearer the-code"}


def status_of(method: str, path: str, **headers: str) -> HTTPStatus | None:
    """Send a request of the page itself, with some headers changed; an empty one is left out."""
    sent = {name: value for name, value in {**OWN, **_names(headers)}.items() if value}
    refusal = GATE.check(Head(method=method, path=path, headers=sent))
    return refusal.status if refusal else None


def _names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="the-page"),
        pytest.param({"host": "localhost:8222"}, id="by-its-other-name"),
        pytest.param({"origin": "http://127.0.0.1:8222", "sec_fetch_site": "same-origin"}, id="with-its-origin"),
    ],
)
def test_answered(headers: dict[str, str]) -> None:
    assert status_of("GET", "/api/page", **headers) is None


def test_the_port_of_http() -> None:
    """A browser leaves it out of the name and the origin; another port is never left out."""
    sent = {**OWN, "host": "127.0.0.1", "origin": "http://127.0.0.1"}
    head = Head(method="GET", path="/api/page", headers=sent)
    assert Gate(80, "the-code").check(head) is None
    assert GATE.check(head) == Refusal(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name: see the terminal")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"authorization": ""}, HTTPStatus.UNAUTHORIZED, id="no-code"),
        pytest.param({"authorization": "Bearer the-cod"}, HTTPStatus.UNAUTHORIZED, id="a-part-of-the-code"),
        pytest.param({"authorization": "Bearer "}, HTTPStatus.UNAUTHORIZED, id="an-empty-code"),
        pytest.param({"authorization": "Bearer thé-code"}, HTTPStatus.UNAUTHORIZED, id="not-ascii"),
        pytest.param({"host": "rebound.example.com:8222"}, HTTPStatus.MISDIRECTED_REQUEST, id="another-name"),
        pytest.param({"host": "127.0.0.1:8223"}, HTTPStatus.MISDIRECTED_REQUEST, id="another-port"),
        pytest.param({"host": ""}, HTTPStatus.MISDIRECTED_REQUEST, id="no-name"),
        pytest.param({"origin": "http://evil.example.com"}, HTTPStatus.FORBIDDEN, id="another-site"),
        pytest.param({"origin": "http://127.0.0.1:9999"}, HTTPStatus.FORBIDDEN, id="another-server-of-this-host"),
        pytest.param({"origin": "null"}, HTTPStatus.FORBIDDEN, id="a-file-or-a-sandbox"),
        pytest.param({"origin": "https://127.0.0.1:8222"}, HTTPStatus.FORBIDDEN, id="another-scheme"),
        pytest.param({"sec_fetch_site": "cross-site"}, HTTPStatus.FORBIDDEN, id="sent-by-another-site"),
        pytest.param({"sec_fetch_site": "same-site"}, HTTPStatus.FORBIDDEN, id="sent-by-another-port"),
    ],
)
@pytest.mark.parametrize("path", ["/api/page", "/api/environments/team/shop/stream"])
def test_refused(headers: dict[str, str], status: HTTPStatus, path: str) -> None:
    assert status_of("GET", path, **headers) == status
    assert status_of("POST", path, content_type="application/json", **headers) == status


def test_changes_need_json() -> None:
    """A form of another site can send neither this content type nor the code; each alone is refused."""
    action = "/api/environments/team/shop/actions/sleep"
    assert status_of("POST", action, content_type="application/json") is None
    assert status_of("POST", action, content_type="text/plain") == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    assert status_of("POST", action) == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


@pytest.mark.parametrize("path", ["/", "/page.css", "/js/page.js"])
def test_files(path: str) -> None:
    """The files of the page have no secret: nobody needs a code for them, and nobody can change them."""
    assert status_of("GET", path, authorization="") is None
    assert status_of("PUT", path) == HTTPStatus.METHOD_NOT_ALLOWED
    assert status_of("GET", path, host="rebound.example.com") == HTTPStatus.MISDIRECTED_REQUEST


def test_sign_in_is_posted() -> None:
    """The form is on this machine's disk, whose pages have no origin; its code is checked with its content."""
    assert status_of("POST", "/sign-in", authorization="", origin="null", sec_fetch_site="cross-site") is None
    assert status_of("GET", "/sign-in", authorization="") == HTTPStatus.METHOD_NOT_ALLOWED


def test_codes_differ() -> None:
    codes = {make_token() for _ in range(100)}
    assert len(codes) == 100
    assert min(map(len, codes)) >= 26
