"""The URL of a backend: its kind, its form without a login, and the address at which it answers.

Owns which parts of such a URL, and of the variables with a login to Azure, are confidential. It is apart from the
backend since messages, logs and checks need a URL that can be shown, and nothing else of a backend.
Must not open a connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from composeplat.diagnostics import MissingPiece, near, printable
from composeplat.system.records import record

HIDDEN = "****"
URL_VARIABLE = "PULUMI_BACKEND_URL"
_KINDS = ("file", "s3", "gs", "azblob", "postgres", "http", "https")
_OTHER_NAMES = {"postgresql": "postgres", "gcs": "gs", "azure": "azblob"}
#: Parameters of a URL that are a login.
_SECRET_PARAMETERS = re.compile(r"password|passwd|secret|token|signature|(?:^|_)sig$|(?:^|_)key$", re.IGNORECASE)
_POSTGRES_PORT, _HTTP_PORT, _HTTPS_PORT = 5432, 80, 443
_GOOGLE_DOMAIN, _AZURE_DOMAIN = "googleapis.com", "blob.core.windows.net"
#: With one of these, Pulumi's client for Azure reads its server from there.
_AZURE_CONNECTIONS = ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING")
_AZURE_LOGINS = (*_AZURE_CONNECTIONS, "AZURE_STORAGE_SAS_TOKEN")
_LOCAL = ("127.0.0.1", "localhost")
_AZURE_SECRET = re.compile(r"(?:^|[?&;=])(?:sig|AccountKey)=([^&;]+)")
_LOGIN = re.compile(r"(?:(?<=://)|^)[^/?#]*@")
#: A login whose password has a ``/``, ``?`` or ``#`` that is not quoted: what a parser takes for a port is none, or the
#: path of a database has an ``@``.
_UNQUOTED_LOGIN = re.compile(
    r"(?<=://)[^/?#@:\[]*:(?!\d*(?:[/?#]|$))[^/?#@]*[/?#].*@|(?<=^postgres://)[^/?#]*:[^/?#]*/[^?#]*@"
)
_PASSWORD_IN_TEXT = re.compile(r"(://[^\s/:@]*):[^\s/@]*@")
_MIN_SECRET_CHARS = 4
"""A shorter one is a part of other words; within a URL it is found by its place."""


def kind_of(url: str, way: str = "set PULUMI_BACKEND_URL, or log in with 'pulumi login URL'") -> str:
    """Return the kind of a backend, such as ``s3``; it is an error if Pulumi knows no such kind.

    The hint of the error ends with the way to give another one.
    """
    kind, mark, _ = url.partition("://")
    if mark and kind in _KINDS:
        return kind
    known = ", ".join(f"{name}://" for name in _KINDS)
    meant = _OTHER_NAMES.get(kind, "")
    hint = f"did you mean '{meant}'?" if meant else near(kind, _KINDS)
    raise MissingPiece(
        f"the backend '{printable(shown_url(url))}' is of an unknown kind; kinds are: {known}",
        f"{hint} {way}".strip(),
    )


def shown_url(url: str) -> str:
    """Return a URL without its password and other secrets. One that can't be parsed loses all before its last ``@``."""
    try:
        netloc = urlsplit(url).netloc
    except ValueError:
        netloc = ""
    login, _, host = netloc.rpartition("@")
    user, separator, _ = login.partition(":")
    if _UNQUOTED_LOGIN.search(url):
        shown = _UNQUOTED_LOGIN.sub(f"{HIDDEN}@", url, count=1)
    elif separator:
        # The parser leaves line ends and tabs out.
        plain = re.sub(r"[\t\r\n]", "", url)
        shown = plain.replace(f"{login}@{host}", f"{user}:{HIDDEN}@{host}", 1)
    else:
        shown = url if netloc else _LOGIN.sub(f"{HIDDEN}@", url)
    head, mark, query = shown.partition("?")
    return f"{head}{mark}{_shown_query(query)}"


def _shown_query(query: str) -> str:
    return "&".join(map(_shown_parameter, query.split("&")))


def _shown_parameter(pair: str) -> str:
    name, mark, _ = pair.partition("=")
    return f"{name}={HIDDEN}" if mark and _SECRET_PARAMETERS.search(unquote(name)) else pair


def file_url(folder: Path) -> str:
    """Return the URL of a folder; Pulumi decodes it."""
    return f"file://{folder}".replace("%", "%25").replace("#", "%23").replace("?", "%3F")


def folder_of(path: str) -> Path:
    """Return the folder that Pulumi finds by the path of a URL."""
    return Path(unquote(path.partition("#")[0]))


def has_login(url: str) -> bool:
    """Return whether a URL has a password or another secret in it."""
    return shown_url(url) != url


def secrets_of(url: str) -> frozenset[str]:
    """Return the texts that no message may have: secrets in each form in which a program prints them."""
    return _all_forms(_secret_values(url))


def secrets_of_azure(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets within the variables of a login to Azure: it sends a signature as a parameter of each URL."""
    return _all_forms(key for name in _AZURE_LOGINS for key in _AZURE_SECRET.findall(environment.get(name, "")))


def _all_forms(values: Iterable[str]) -> frozenset[str]:
    found = {form for value in values for form in (value, unquote(value), quote(unquote(value), safe=""))}
    return frozenset(value for value in found if len(value) >= _MIN_SECRET_CHARS)


def _secret_values(url: str) -> Iterator[str]:
    unquoted = _UNQUOTED_LOGIN.search(url)
    if unquoted:
        yield unquoted[0][:-1].partition(":")[2]
        url = f"{url[: unquoted.start()]}{url[unquoted.end() :]}"
    try:
        parts = urlsplit(url)
        query = parts.query
    except ValueError:
        found = _LOGIN.search(url)
        yield (found[0] if found else "")[:-1].rpartition(":")[2]
        return
    yield parts.netloc.rpartition("@")[0].partition(":")[2]
    for name, value in parse_qsl(query):
        if _SECRET_PARAMETERS.search(name):
            yield value


def redact(text: str, url: str) -> str:
    """Replace a URL by its form without secrets, and its secrets elsewhere in a text."""
    text = text.replace(url, shown_url(url)) if url else text
    # A secret may be a part of another one: the longer one goes first.
    for secret in sorted(secrets_of(url), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _PASSWORD_IN_TEXT.sub(rf"\1:{HIDDEN}@", text)


@record(kw_only=True)
class BackendAddress:
    """Where a backend listens, and how it is asked whether it answers."""

    host: str
    port: int
    is_postgres: bool = False
    has_tls: bool = False


def address_of(url: str, environment: Mapping[str, str]) -> BackendAddress | None:
    """Return the address of a backend; none for files, for Amazon's own, and where it is not known."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "postgres":
            return _postgres_address(parts, environment)
        find_server = _STORAGE_SERVERS.get(parts.scheme)
        parts = urlsplit(find_server(dict(parse_qsl(parts.query)), environment)) if find_server else parts
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return None
        has_tls = parts.scheme == "https"
        port = parts.port or (_HTTPS_PORT if has_tls else _HTTP_PORT)
    except ValueError:
        return None
    return BackendAddress(host=parts.hostname, port=port, has_tls=has_tls)


def _postgres_address(parts: SplitResult, environment: Mapping[str, str]) -> BackendAddress | None:
    """Return the address that Pulumi's client takes; none for a socket, several hosts and a service file."""
    given = dict(parse_qsl(parts.query))
    host = given.get("hostaddr") or environment.get("PGHOSTADDR") or parts.hostname
    host = host or given.get("host") or environment.get("PGHOST") or "localhost"
    port = parts.port or int(given.get("port") or environment.get("PGPORT") or _POSTGRES_PORT)
    if host.startswith("/") or "," in host or given.get("service") or environment.get("PGSERVICE"):
        return None
    return BackendAddress(host=host, port=port, is_postgres=True)


def _s3_server(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the URL of a server with the protocol of S3; empty for Amazon's own."""
    endpoint = given.get("endpoint") or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if not endpoint or "://" in endpoint:
        return endpoint or ""
    is_plain = "true" in (given.get("disableSSL", "").lower(), given.get("disable_https", "").lower())
    return f"{'http' if is_plain else 'https'}://{endpoint}"


def _google_server(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    emulator = environment.get("STORAGE_EMULATOR_HOST")
    if emulator:
        return emulator if "://" in emulator else f"http://{emulator}"
    return f"https://storage.{given.get('universe_domain') or _GOOGLE_DOMAIN}"


def _azure_server(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the URL of a storage account; empty where a connection string or a network of caches has it."""
    account = given.get("storage_account") or environment.get("AZURE_STORAGE_ACCOUNT")
    is_cached = _is_true(given.get("cdn") or environment.get("AZURE_STORAGE_IS_CDN"))
    if not account or is_cached or any(environment.get(name) for name in _AZURE_CONNECTIONS):
        return ""
    scheme = given.get("protocol") or environment.get("AZURE_STORAGE_PROTOCOL") or "https"
    domain = given.get("domain") or environment.get("AZURE_STORAGE_DOMAIN") or _AZURE_DOMAIN
    is_emulator = _is_true(given.get("localemu") or environment.get("AZURE_STORAGE_IS_LOCAL_EMULATOR"))
    return f"{scheme}://{domain}" if is_emulator or domain.startswith(_LOCAL) else f"{scheme}://{account}.{domain}"


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("1", "t", "true")


_STORAGE_SERVERS: Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], str]] = {
    "s3": _s3_server,
    "gs": _google_server,
    "azblob": _azure_server,
}
