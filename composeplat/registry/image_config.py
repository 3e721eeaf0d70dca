"""The configuration of an image, read from its registry: the ports it exposes, the user it runs as, and its layers.

Owns the protocol of registries, as far as reading needs it: manifests, blobs, and both ways to log in.
Must not know what is done with an image's configuration, nor for how long it stays known.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from email.message import Message
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from composeplat.diagnostics import ComposeplatError
from composeplat.registry.credentials import Login, find_login
from composeplat.registry.image_reference import DOCKER_HUB, ImageReference
from composeplat.registry.opener import deadline_opener
from composeplat.system.deadline import Deadline
from composeplat.system.machine import architecture
from composeplat.system.records import record

Ports = tuple[tuple[int, str], ...]

_PARAMETER = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,"]+))')
_BEARER = re.compile(rf"(?:^|,)\s*bearer\s+({_PARAMETER.pattern}(?:\s*,\s*{_PARAMETER.pattern})*)", re.IGNORECASE)
#: For all images that are read at the same time, together.
TIMEOUT_S = 2.0
_HUB_HOST = "registry-1.docker.io"
_MAX_RESPONSE_BYTES = 4 * 1024 * 1024
_MAX_PORTS = 100
_MAX_PORT = 65535
_PROTOCOLS = ("tcp", "udp", "sctp")
_MANIFEST_KINDS = (
    "oci.image.index.v1",
    "docker.distribution.manifest.list.v2",
    "oci.image.manifest.v1",
    "docker.distribution.manifest.v2",
)
_MANIFESTS = ", ".join(f"application/vnd.{kind}+json" for kind in _MANIFEST_KINDS)
_LOOPBACK = re.compile(r"(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?\Z")
#: A registry that can't be reached, or whose response is not one of a registry.
READ_ERRORS = (
    OSError,
    http.client.HTTPException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    ComposeplatError,
)


@record
class RegistryAccess:
    """How registries are reached: with given logins, else those of the Docker configuration; through which proxies."""

    logins: Mapping[str, Login] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    def login(self, registry: str) -> Login | None:
        return self.logins.get(registry) or find_login(registry, self.environment)


@record(kw_only=True)
class ImageFacts:
    """The part of an image's configuration that decides how its containers run."""

    user: str = ""
    """Empty for root."""
    volumes: tuple[str, ...] = ()
    ports: Ports = ()
    architectures: frozenset[str] = frozenset()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@record(kw_only=True)
class ImageContents:
    """The content of an image, for the platform of this machine."""

    digest: str
    """Of its manifest: it changes with the content."""
    user: str
    layers: tuple[str, ...]
    """The digests, from the lowest to the uppermost."""


def read_images(
    images: Iterable[str],
    environment: Mapping[str, str],
    logins: Mapping[str, Login] = MappingProxyType({}),
    *,
    timeout: float = TIMEOUT_S,
) -> dict[str, ImageFacts | str]:
    """Read the facts of images, all at the same time; for an image that can't be read, the reason."""
    found: dict[str, ImageFacts | str] = {}
    deadline = Deadline(timeout)
    access = RegistryAccess(logins, environment)

    def read(image: str) -> None:
        try:
            found[image] = ImageConfig(image, access, deadline).facts()
        except READ_ERRORS as error:
            found[image] = _reason(error)

    threads = {image: threading.Thread(target=read, args=(image,), daemon=True) for image in images}
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(deadline.remaining_s)
    return dict.fromkeys(threads, _reason(TimeoutError())) | found


def read_users(
    images: Iterable[str],
    environment: Mapping[str, str],
    logins: Mapping[str, Login] = MappingProxyType({}),
    *,
    timeout: float = TIMEOUT_S,
) -> dict[str, str]:
    """Read the users that images run as, by image. An empty user is root; an image that can't be read is left out."""
    found = read_images(images, environment, logins, timeout=timeout)
    return {image: facts.user for image, facts in found.items() if isinstance(facts, ImageFacts)}


def _reason(error: Exception) -> str:
    """Return why an image can't be read, as a phrase that follows its name."""
    match error:
        case urllib.error.HTTPError(code=http.client.NOT_FOUND):
            return "is not in its registry"
        case urllib.error.HTTPError(code=http.client.UNAUTHORIZED | http.client.FORBIDDEN):
            return "is denied by its registry"
        case urllib.error.HTTPError():
            return f"can't be read: its registry answered {error.code}"
        case TimeoutError():
            return "can't be read: its registry did not answer in time"
        case OSError():
            return "can't be read: its registry can't be reached"
        case ComposeplatError():
            return f"can't be read: {error}"
        case _:
            return "can't be read: the answer is not a registry's"


class ImageConfig:
    """The configuration of one image in its registry. Each read raises one of :data:`READ_ERRORS` on failure."""

    def __init__(self, image: str, access: RegistryAccess, deadline: Deadline) -> None:
        self._access = access
        self._reference = reference = ImageReference.parse(image)
        self._is_loopback = _LOOPBACK.match(reference.registry) is not None
        host = _HUB_HOST if reference.registry == DOCKER_HUB else reference.registry
        scheme = "http" if self._is_loopback else "https"
        self._base_url = f"{scheme}://{host}/v2/{reference.repository}"
        self._authorization = ""
        self._opener = deadline_opener(deadline, access.environment)

    def ports(self) -> Ports:
        return parse_ports(self._config().get("ExposedPorts") or {})

    def facts(self) -> ImageFacts:
        manifest = json.loads(self._read_manifest())
        blob = self._blob(manifest)
        config = blob.get("config") or {}
        platforms = [entry.get("platform") or {} for entry in manifest.get("manifests") or [{"platform": blob}]]
        names = {str(platform.get("architecture") or "") for platform in platforms} - {"", "unknown"}
        return ImageFacts(
            user=str(config.get("User") or ""),
            volumes=tuple(sorted(map(str, config.get("Volumes") or {}))),
            ports=parse_ports(config.get("ExposedPorts") or {}),
            architectures=frozenset(names),
            entrypoint=tuple(map(str, config.get("Entrypoint") or ())),
            command=tuple(map(str, config.get("Cmd") or ())),
        )

    def contents(self) -> ImageContents:
        text = self._read_manifest()
        manifest = json.loads(text)
        if "manifests" in manifest:
            text = self._read(f"/manifests/{_choose_platform(manifest['manifests'])}", _MANIFESTS)
            manifest = json.loads(text)
        config = self._get(f"/blobs/{manifest['config']['digest']}", "*/*").get("config") or {}
        return ImageContents(
            digest=_digest(text),
            user=str(config.get("User") or ""),
            layers=tuple(str(layer["digest"]) for layer in manifest["layers"]),
        )

    @contextlib.contextmanager
    def open_layer(self, digest: str) -> Iterator[io.BufferedReader]:
        with self._request(f"/blobs/{digest}", "*/*") as response, io.BufferedReader(response) as stream:
            yield stream

    def digest(self) -> str:
        """Return the digest that the name has now."""
        return _digest(self._read_manifest())

    def process(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the entrypoint and the command."""
        config = self._config()
        return tuple(config.get("Entrypoint") or ()), tuple(config.get("Cmd") or ())

    def _config(self) -> dict[str, Any]:
        blob = self._blob(json.loads(self._read_manifest()))
        config: dict[str, Any] = blob.get("config") or {}
        return config

    def _blob(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Get the configuration's blob; of an index, that of the platform of this machine."""
        if "manifests" in manifest:
            manifest = self._get(f"/manifests/{_choose_platform(manifest['manifests'])}", _MANIFESTS)
        return self._get(f"/blobs/{manifest['config']['digest']}", "*/*")

    def _get(self, path: str, accept: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._read(path, accept))
        return found

    def _read_manifest(self) -> bytes:
        return self._read(f"/manifests/{self._reference.version}", _MANIFESTS)

    def _read(self, path: str, accept: str) -> bytes:
        with self._request(path, accept) as response:
            body: bytes = response.read(_MAX_RESPONSE_BYTES)
            return body

    def _request(self, path: str, accept: str) -> Any:
        """Send a request, and once more with a login if the registry asks for one."""
        url = f"{self._base_url}{path}"
        try:
            return self._open(url, accept, self._authorization)
        except urllib.error.HTTPError as error:
            if error.code != http.client.UNAUTHORIZED or self._authorization:
                raise
            self._authorization = self._authorize(error.headers)
        return self._open(url, accept, self._authorization)

    def _open(self, url: str, accept: str, authorization: str) -> Any:
        request = urllib.request.Request(url, headers={"Accept": accept})
        if authorization:
            # Not redirected: a registry may store its blobs with someone else, who must not get the credentials.
            request.add_unredirected_header("Authorization", authorization)
        return self._opener.open(request)

    def _authorize(self, headers: Message) -> str:
        """Answer a challenge: with the login itself, or with a token that is fetched with the login or without one."""
        fields = _token_challenge(", ".join(headers.get_all("WWW-Authenticate") or ()))
        basic = self._basic_authorization()
        if fields is None:
            return basic
        realm = fields["realm"]
        if not realm.startswith("https://") and not self._is_loopback:
            basic = ""
        scope = f"repository:{self._reference.repository}:pull"
        query = urllib.parse.urlencode({"service": fields.get("service", ""), "scope": scope})
        with self._open(f"{realm}?{query}", "application/json", basic) as response:
            token = json.loads(response.read(_MAX_RESPONSE_BYTES))
        return f"Bearer {token.get('token') or token['access_token']}"

    def _basic_authorization(self) -> str:
        try:
            login = self._access.login(self._reference.registry)
        except ComposeplatError:
            login = None
        if login is None:
            return ""
        return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode("ascii")


def _token_challenge(challenges: str) -> dict[str, str] | None:
    """Return the parameters of a Bearer challenge, which may be one of several; None without one."""
    found = _BEARER.search(challenges)
    return {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(found[1])} if found else None


def _digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


def _choose_platform(manifests: list[dict[str, Any]]) -> str:
    """Return the digest for this machine's platform, else for any Linux, else the first."""
    platforms = [(manifest.get("platform") or {}, str(manifest["digest"])) for manifest in manifests]
    linux = [(platform, digest) for platform, digest in platforms if platform.get("os") == "linux"]
    same = [digest for platform, digest in linux if platform.get("architecture") == architecture()]
    return next(iter([*same, *(digest for _, digest in linux), platforms[0][1]]))


def parse_ports(exposed: Mapping[str, Any]) -> Ports:
    """Parse ports such as ``80/tcp``. More ports than an image sensibly exposes count as none."""
    ports = set()
    for text in exposed:
        number, _, protocol = text.partition("/")
        if number.isdigit() and 0 < int(number) <= _MAX_PORT and (protocol or "tcp") in _PROTOCOLS:
            ports.add((int(number), protocol or "tcp"))
    return tuple(sorted(ports)) if len(ports) <= _MAX_PORTS else ()
