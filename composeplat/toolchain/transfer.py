"""A file over HTTP: continued where it was cut, through the proxy of the environment.

Owns the requests: proxies, redirects, ranges, retries, and the reason of a failure as the end of a sentence.
Must not know what is in a file, nor its checksum: the caller decides whether the file may be used.
It is apart because a release of 100 MB is cut on many lines before it is whole.

The part that has come is kept with a note of its version, so that another run continues it. A server without ranges,
or with another version by now, sends the file from its start.
"""

from __future__ import annotations

import http.client
import re
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from composeplat.diagnostics import MissingPiece
from composeplat.system.proxies import find_proxy_for
from composeplat.system.proxy_handler import ThroughProxies

Show = Callable[[int, int | None], None]
"""Called with the bytes that have come, and with the size of the file if the server has said it."""

_SILENCE_TIMEOUT_S = 60.0
_RETRY_PAUSE_S = 1.0
#: How often a transfer may be cut without a further byte.
_MAX_FAILURES = 3
_MAX_BYTES = 1024**3
_CHUNK_BYTES = 1 << 18
BROKEN = (OSError, EOFError, zlib.error, http.client.HTTPException, tarfile.TarError)


class BadDownload(Exception):
    """A release can't be used; the text continues a sentence that names it."""


class _Cut(Exception):
    """An answer ended early: the part that has come is kept."""


class RefusedRedirect(urllib.error.URLError):
    """A server sends the request on to another host without TLS."""


def fetch(url: str, target: Path, environment: Mapping[str, str], show: Show) -> bool:
    """Download into a file, or continue it; return whether the file now has parts of several answers."""
    transfer = _Transfer(url, target, environment, show)
    transfer.run()
    return transfer.is_resumed


def drop(target: Path) -> None:
    """Remove the part of a file that has come, and the note of its version."""
    for path in (target, _version_path(target)):
        path.unlink(missing_ok=True)


def _version_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.version")


class _Transfer:
    def __init__(self, url: str, target: Path, environment: Mapping[str, str], show: Show) -> None:
        self._url, self._target, self._environment, self._show = url, target, environment, show
        self._is_answered = False
        self.is_resumed = False

    def run(self) -> None:
        failures = 0
        while True:
            before = self._size()
            try:
                return self._try()
            except _Cut as cut:
                failures = 1 if self._size() > before else failures + 1
                if failures == _MAX_FAILURES:
                    raise BadDownload(f"can't be downloaded from {self._url}: {cut}") from cut
            time.sleep(_RETRY_PAUSE_S)

    def _try(self) -> None:
        with self._open() as answer:
            self._is_answered = True
            self._receive(answer)

    def _size(self) -> int:
        return self._target.stat().st_size if self._target.exists() else 0

    def _open(self) -> Any:
        request = urllib.request.Request(self._url, headers=self._range())
        try:
            return opener(self._environment).open(request, timeout=_SILENCE_TIMEOUT_S)
        except (*BROKEN, MissingPiece, ValueError) as error:  # of an address that it redirects to
            status = getattr(error, "code", 0)
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                drop(self._target)
            elif status or not self._is_answered:
                reason = explain(error, self._url, self._environment)
                raise BadDownload(f"can't be downloaded from {self._url}: {reason}") from error
            raise _Cut(str(error)) from error

    def _range(self) -> dict[str, str]:
        """The headers that ask for the rest of a file, if it is still the file that its part is of."""
        if not self._size():
            return {}
        version = _version_path(self._target)
        condition = {"If-Range": version.read_text(encoding="utf-8")} if version.exists() else {}
        return {"Range": f"bytes={self._size()}-", **condition}

    def _receive(self, answer: Any) -> None:
        size = self._begin(answer)
        done = self._size()
        self._show(done, size)
        with self._target.open("ab") as stream:
            while chunk := _read(answer):
                done += len(chunk)
                if done > _MAX_BYTES:
                    raise BadDownload(f"is larger than {_MAX_BYTES // 1024**2} MiB: {self._url}")
                stream.write(chunk)
                self._show(done, size)
        if size is not None and done < size:
            raise _Cut(f"the connection was closed after {done} of {size} bytes")

    def _begin(self, answer: Any) -> int | None:
        """Prepare the file for an answer, and return the size of the whole: what is not its rest is its start."""
        if answer.status == http.client.PARTIAL_CONTENT:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
            if not found or int(found[1]) != self._size():
                drop(self._target)
                raise _Cut("the server sent another part than it was asked for")
            self.is_resumed = True
            return int(found[2]) if found[2] != "*" else None
        drop(self._target)
        self.is_resumed = False
        if version := _version(answer.headers):
            _version_path(self._target).write_text(version, encoding="utf-8")
        length = answer.headers.get("Content-Length", "")
        return int(length) if length.isdecimal() else None


def _version(headers: Mapping[str, str]) -> str:
    """What a server calls this version of a file; an ETag that it calls weak is none."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _read(answer: Any) -> bytes:
    try:
        chunk: bytes = answer.read1(_CHUNK_BYTES)
    except BROKEN as error:
        raise _Cut(str(error)) from error
    return chunk


# proxies and redirects ------------------------------------------------------------------------------------------------


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another host by HTTPS alone, and never from HTTPS to plain HTTP."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        old, new = (urllib.parse.urlsplit(url) for url in (req.full_url, newurl))
        if new.scheme != "https" and (old.scheme, old.netloc) != (new.scheme, new.netloc):
            fp.close()
            raise RefusedRedirect(f"it redirects to {new.scheme}://{new.netloc}, which is not HTTPS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def opener(environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """What opens addresses. The library's own proxies are those of the process's environment, and are left out."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), ThroughProxies(environment), _Redirects())


def explain(error: Exception, url: str, environment: Mapping[str, str]) -> str:
    """Return why a request failed; of a proxy's login what to do."""
    if isinstance(error, MissingPiece):
        return f"{error}: {error.hint}"
    if isinstance(error, RefusedRedirect):
        return str(error.reason)
    proxy = find_proxy_for(environment, url)
    if proxy is None or not is_login_wanted(error):
        return str(error)
    wants = "refuses the login of its URL" if proxy.authorization else "needs a login"
    return f"the proxy {proxy.address} {wants}: put user and password into its URL, http://user:password@host:port"


def is_login_wanted(error: Exception) -> bool:
    """Return whether a proxy answered 407; of a tunnel the library has the answer only as text."""
    wanted = http.client.PROXY_AUTHENTICATION_REQUIRED
    return getattr(error, "code", 0) == wanted or f"Tunnel connection failed: {wanted:d}" in str(error)
