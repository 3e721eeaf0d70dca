"""A client of the Kubernetes API: get, list, apply, patch, delete, watch.

Owns which requests are retried: over a new connection, with a renewed credential, or after a pause, where the server is
busy; and the one exception for every failure.
Must not know any kind of object: paths and manifests come in, plain values go out.
It uses the standard library only: the official client takes half a second and 40 MB to import.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import time
from collections.abc import Generator, Hashable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any, Self

from composeplat.cluster.access import Access
from composeplat.cluster.connection import (
    Connector,
    OnOpen,
    OnSilence,
    StreamLimits,
    follow_lines,
    why_refused,
    why_unreachable,
)
from composeplat.cluster.credentials import Credential
from composeplat.cluster.error_text import body_text, shorten
from composeplat.cluster.http_headers import is_from_api_server, pause_after, request_headers
from composeplat.cluster.kinds import object_path
from composeplat.cluster.log_lines import MAX_PART_BYTES, LogPart, join_parts
from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece, printable

logger = logging.getLogger(__name__)

#: The owner of our fields, in a server-side apply.
FIELD_MANAGER = "composeplat"

_TIMEOUT_S = 15.0
#: A watch has a bookmark about once a minute, unless something on the way has stopped to forward it.
_MAX_WATCH_SILENCE_S = 100.0
#: For a request that may be repeated, over connections that break.
_MAX_ATTEMPTS = 5
_FIRST_PAUSE_S = 0.1
#: For a response that is not an API server's.
_MAX_QUOTED_CHARS = 60
#: The last one is that of a host name that can't be one, such as "a..b".
_FAILURES = (OSError, http.client.HTTPException, UnicodeError)
#: What a request over a connection that the server has closed meanwhile ends with.
_CLOSED = (ConnectionError, ssl.SSLEOFError)


class ApiError(ComposeplatError):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        if status < http.client.BAD_REQUEST or status == http.client.UNAUTHORIZED:
            self.exit_code = Exit.MISSING


class Api:
    """A client with one connection, opened on first use and again after a failure; not to be shared between threads.

    Use it in a ``with`` block, or close it.
    """

    def __init__(self, access: Access, *, timeout_s: float = 0.0) -> None:
        self.access = access
        self._timeout_s = timeout_s or _TIMEOUT_S
        self._connector = Connector(access)
        self._connection: http.client.HTTPConnection | None = None
        self._identity: Hashable = None
        """The identity that the connection was opened with."""
        self._has_answered = False
        self._dated = "", 0.0
        """The date of the last response, and when it arrived by the clock of this machine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def server_time(self) -> float:
        """Seconds since 1970 by the server's clock, by its last response: the clocks of two machines may differ."""
        date, received = self._dated
        try:
            return parsedate_to_datetime(date).timestamp() + time.time() - received
        except ValueError:
            return time.time()

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path)

    def find(self, path: str) -> dict[str, Any] | None:
        """Get an object; None if there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def items(self, path: str) -> list[dict[str, Any]]:
        return self._items(self.get(path))

    def list_with_version(self, path: str) -> tuple[list[dict[str, Any]], str]:
        """List objects, and return the resource version that a watch continues from; empty without one."""
        answer = self.get(path)
        metadata = answer.get("metadata")
        version = metadata.get("resourceVersion", "") if isinstance(metadata, dict) else ""
        return self._items(answer), str(version)

    def object_metadata(self, path: str) -> list[dict[str, Any]]:
        """List objects with their metadata only."""
        accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        return self._items(self._decoded(self._answer("GET", path, None, "", accept)))

    def apply(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Apply a manifest on the server: set its fields, also those that others own, and leave all others."""
        path = f"{object_path(manifest)}?fieldManager={FIELD_MANAGER}&force=true"
        path += "&dryRun=All" if dry_run else ""
        return self._call("PATCH", path, manifest, "application/apply-patch+yaml")

    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        path = object_path(manifest).rpartition("/")[0]
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self._call("POST", path + query, manifest)

    def patch(self, path: str, change: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        query = "?dryRun=All" if dry_run else ""
        return self._call("PATCH", path + query, change, "application/merge-patch+json")

    def delete(
        self,
        path: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        """Delete an object; a pod may get another grace period than its own.

        With ``uid``, only that object is deleted, and no other of the same name. By ``propagation``, what it has made
        is deleted after it (``Background``), before it (``Foreground``), or stays (``Orphan``).
        """
        options: dict[str, Any] = {"propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        if dry_run:
            options["dryRun"] = ["All"]
        try:
            self._call("DELETE", path, options)
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def text(self, path: str) -> str:
        """Get a body that is not JSON, such as ``/readyz`` or a log."""
        return self._answer("GET", path, None, "").decode("utf-8", "replace")

    def head(self, path: str) -> None:
        """Get the head of a response, whose body may have no end; the connection is closed then."""
        try:
            self._answer("GET", path, None, "", reads_body=False)
        finally:
            self.close()

    def lines(self, path: str, on_open: OnOpen = None) -> Generator[LogPart, None, None]:
        """Yield the lines of a followed log, long ones in parts, until it ends; ``on_open`` as in :meth:`watch`."""
        yield from join_parts(self._stream(path, "*/*", on_open, StreamLimits(max_bytes=MAX_PART_BYTES)))

    def watch(
        self, path: str, version: str, *, seconds: int = 60, on_open: OnOpen = None, on_silence: OnSilence = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the events after a resource version, until the server ends the watch.

        It is also over once nothing has come for long, after a call of ``on_silence``.
        ``on_open`` gets the socket once the server has accepted the watch: to shut it down is the way to end it sooner.
        """
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        path += ("&" if "?" in path else "?") + query
        limits = StreamLimits(max_silence_s=_MAX_WATCH_SILENCE_S, on_silence=on_silence)
        for line in self._stream(path, "application/json", on_open, limits):
            yield self._decoded(line)

    def _stream(self, path: str, accept: str, on_open: OnOpen, limits: StreamLimits) -> Generator[bytes, None, None]:
        """Yield the lines of a response without an end, over a connection of its own."""
        for may_renew in (True, False):
            credential = self._current()
            connection = self._connect(credential, self._timeout_s)
            try:
                connection.connect()
                sock = connection.sock
                headers = request_headers(credential, accept=accept, host=self.access.tunnelled_host)
                connection.request("GET", self.access.prefix + path, headers=headers)
                answer = connection.getresponse()
                logger.debug("GET %s: %d", path, answer.status)
                if may_renew and self._may_renew(answer, credential):
                    continue
                if answer.status != http.client.OK:
                    raise _refusal(answer, answer.read(), self.access)
                if on_open is not None:
                    on_open(sock)
                yield from follow_lines(sock, answer, limits)
            except _FAILURES as error:
                raise self._unreachable(error) from error
            finally:
                connection.close()
            return

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        return self._decoded(self._answer(method, path, body, kind) or b"{}")

    def _answer(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        kind: str,
        accept: str = "application/json",
        *,
        reads_body: bool = True,
    ) -> bytes:
        """Send a request, and send it again where that may help; when and how often depends on why it failed.

        A request without an answer has growing pauses, and one to a busy server mostly those that it asks for.
        """
        content = None if body is None else json.dumps(body).encode()
        began = time.monotonic()
        attempt = 0
        may_renew = True
        while True:
            credential = self._current()
            connection, kept = self._connection_for(credential)
            try:
                headers = request_headers(credential, kind, accept, self.access.tunnelled_host)
                connection.request(method, self.access.prefix + path, content, headers)
                answer = connection.getresponse()
                read = answer.read() if reads_body or answer.status >= http.client.BAD_REQUEST else b""
            except _FAILURES as error:
                logger.debug("%s %s: %s", method, path, error)
                self.close()
                attempt += 1
                # A reused connection may have been closed by the server, which has not processed the request then.
                was_closed = kept and attempt == 1 and (method != "POST" or isinstance(error, _CLOSED))
                if not was_closed and (attempt == _MAX_ATTEMPTS or not self._may_repeat(method, error)):
                    raise self._unreachable(error) from error
                if not kept:
                    time.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1))
                continue
            logger.debug("%s %s: %d", method, path, answer.status)
            self._has_answered = True
            self._dated = answer.headers.get("Date", ""), time.time()
            is_own = is_from_api_server(path, read)
            waited_s = time.monotonic() - began
            pause = (
                pause_after(method, path, answer, read, shortest_s=_FIRST_PAUSE_S, waited_s=waited_s) if is_own else 0.0
            )
            if pause:
                time.sleep(pause)
            elif may_renew and is_own and self._may_renew(answer, credential):
                may_renew = False
            elif answer.status >= http.client.MULTIPLE_CHOICES:
                raise _refusal(answer, read, self.access)
            else:
                return read

    def _connection_for(self, credential: Credential) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was reused: a connection with another client certificate is not."""
        if self._connection is not None and self._identity == credential.identity:
            return self._connection, True
        self.close()
        self._connection, self._identity = self._connect(credential, self._timeout_s), credential.identity
        return self._connection, False

    def _may_repeat(self, method: str, error: Exception) -> bool:
        """Return whether a request without a response may be repeated: only if the second time changes nothing."""
        if isinstance(error, ConnectionRefusedError):
            # A server that has answered before is restarting; another does not exist.
            return self._has_answered
        is_broken = isinstance(error, (*_CLOSED, http.client.HTTPException))
        return is_broken and method != "POST"

    def _current(self) -> Credential:
        try:
            return self.access.credentials.current()
        except ComposeplatError as error:
            raise ApiError(http.client.UNAUTHORIZED, str(error), error.hint) from error

    def _may_renew(self, answer: http.client.HTTPResponse, credential: Credential) -> bool:
        """Return whether the server refused a credential, and there is another now."""
        return answer.status == http.client.UNAUTHORIZED and self.access.credentials.replace(credential)

    def _connect(self, credential: Credential, timeout: float) -> http.client.HTTPConnection:
        try:
            return self._connector.connect(credential, timeout=timeout)
        except MissingPiece as error:
            raise ApiError(0, str(error), error.hint) from error
        except http.client.InvalidURL as error:
            raise self._unreachable(error) from error

    def _decoded(self, body: bytes) -> dict[str, Any]:
        """Decode an object; any other body is from something in front of the API server, or in its place."""
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise self._not_an_api_server(body) from error
        if not isinstance(answer, dict):
            raise self._not_an_api_server(body)
        return answer

    def _items(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        items = answer.get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self._not_an_api_server(json.dumps(answer).encode())
        return items

    def _unreachable(self, error: Exception) -> ApiError:
        return ApiError(0, *why_unreachable(self.access, error, self._timeout_s))

    def _not_an_api_server(self, body: bytes) -> ApiError:
        start = " ".join(body[:_MAX_QUOTED_CHARS].decode("utf-8", "replace").split())
        return ApiError(
            0,
            f"the server at {self.access.address} is not an API server: it answered '{printable(start)}…'",
            "check the server in the kubeconfig; a proxy or a login page may be in front of it",
        )


def _refusal(answer: http.client.HTTPResponse, body: bytes, access: Access) -> ApiError:
    try:
        message = str(json.loads(body).get("message") or "")
    except (ValueError, AttributeError):
        text = body_text(body)
        message = f"the server at {access.address} answered {answer.status}: {text}" if text else ""
    if answer.status < http.client.BAD_REQUEST:
        place = printable(answer.headers.get("Location") or "another place")
        message = f"the server at {access.address} is not an API server: it redirects to {shorten(place)}"
    if answer.status == http.client.UNAUTHORIZED:
        return ApiError(answer.status, *why_refused(access))
    return ApiError(answer.status, message or f"the API server answered {answer.status}")
