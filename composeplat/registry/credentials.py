"""Names of registries, and credentials for them, out of the user's Docker configuration: read, and never changed.

Owns how a registry is told from an image's name, the configuration's shape and the protocol of the credential helpers.
Must not know what the credentials are for.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.diagnostics import ComposeplatError

DOCKER_HUB = "docker.io"
#: Under this name Docker keeps what it knows of its own registry, and so does Kubernetes.
_HUB_ADDRESS = "https://index.docker.io/v1/"
_HELPER_WITHIN = 30
_NO_USER = "<token>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A name and a password for a registry."""

    address: str
    """As the Docker configuration and Kubernetes name it."""
    user: str
    password: str = field(repr=False)


def registry_of(image: str) -> str:
    """The registry that an image comes from."""
    host = qualified(image).partition("/")[0]
    return DOCKER_HUB if host == "index.docker.io" else host


def qualified(image: str) -> str:
    """An image's name in full: what stands in front of its path is a registry only where it looks like a host."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return image
    return f"{DOCKER_HUB}/{image}" if slash else f"{DOCKER_HUB}/library/{image}"


def read_logins(entries: Iterable[Mapping[str, str]]) -> dict[str, Login]:
    """Logins as a program or Pulumi's configuration gives them, by registry."""
    found: dict[str, Login] = {}
    for entry in entries:
        missing = [key for key in ("address", "username", "password") if not entry.get(key)]
        if missing:
            raise ComposeplatError(
                f"an entry of 'registries' has no '{missing[0]}'", "give address, username and password of each"
            )
        host = re.sub(r"^\w+://", "", str(entry["address"])).partition("/")[0]
        registry = registry_of(f"{host}/image") if host != "registry-1.docker.io" else DOCKER_HUB
        address = _HUB_ADDRESS if registry == DOCKER_HUB else registry
        found[registry] = Login(address=address, user=str(entry["username"]), password=str(entry["password"]))
    return found


def find_login(registry: str, environment: Mapping[str, str]) -> Login | None:
    """What the user's ``docker login`` left for a registry; nothing where there was none."""
    folder = environment.get("DOCKER_CONFIG") or f"{environment.get('HOME', '')}/.docker"
    path = Path(folder) / "config.json"
    config = _read(path)
    address = _HUB_ADDRESS if registry == DOCKER_HUB else registry
    helper = (config.get("credHelpers") or {}).get(address) or (config.get("credHelpers") or {}).get(registry)
    helper = helper or config.get("credsStore")
    if helper:
        found = _ask(str(helper), address, environment)
        if found is not None:
            return found
    for name in (address, registry, f"https://{registry}", f"http://{registry}"):
        entry = (config.get("auths") or {}).get(name)
        if isinstance(entry, dict):
            return _of_entry(entry, address, path)
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON"
        raise ComposeplatError(
            f"the Docker configuration '{path}' can't be read: {reason.lower()}", "mend it, or docker login again"
        ) from None
    return config if isinstance(config, dict) else {}


def _of_entry(entry: Mapping[str, Any], address: str, path: Path) -> Login | None:
    if entry.get("username") and entry.get("password"):
        return Login(address=address, user=str(entry["username"]), password=str(entry["password"]))
    if not entry.get("auth"):
        return None
    try:
        user, colon, password = base64.b64decode(str(entry["auth"])).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise ComposeplatError(
            f"the Docker configuration '{path}' has no sound login for {address}", f"docker login {address}"
        )
    return Login(address=address, user=user, password=password.rstrip("\0"))


def _ask(helper: str, address: str, environment: Mapping[str, str]) -> Login | None:
    """Ask a credential helper, as Docker does: the address on its standard input, JSON on its output."""
    import subprocess  # noqa: PLC0415 -- where no helper is asked, as mostly, nothing else needs it

    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"], input=address, env=dict(environment), capture_output=True, text=True, check=False,
            timeout=_HELPER_WITHIN,
        )  # fmt: skip
    except FileNotFoundError:
        raise ComposeplatError(
            f"the Docker configuration names the credential helper '{program}', which is not on PATH", "install it"
        ) from None
    except (OSError, subprocess.TimeoutExpired):
        raise ComposeplatError(
            f"the credential helper '{program}' gives no answer", f"docker login {address}"
        ) from None
    if done.returncode:
        if "not found" in done.stdout.lower():
            return None
        raise ComposeplatError(f"the credential helper '{program}' has failed", f"docker login {address}")
    try:
        answer = json.loads(done.stdout)
        user, password = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError):
        raise ComposeplatError(f"the credential helper '{program}' gives no sound answer", "see its manual") from None
    if user == _NO_USER:
        raise ComposeplatError(
            f"for {address} Docker has a token that pods can't pull with", f"docker login {address} with a password"
        )
    return Login(address=address, user=user, password=password) if user else None
