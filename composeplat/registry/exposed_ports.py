"""The ports that images name themselves (``EXPOSE``), read from their registries and remembered; and their users.

Owns the protocol of registries, as far as it is for reading, and the memory of what was read.
Must not know what these are for.
What can't be read in time is left out without a word: nothing hangs on these ports.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import queue
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Any

from composeplat.diagnostics import ComposeplatError
from composeplat.registry.credentials import DOCKER_HUB, Login, find_login, qualified, registry_of
from composeplat.system.atomic import write_file
from composeplat.toolchain.tools import architecture

Ports = tuple[tuple[int, str], ...]

#: Altogether, for all images that are asked for at once.
WITHIN = 2.0
_HUB_HOST = "registry-1.docker.io"
#: A tag is asked for again after a day, a registry that gave no answer after an hour.
_TAG_HOLDS = 24 * 3600.0
_SILENCE_HOLDS = 3600.0
_FORGOTTEN_AFTER = 90 * 24 * 3600.0
_LARGEST = 4 * 1024 * 1024
_MOST_PORTS = 100
_HIGHEST = 65535
_PROTOCOLS = ("tcp", "udp", "sctp")
_MANIFESTS = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in ("oci.image.index.v1", "docker.distribution.manifest.list.v2", "oci.image.manifest.v1",
                 "docker.distribution.manifest.v2")
)  # fmt: skip
#: A registry that can't be reached, or that says something else than registries do.
_NO_ANSWER = (
    OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError, ComposeplatError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Noted:
    """What is remembered of a reference."""

    ports: Ports | None
    """None where the registry could not be asked."""
    until: float


class ExposedPorts:
    """Tells which ports images expose: from memory, or from their registries, side by side."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        logins: Mapping[str, Login] = MappingProxyType({}),
        *,
        within: float = WITHIN,
    ) -> None:
        self._folder = folder
        self._find_login = lambda registry: logins.get(registry) or find_login(registry, environment)
        self._within = within
        self._asked: dict[str, Future[Ports | None]] = {}

    def ask(self, reference: str) -> Future[Ports | None]:
        """Begin to read what a reference exposes, so that several are read at once; None is not known.

        The answer is there in time, whatever the registry does.
        """
        future = self._asked.get(reference)
        if future is None:
            future = self._asked[reference] = Future()
            noted = self._noted(reference)
            # What is known by its digest stays so.
            is_settled = noted is not None and noted.ports is not None and "@" in reference
            if noted is not None and (is_settled or noted.until > time.time()):
                future.set_result(noted.ports)
            else:
                _start(self._answer, reference, noted, future)
        return future

    def remember(self, name: str, ports: Ports) -> None:
        """Note what an image exposes that was just pushed under a name."""
        self._note(name, _Noted(ports, time.time() + _TAG_HOLDS))

    def _answer(self, reference: str, before: _Noted | None, future: Future[Ports | None]) -> None:
        told: queue.SimpleQueue[tuple[Ports | None, float]] = queue.SimpleQueue()
        _start(self._read, reference, told)
        try:
            found, holds = told.get(timeout=self._within)
        except queue.Empty:
            # What comes later is not heard: it would be a change that nobody made.
            found, holds = None, _SILENCE_HOLDS
        if found is None and before is not None:
            found = before.ports
        if holds:
            self._note(reference, _Noted(found, time.time() + holds))
        future.set_result(found)

    def _read(self, reference: str, told: queue.SimpleQueue[tuple[Ports | None, float]]) -> None:
        try:
            told.put((_Image(reference, self._find_login, time.monotonic() + self._within).ports(), _TAG_HOLDS))
        except urllib.error.HTTPError as error:
            # An image that is not there yet may be there the next moment.
            told.put((None, 0.0 if error.code == http.client.NOT_FOUND else _SILENCE_HOLDS))
        except _NO_ANSWER:
            told.put((None, _SILENCE_HOLDS))

    # memory

    def _path(self, reference: str) -> Path:
        return self._folder / f"{hashlib.sha256(reference.encode()).hexdigest()[:32]}.json"

    def _noted(self, reference: str) -> _Noted | None:
        try:
            read = json.loads(self._path(reference).read_text(encoding="utf-8"))
            ports = None if read["ports"] is None else tuple((int(number), str(kind)) for number, kind in read["ports"])
            return _Noted(ports, float(read["until"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _note(self, reference: str, noted: _Noted) -> None:
        path = self._path(reference)
        text = json.dumps({"reference": reference, "ports": noted.ports, "until": noted.until})
        try:
            write_file(path, text + "\n")
            self._forget()
        except OSError:
            return

    def _forget(self) -> None:
        """Drop what nobody has asked for in a long time."""
        before = time.time() - _FORGOTTEN_AFTER
        for path in self._folder.iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)


def _start(work: Callable[..., None], *arguments: object) -> None:
    """Run beside all else; the end of the process does not wait for it."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


def read_users(
    images: Iterable[str],
    environment: Mapping[str, str],
    logins: Mapping[str, Login] = MappingProxyType({}),
    *,
    within: float = WITHIN,
) -> dict[str, str]:
    """The users that images run as, by their names: an empty one is root, and one that can't be read is left out."""
    found: dict[str, str] = {}
    deadline = time.monotonic() + within

    def read(image: str) -> None:
        with contextlib.suppress(*_NO_ANSWER):
            login_for = lambda registry: logins.get(registry) or find_login(registry, environment)  # noqa: E731 -- short
            found[image] = _Image(image, login_for, deadline).user()

    asking = [threading.Thread(target=read, args=(image,), daemon=True) for image in images]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(found)


# reading --------------------------------------------------------------------------------------------------------------


class _Image:
    """One image in its registry."""

    def __init__(self, reference: str, login_for: Callable[[str], Login | None], deadline: float) -> None:
        self._login_for = login_for
        self._deadline = deadline
        self._registry = registry_of(reference)
        name, _, self._digest = qualified(reference).partition("@")
        rest = name.partition("/")[2]
        path, colon, tag = rest.rpartition(":")
        self._path, self._tag = (path, tag) if colon and "/" not in tag else (rest, "latest")
        self._is_here = re.match(r"(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?\Z", self._registry) is not None
        host = _HUB_HOST if self._registry == DOCKER_HUB else self._registry
        self._base = f"{'http' if self._is_here else 'https'}://{host}/v2/{self._path}"
        self._authorization = ""
        self._opener = _opener(direct=self._is_here)

    def ports(self) -> Ports:
        return _read_ports(self._config().get("ExposedPorts") or {})

    def user(self) -> str:
        return str(self._config().get("User") or "")

    def _config(self) -> dict[str, Any]:
        manifest = self._get(f"/manifests/{self._digest or self._tag}", _MANIFESTS)
        if "manifests" in manifest:
            manifest = self._get(f"/manifests/{_choose(manifest['manifests'])}", _MANIFESTS)
        found: dict[str, Any] = self._get(f"/blobs/{manifest['config']['digest']}", "*/*").get("config") or {}
        return found

    def _get(self, path: str, kinds: str) -> dict[str, Any]:
        try:
            return self._open(f"{self._base}{path}", kinds, self._authorization)
        except urllib.error.HTTPError as error:
            if error.code != http.client.UNAUTHORIZED or self._authorization:
                raise
            self._authorization = self._authorize(error.headers)
        return self._open(f"{self._base}{path}", kinds, self._authorization)

    def _open(self, address: str, kinds: str, authorization: str) -> dict[str, Any]:
        request = urllib.request.Request(address, headers={"Accept": kinds})
        if authorization:
            # So that it goes to the registry alone, and not where that sends us for its blobs.
            request.add_unredirected_header("Authorization", authorization)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with self._opener.open(request, timeout=left) as answer:
            read: dict[str, Any] = json.loads(answer.read(_LARGEST))
        return read

    def _authorize(self, headers: Message) -> str:
        """Answer what a registry wants: a name and a password, or a token that is had for them, or for nothing."""
        challenge = next(iter(headers.get_all("WWW-Authenticate") or ()), "")
        kind, _, rest = challenge.partition(" ")
        try:
            login = self._login_for(self._registry)
        except ComposeplatError:
            login = None
        basic = ""
        if login is not None:
            basic = "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode("ascii")
        if kind.lower() != "bearer":
            return basic
        said = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = said["realm"]
        if not realm.startswith("https://") and not self._is_here:
            basic = ""
        asked = {"service": said.get("service", ""), "scope": f"repository:{self._path}:pull"}
        token = self._open(f"{realm}?{urllib.parse.urlencode(asked)}", "application/json", basic)
        return f"Bearer {token.get('token') or token['access_token']}"


def _opener(*, direct: bool) -> urllib.request.OpenerDirector:
    """What speaks HTTP and nothing else: a registry may send us to any address."""
    opener = urllib.request.OpenerDirector()
    proxies = urllib.request.ProxyHandler({} if direct else None)
    for handler in (
        proxies, urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(), urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(), urllib.request.HTTPErrorProcessor(), urllib.request.UnknownHandler(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


def _choose(manifests: list[dict[str, Any]]) -> str:
    """The image for a machine like this one, or else for any Linux."""
    known = [(one.get("platform") or {}, str(one["digest"])) for one in manifests]
    own = [digest for said, digest in known if (said.get("os"), said.get("architecture")) == ("linux", architecture())]
    return next(iter([*own, *(digest for said, digest in known if said.get("os") == "linux"), known[0][1]]))


def _read_ports(exposed: Mapping[str, Any]) -> Ports:
    """Read ``80/tcp``; where there are more than one would list, none of them is known."""
    found = set()
    for text in exposed:
        number, _, protocol = text.partition("/")
        if number.isdigit() and 0 < int(number) <= _HIGHEST and (protocol or "tcp") in _PROTOCOLS:
            found.add((int(number), protocol or "tcp"))
    return tuple(sorted(found)) if len(found) <= _MOST_PORTS else ()
