"""The ports that images expose (``EXPOSE``), read from their registries and cached on this machine.

Owns the cache: for how long a tag, a digest or a silent registry stays known.
Must not know what the ports are for. No deploy depends on them, so an image that can't be read in time has no ports,
and no message says so.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import queue
import threading
import time
import urllib.error
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType

from composeplat.registry.credentials import Login
from composeplat.registry.image_config import READ_ERRORS, TIMEOUT_S, ImageConfig, Ports, RegistryAccess
from composeplat.registry.image_reference import ImageReference
from composeplat.system.atomic import write_file
from composeplat.system.deadline import Deadline
from composeplat.system.records import record

_TAG_CACHED_S = 24 * 3600.0
_SILENT_REGISTRY_CACHED_S = 3600.0
_UNUSED_ENTRY_KEPT_S = 90 * 24 * 3600.0

_Result = tuple[Ports | None, float]
"""The ports, and for how many seconds they stay known."""


@record
class CacheEntry:
    """The ports of an image, as they were read."""

    ports: Ports | None
    """None where the registry could not be read."""
    expires: float

    @property
    def is_expired(self) -> bool:
        return self.expires <= time.time()


class ExposedPorts:
    """Finds the ports that images expose: in the cache, else in their registries, all of them at the same time."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        logins: Mapping[str, Login] = MappingProxyType({}),
        *,
        timeout: float = TIMEOUT_S,
    ) -> None:
        self._folder = folder
        self._access = RegistryAccess(logins, environment)
        self._timeout = timeout
        self._requested: dict[str, Future[Ports | None]] = {}

    def request(self, image: str) -> Future[Ports | None]:
        """Start to read the ports of an image; the result is None where they are not known.

        The result comes within the timeout, whatever the registry does.
        """
        future = self._requested.get(image)
        if future is None:
            future = self._requested[image] = Future()
            known = self.find_known(image)
            if known is not None:
                future.set_result(known.ports)
            else:
                _start(self._fetch, image, self._cached(image), future)
        return future

    def find_known(self, image: str) -> CacheEntry | None:
        """Return the cache entry of an image; None if its registry has to be read."""
        entry = self._cached(image)
        return entry if entry is not None and (_is_permanent(image, entry) or not entry.is_expired) else None

    def remember(self, image: str, ports: Ports) -> None:
        """Cache the ports of an image that was just pushed."""
        self._cache(image, ports, _TAG_CACHED_S)

    def recall(self, image: str) -> Ports | None:
        """Return the ports of an image that is in no registry, as they were remembered."""
        entry = self._cached(image)
        if entry is not None and entry.ports is not None:
            # Its entry is in use, and must not be removed.
            self.remember(image, entry.ports)
        return entry.ports if entry else None

    def _fetch(self, image: str, previous: CacheEntry | None, future: Future[Ports | None]) -> None:
        results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        _start(self._read, image, results)
        try:
            ports, cached_s = results.get(timeout=self._timeout)
        except queue.Empty:
            # A later result is dropped: it would change a deploy that nobody changed.
            ports, cached_s = None, _SILENT_REGISTRY_CACHED_S
        if ports is None and previous is not None:
            ports = previous.ports
        if cached_s:
            self._cache(image, ports, cached_s)
        future.set_result(ports)

    def _read(self, image: str, results: queue.SimpleQueue[_Result]) -> None:
        try:
            ports = ImageConfig(image, self._access, Deadline(self._timeout)).ports()
            results.put((ports, _TAG_CACHED_S))
        except urllib.error.HTTPError as error:
            # An image that does not exist yet may be pushed at any moment.
            results.put((None, 0.0 if error.code == http.client.NOT_FOUND else _SILENT_REGISTRY_CACHED_S))
        except READ_ERRORS:
            results.put((None, _SILENT_REGISTRY_CACHED_S))

    # the cache on disk

    def _path(self, image: str) -> Path:
        return self._folder / f"{hashlib.sha256(image.encode()).hexdigest()[:32]}.json"

    def _cached(self, image: str) -> CacheEntry | None:
        try:
            entry = json.loads(self._path(image).read_text(encoding="utf-8"))
            ports = entry["ports"]
            parsed = None if ports is None else tuple((int(number), str(protocol)) for number, protocol in ports)
            return CacheEntry(parsed, float(entry["until"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _cache(self, image: str, ports: Ports | None, cached_s: float) -> None:
        text = json.dumps({"reference": image, "ports": ports, "until": time.time() + cached_s})
        try:
            write_file(self._path(image), text + "\n")
            self._remove_unused()
        except OSError:
            return

    def _remove_unused(self) -> None:
        oldest = time.time() - _UNUSED_ENTRY_KEPT_S
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def _is_permanent(image: str, entry: CacheEntry) -> bool:
    """Return whether an entry holds for ever: the content behind a digest never changes."""
    return entry.ports is not None and bool(ImageReference.parse(image).digest)


def _start(work: Callable[..., None], *arguments: object) -> None:
    """Run a function in a thread that the end of the process does not wait for."""
    threading.Thread(target=work, args=arguments, daemon=True).start()
