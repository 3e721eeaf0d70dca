"""Credentials for an API server: cached until shortly before they end, and renewed after the server refused them.

Owns when a credential is renewed. All threads and connections of a process share one source, so that a plugin runs
once for all of them.
Must not know where a credential comes from, nor open a connection.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import field

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.system.records import record

#: A credential is renewed before it expires: by this part of its lifetime, and by so many seconds at most.
_MARGIN = 0.2
_MAX_MARGIN_S = 30.0
#: For a credential that has expired already, by this machine's clock.
_MIN_CACHED_S = 1.0
#: A source that failed is left alone for so long, as many threads ask it at the same time.
_RETRY_AFTER_S = 2.0


@record(kw_only=True)
class Credential:
    """Who asks; certificates and keys are paths, or PEM text."""

    token: str = field(default="", repr=False)
    basic: str = field(default="", repr=False)
    """User and password, encoded as HTTP's ``Basic`` scheme has them."""
    certificate: str = ""
    key: str = ""
    certificate_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()
    """The headers with which the user acts as another one."""
    version: Hashable = None
    """Changes with the files that are named."""
    expires: float = field(default=math.inf, compare=False)
    """Seconds since 1970."""

    @property
    def authorization(self) -> str:
        """The value of the ``Authorization`` header; empty without a token or password."""
        if self.token:
            return f"Bearer {self.token}"
        return f"Basic {self.basic}" if self.basic else ""

    @property
    def identity(self) -> Hashable:
        """The part that a TLS connection is opened with: another identity needs another connection."""
        return self.certificate, self.key, self.certificate_data, self.key_data, self.version


class CredentialSource:
    """One user's credentials, for all threads of a process.

    ``load`` returns a new credential; ``version`` shows cheaply whether its files have changed.
    """

    def __init__(self, load: Callable[[], Credential], version: Callable[[], Hashable] = lambda: None) -> None:
        self._load = load
        self._version = version
        self._lock = threading.Lock()
        self._cached: Credential | None = None
        self._read = version()
        self._renew_at = -math.inf
        self._failed_at = -math.inf
        self._failure: ComposeplatError | None = None

    def current(self) -> Credential:
        """Return a credential that has not expired; raises if there is none."""
        with self._lock:
            if self._cached is None or time.monotonic() >= self._renew_at or self._version() != self._read:
                self._renew()
            if self._cached is None:
                raise self._failure or ComposeplatError("no credential")
            return self._cached

    def replace(self, refused: Credential) -> bool:
        """Renew a credential that the server refused; returns whether there is another now."""
        with self._lock:
            if self._cached is refused:
                self._cached, self._failed_at = None, -math.inf
                self._renew()
            return self._cached != refused

    def _renew(self) -> None:
        """Load a new credential; if that fails, the cached one is kept until it expires."""
        if time.monotonic() - self._failed_at < _RETRY_AFTER_S:
            return
        self._read = self._version()
        try:
            self._cached = _checked(self._load())
        except ComposeplatError as error:
            self._failure, self._failed_at = error, time.monotonic()
            if self._cached is not None and self._cached.expires <= time.time():
                self._cached = None
            return
        left = self._cached.expires - time.time()
        self._renew_at = time.monotonic() + max(left - min(left * _MARGIN, _MAX_MARGIN_S), _MIN_CACHED_S)


def _checked(credential: Credential) -> Credential:
    if not (credential.token.isascii() and credential.token.isprintable()):
        raise MissingPiece("the token that the kubeconfig leads to has characters that are invalid in an HTTP header")
    if any("\n" in value or "\r" in value for _, value in credential.impersonation):
        raise MissingPiece(
            "a value of 'as' or 'as-…' in the kubeconfig has a line break, which is invalid in an HTTP header",
            "write it on one line: a text after ': |' ends with a line break",
        )
    return credential


def static_credentials(credential: Credential | None = None) -> CredentialSource:
    """Return the source of a credential that never changes; anonymous without one."""
    unchanging = credential or Credential()
    return CredentialSource(lambda: unchanging)
