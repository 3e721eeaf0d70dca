"""The URL of a backend: without its login in messages, of a known kind, and with an address that can be asked."""

from __future__ import annotations

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend_url import (
    BackendAddress,
    address_of,
    has_login,
    kind_of,
    redact,
    secrets_of,
    shown_url,
)

LOGIN = "postgres://me:s3cret%40x@db.example.com/state?sslmode=disable"
MINIO = "s3://b?region=us-east-1&endpoint=127.0.0.1:9000"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param(LOGIN, "postgres://me:****@db.example.com/state?sslmode=disable", id="password"),
        pytest.param("postgres://me@db/state", "postgres://me@db/state", id="user-alone"),
        pytest.param("postgres://db/x?user=me&password=abc", "postgres://db/x?user=me&password=****", id="parameter"),
        pytest.param("azblob://c?sig=abc&se=1", "azblob://c?sig=****&se=1", id="signature"),
        pytest.param("postgres://me:a/b?c@d@db/x", "postgres://me:a/b?c@d@db/x", id="not-quoted"),
        pytest.param("postgres://me:abcd@[::1/x", "postgres://****@[::1/x", id="broken"),
        pytest.param("me:abcd@db", "****@db", id="no-scheme"),
        pytest.param("file:///mnt/a?x=1", "file:///mnt/a?x=1", id="files"),
        pytest.param(MINIO, MINIO, id="bucket"),
    ],
)
def test_shown_url(url: str, shown: str) -> None:
    """A URL is shown without its password; one that can't be parsed loses the whole login."""
    assert shown_url(url) == shown
    assert has_login(url) == (url != shown)


def test_secrets_of() -> None:
    """A password is found as it is written, as it is meant, and as a program quotes it."""
    assert secrets_of(LOGIN) == {"s3cret%40x", "s3cret@x"}
    assert secrets_of("postgres://me:abc@db/x") == set()
    assert secrets_of("postgres://me:abcd@[::1/x") == {"abcd"}


def test_redact() -> None:
    """Texts of programs lose the URL and its password, in each form; a short one by its place in a URL."""
    text = f'error: open "{LOGIN}": password s3cret@x is wrong at postgres://me:ab@db/x'

    assert redact(text, LOGIN) == (
        f'error: open "{shown_url(LOGIN)}": password **** is wrong at postgres://me:****@db/x'
    )
    assert redact("nothing", "") == "nothing"


@pytest.mark.parametrize(
    "url", ["file:///a", "s3://b", "gs://b", "azblob://c", "postgres://h/d", "https://a", "http://a"]
)
def test_kinds(url: str) -> None:
    """The kinds that Pulumi knows."""
    assert kind_of(url) == url.partition(":")[0]


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("postgresql://me:abcd@h/d", "did you mean 'postgres'? "),
        ("azblobb://h", "did you mean 'azblob'? "),
        ("bucket", ""),
    ],
)
def test_unknown_kinds(url: str, hint: str) -> None:
    """Any other kind is an error with a suggestion, and without the login."""
    with pytest.raises(MissingPiece) as caught:
        kind_of(url)

    assert str(caught.value).startswith(f"the backend '{shown_url(url)}' is of an unknown kind; kinds are: file://, ")
    assert caught.value.hint == f"{hint}set PULUMI_BACKEND_URL, or log in with 'pulumi login URL'"


@pytest.mark.parametrize(
    ("url", "environment", "address"),
    [
        ("postgres://me@db/x", {}, BackendAddress(host="db", port=5432, is_postgres=True)),
        ("postgres://me@db:5/x", {}, BackendAddress(host="db", port=5, is_postgres=True)),
        ("postgres:///x?host=db&port=5", {}, BackendAddress(host="db", port=5, is_postgres=True)),
        ("postgres://me@db:5/x?host=other&port=6", {}, BackendAddress(host="db", port=5, is_postgres=True)),
        ("postgres:///x", {"PGHOST": "db", "PGPORT": "5"}, BackendAddress(host="db", port=5, is_postgres=True)),
        ("postgres://db/x", {"PGHOST": "other", "PGPORT": "5"}, BackendAddress(host="db", port=5, is_postgres=True)),
        ("postgres://db/x?hostaddr=::1", {}, BackendAddress(host="::1", port=5432, is_postgres=True)),
        ("postgres:///x", {}, BackendAddress(host="localhost", port=5432, is_postgres=True)),
        ("postgres:///x?host=/run/postgresql", {}, None),
        ("postgres://a,b/x", {}, None),
        ("postgres:///x?port=none", {}, None),
        ("postgres:///x", {"PGSERVICE": "team"}, None),
        (MINIO, {}, BackendAddress(host="127.0.0.1", port=9000, has_tls=True)),
        (f"{MINIO}&disableSSL=true", {}, BackendAddress(host="127.0.0.1", port=9000)),
        ("s3://b?endpoint=http://h", {}, BackendAddress(host="h", port=80)),
        ("s3://b", {"AWS_ENDPOINT_URL": "https://h"}, BackendAddress(host="h", port=443, has_tls=True)),
        ("https://pulumi.example.com", {}, BackendAddress(host="pulumi.example.com", port=443, has_tls=True)),
        ("s3://b", {}, None),
        ("gs://b", {}, None),
        ("file:///a", {}, None),
        ("postgres://h:port/x", {}, None),
    ],
)
def test_address_of(url: str, environment: dict[str, str], address: BackendAddress | None) -> None:
    """A server has an address; folders and the clouds' own services have none."""
    assert address_of(url, environment) == address
