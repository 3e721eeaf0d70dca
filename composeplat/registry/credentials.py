"""Credentials for registries, from the user's Docker configuration, which is read and never changed.

Owns the shape of that configuration, and the protocol of the credential helpers that it names.
Must not know what the credentials are for: pods pull with them, builds push with them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from composeplat.diagnostics import ComposeplatError
from composeplat.registry.docker_folder import docker_folder
from composeplat.registry.image_reference import DOCKER_HUB, registry_of_prefix
from composeplat.system.records import record

#: The address under which Docker and Kubernetes both keep the login of Docker Hub.
_HUB_ADDRESS = "https://index.docker.io/v1/"
_HELPER_TIMEOUT_S = 30
#: The user name with which a helper marks an identity token.
_NO_ACCOUNT = "<token>"
_MAPPINGS = ("auths", "credHelpers")


@record(kw_only=True)
class Login:
    """A name and a password for a registry."""

    address: str
    """As the Docker configuration and Kubernetes name it."""
    user: str
    password: str = field(repr=False)


def read_logins(entries: Iterable[Mapping[str, str]]) -> dict[str, Login]:
    """Read the logins that a program or Pulumi's configuration gives, by registry."""
    logins: dict[str, Login] = {}
    for entry in entries:
        missing = [key for key in ("address", "username", "password") if not entry.get(key)]
        if missing:
            raise ComposeplatError(
                f"an entry of 'registries' has no '{missing[0]}'", "give address, username and password of each"
            )
        registry = registry_of_prefix(_host(str(entry["address"])))
        user, password = str(entry["username"]), str(entry["password"])
        logins[registry] = Login(address=_address(registry), user=user, password=password)
    return logins


def find_login(registry: str, environment: Mapping[str, str]) -> Login | None:
    """Return the login that ``docker login`` stored for a registry; None without one."""
    path = docker_folder(environment) / "config.json"
    config = _read_config(path)
    address = _address(registry)
    helpers = config.get("credHelpers") or {}
    helper = helpers.get(address) or helpers.get(registry) or config.get("credsStore")
    login = _ask_helper(str(helper), address, environment) if helper else None
    if login is not None:
        return login
    auths: Mapping[str, Any] = config.get("auths") or {}
    hosts = (_host(address), registry)
    # The address itself, else one of the same host, such as https://registry.example.com/v2/.
    for name in (address, registry, *(name for name in auths if _host(name) in hosts)):
        entry = auths.get(name)
        if isinstance(entry, dict):
            return _parse_entry(entry, address, path)
    return None


def _host(address: str) -> str:
    return re.sub(r"^\w+://", "", address).partition("/")[0]


def _address(registry: str) -> str:
    return _HUB_ADDRESS if registry == DOCKER_HUB else registry


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON"
        raise ComposeplatError(
            f"the Docker configuration '{path}' can't be read: {reason.lower()}", "correct it, or run docker login"
        ) from error
    if not isinstance(config, dict):
        return {}
    wrong = [key for key in _MAPPINGS if key in config and not isinstance(config[key], dict)]
    return {key: value for key, value in config.items() if key not in wrong}


def _parse_entry(entry: Mapping[str, Any], address: str, path: Path) -> Login | None:
    if entry.get("username") and entry.get("password"):
        return Login(address=address, user=str(entry["username"]), password=str(entry["password"]))
    user, colon, password = "", "", ""
    if not (entry.get("auth") or entry.get("identitytoken")):
        return None
    # What is no ASCII is a plain ValueError.
    with contextlib.suppress(ValueError):
        user, colon, password = base64.b64decode(str(entry.get("auth") or "")).decode().partition(":")
    if entry.get("identitytoken") and not password:
        raise _token_error(address)
    if not colon:
        raise ComposeplatError(
            f"the Docker configuration '{path}' has an invalid login for {address}", f"docker login {address}"
        )
    return Login(address=address, user=user, password=password.rstrip("\0"))


def _token_error(address: str) -> ComposeplatError:
    return ComposeplatError(
        f"for {address} Docker has a token that pods can't pull with", f"docker login {address} with a password"
    )


def _ask_helper(helper: str, address: str, environment: Mapping[str, str]) -> Login | None:
    """Ask a credential helper, as Docker does: the address on its standard input, JSON on its output."""
    program = f"docker-credential-{helper}"
    status, output = _run_helper(program, address, environment)
    if status:
        if "not found" in output.lower():
            return None
        raise ComposeplatError(f"the credential helper '{program}' failed", f"docker login {address}")
    try:
        response = json.loads(output)
        user, password = str(response["Username"]), str(response["Secret"])
    except (ValueError, KeyError, TypeError) as error:
        raise ComposeplatError(
            f"the credential helper '{program}' gave an invalid response", "see its manual"
        ) from error
    if user == _NO_ACCOUNT:
        raise _token_error(address)
    return Login(address=address, user=user, password=password) if user else None


def _run_helper(program: str, address: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a credential helper; return its exit status and its output."""
    import subprocess  # noqa: PLC0415 -- slow to import, and few configurations name a helper

    try:
        ended = subprocess.run(
            [program, "get"],
            input=address,
            env=dict(environment),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_HELPER_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise ComposeplatError(
            f"the Docker configuration names the credential helper '{program}', which is not on PATH", "install it"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ComposeplatError(
            f"the credential helper '{program}' did not respond", f"docker login {address}"
        ) from error
    return ended.returncode, ended.stdout
