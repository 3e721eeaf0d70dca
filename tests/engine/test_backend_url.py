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
    secrets_of_azure,
    shown_url,
)

LOGIN = "postgres://me:s3cret%40x@db.example.com/state?sslmode=disable"
ACCOUNT = {"AZURE_STORAGE_ACCOUNT": "team"}
MINIO = "s3://b?region=us-east-1&endpoint=127.0.0.1:9000"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param(LOGIN, "postgres://me:****@db.example.com/state?sslmode=disable", id="password"),
        pytest.param("postgres://me@db/state", "postgres://me@db/state", id="user-alone"),
        pytest.param("postgres://db/x?user=me&password=abc", "postgres://db/x?user=me&password=****", id="parameter"),
        pytest.param("azblob://c?sig=abc&se=1", "azblob://c?sig=****&se=1", id="signature"),
        pytest.param("postgres://db/x?user=me@db&password=a#b", "postgres://db/x?user=me@db&password=****", id="sign"),
        pytest.param("postgres:///x?password=abc&user=me", "postgres:///x?password=****&user=me", id="socket"),
        pytest.param("postgres://me:a/b?c@d@db/x?sslmode=a", "postgres://****@db/x?sslmode=a", id="not-quoted"),
        pytest.param("postgres://me:1/b@db:5432/x", "postgres://****@db:5432/x", id="digit-first"),
        pytest.param("postgres://me:/b@db/x", "postgres://****@db/x", id="slash-first"),
        pytest.param("postgres://me:a@b/c@db/x", "postgres://****@db/x", id="not-quoted-at"),
        pytest.param("s3://key:a#b@bucket?region=x", "s3://****@bucket?region=x", id="not-quoted-number-sign"),
        pytest.param("postgres://[::1]:5432/x?user=a@b", "postgres://[::1]:5432/x?user=a@b", id="no-password"),
        pytest.param("https://api:8443/a@b", "https://api:8443/a@b", id="at-in-path"),
        pytest.param("file:///mnt/a:b/c@d", "file:///mnt/a:b/c@d", id="folder-with-signs"),
        pytest.param("postgres://me:abcd@[::1/x", "postgres://****@[::1/x", id="broken"),
        pytest.param("me:abcd@db", "****@db", id="no-scheme"),
        pytest.param("postgres://me:ab\nc@db/x", "postgres://me:****@db/x", id="line-end"),
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
    assert secrets_of("postgres://me:ab/cd@db/x?password=efgh") == {"ab/cd", "ab%2Fcd", "efgh"}


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
        ("gs://b", {}, BackendAddress(host="storage.googleapis.com", port=443, has_tls=True)),
        ("gs://b?universe_domain=a.example", {}, BackendAddress(host="storage.a.example", port=443, has_tls=True)),
        ("gs://b", {"STORAGE_EMULATOR_HOST": "h:5"}, BackendAddress(host="h", port=5)),
        ("gs://b", {"STORAGE_EMULATOR_HOST": "https://h"}, BackendAddress(host="h", port=443, has_tls=True)),
        ("azblob://c", {}, None),
        ("azblob://c", ACCOUNT, BackendAddress(host="team.blob.core.windows.net", port=443, has_tls=True)),
        (
            "azblob://c?storage_account=other&domain=a.example&protocol=http", ACCOUNT,
            BackendAddress(host="other.a.example", port=80),
        ),
        ("azblob://c?domain=localhost:5&protocol=http", ACCOUNT, BackendAddress(host="localhost", port=5)),
        ("azblob://c?domain=h:5&localemu=true", ACCOUNT, BackendAddress(host="h", port=5, has_tls=True)),
        ("azblob://c?cdn=true", ACCOUNT, None),
        (
            "azblob://c?cdn=false&localemu=0",
            ACCOUNT,
            BackendAddress(host="team.blob.core.windows.net", port=443, has_tls=True),
        ),
        ("azblob://c", {**ACCOUNT, "AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://h"}, None),
        ("file:///a", {}, None),
        ("postgres://h:port/x", {}, None),
    ],
)  # fmt: skip
def test_address_of(url: str, environment: dict[str, str], address: BackendAddress | None) -> None:
    """A server has an address, so have Google's and Azure's; folders and Amazon's own have none."""
    assert address_of(url, environment) == address


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AZURE_STORAGE_SAS_TOKEN", "sv=2025-05-05&sig=abcd%2Befgh"),
        ("AZURE_STORAGE_SAS_TOKEN", "?sig=abcd+efgh"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=team;AccountKey=abcd+efgh;EndpointSuffix=core.windows.net"),
        ("AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=https://h/;SharedAccessSignature=sig=abcd%2Befgh&sv=1"),
        ("AZURE_STORAGEBLOB_CONNECTIONSTRING", "SharedAccessSignature=sv=1&sig=abcd%2Befgh"),
    ],
)
def test_secrets_of_azure(variable: str, value: str) -> None:
    """A signature and a key within a variable are secrets, as they are and as a URL has them."""
    assert secrets_of_azure({variable: value, "OTHER": "sig=other"}) == {"abcd+efgh", "abcd%2Befgh"}
