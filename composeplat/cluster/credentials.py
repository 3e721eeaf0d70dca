"""Credentials for an API server: cached until shortly before they end, and renewed after the server refused them.

Owns when a credential is renewed. All threads and connections of a process share one source, so that a plugin is run
once for all of them.
Must not know where a credential comes from, nor open a connection.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from composeplat.diagnostics import ComposeplatError, MissingPiece

#: A credential is renewed before its end by this part of its life, and by so many seconds at most.
_MARGIN = 0.2
_MAX_MARGIN_S = 30.0
#: A credential that ends as soon as it comes, by this machine's clock, is used for so long all the same.
_MIN_CACHED_S = 1.0
#: A source that has failed is not asked again for so long: many threads ask at once.
_RETRY_AFTER_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Who asks; certificates and keys are paths, or PEM text."""

    token: str = field(default="", repr=False)
    basic: str = field(default="", repr=False)
    """User and password, encoded as HTTP's ``Basic`` scheme has them."""
    certificate: str = ""
    key: str = ""
    certificate_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    version: Hashable = None
    """Differs when the files that are named have changed."""
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
        """What a TLS connection is made with: another one needs another connection."""
        return self.certificate, self.key, self.certificate_data, self.key_data, self.version


class CredentialSource:
    """One user's credentials, for all threads of a process.

    ``load`` gives a new credential; ``version`` tells cheaply whether what it reads has changed.
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
        """Give a credential that has not ended; raises where none can be had."""
        with self._lock:
            if self._cached is None or time.monotonic() >= self._renew_at or self._version() != self._read:
                self._renew()
            if self._cached is None:
                raise self._failure or ComposeplatError("no credential")
            return self._cached

    def replace(self, refused: Credential) -> bool:
        """Renew a credential that the server refused; says whether :meth:`current` is worth another try."""
        with self._lock:
            if self._cached is refused:
                self._cached, self._failed_at = None, -math.inf
                self._renew()
            return self._cached != refused

    def _renew(self) -> None:
        """Ask the source; one that fails leaves the cached credential until that ends."""
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
        raise MissingPiece("the token that the kubeconfig leads to has characters that no HTTP header takes")
    return credential


def static_credentials(credential: Credential | None = None) -> CredentialSource:
    """Give the source of a credential that never changes; without one, nobody in particular asks."""
    unchanging = credential or Credential()
    return CredentialSource(lambda: unchanging)
