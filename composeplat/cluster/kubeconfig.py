"""Find the cluster that is meant and how it is reached, from the kubeconfig, as kubectl does.

Owns the reading of kubeconfig files: several are laid over one another, the first to say something wins.
Must not open a connection; a credential program that a user's entry names is run only when a connection is wanted.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from composeplat import files
from composeplat.cluster.access import Access
from composeplat.diagnostics import MissingPiece, Report, Source
from composeplat.source import StopReading, decode, read_nodes, to_plain

_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CREDENTIAL_SECONDS = 60
NO_CLUSTER = "give --local for a cluster on this machine (Linux, as root), or point KUBECONFIG to one of yours"


@dataclass(slots=True)
class KubeConfig:
    """All files as one."""

    paths: list[Path]
    current: str = ""
    contexts: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, tuple[dict[str, Any], Path]] = field(default_factory=dict)
    users: dict[str, tuple[dict[str, Any], Path]] = field(default_factory=dict)

    def context(self, name: str = "") -> dict[str, Any]:
        return self.contexts.get(name or self.current, {})

    def namespace(self, context: str = "") -> str:
        return str(self.context(context).get("namespace") or "")


def read_kubeconfig(environment: Mapping[str, str], named: str = "") -> KubeConfig:
    """Read ``--kubeconfig``, else ``KUBECONFIG``, else the home folder's; what can't be read is passed over."""
    config = KubeConfig(paths=[Path(named)] if named else _paths(environment))
    for path in config.paths:
        read = _read(path)
        config.current = config.current or str(read.get("current-context") or "")
        for name, entry in _entries(read, "contexts", "context"):
            config.contexts.setdefault(name, entry)
        for name, entry in _entries(read, "clusters", "cluster"):
            config.clusters.setdefault(name, (entry, path.parent))
        for name, entry in _entries(read, "users", "user"):
            config.users.setdefault(name, (entry, path.parent))
    return config


def context_namespace(environment: Mapping[str, str], named: str = "", context: str = "") -> str:
    """Give the namespace of a context; empty where there is no kubeconfig, context or namespace."""
    return read_kubeconfig(environment, named).namespace(context)


def find_access(environment: Mapping[str, str], named: str = "", context: str = "") -> Access:
    """Say how the cluster of a context is reached."""
    config = read_kubeconfig(environment, named)
    if not config.contexts and _IN_CLUSTER.exists() and environment.get("KUBERNETES_SERVICE_HOST"):
        return _from_within(environment)
    chosen = context or config.current
    if not config.contexts:
        places = " or ".join(f"'{path}'" for path in config.paths) or "a kubeconfig"
        raise MissingPiece(f"no cluster is known: {places} names none", NO_CLUSTER)
    if chosen not in config.contexts:
        known = ", ".join(sorted(config.contexts)[:8])
        what = f"there is no context '{chosen}'" if chosen else "no context is chosen"
        raise MissingPiece(f"{what} in the kubeconfig; contexts are: {known}", "choose one with --context")
    entry = config.contexts[chosen]
    cluster, folder = config.clusters.get(str(entry.get("cluster")), ({}, Path()))
    user, user_folder = config.users.get(str(entry.get("user")), ({}, Path()))
    if not cluster.get("server"):
        raise MissingPiece(f"the kubeconfig's context '{chosen}' names no cluster with a server", NO_CLUSTER)
    return _access(chosen, cluster, folder, _with_credential(user, user_folder, environment), user_folder)


def _access(context: str, cluster: dict[str, Any], folder: Path, user: dict[str, Any], user_folder: Path) -> Access:
    server = urlsplit(str(cluster["server"]))
    plain = server.scheme == "http"
    return Access(
        host=server.hostname or "",
        port=server.port or (80 if plain else 443),
        prefix=server.path.rstrip("/"),
        plain=plain,
        context=context,
        token=_token(user, user_folder),
        basic=_basic(user),
        authority=_placed(cluster.get("certificate-authority"), folder),
        authority_data=_decoded(cluster.get("certificate-authority-data")),
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=str(cluster.get("tls-server-name") or ""),
        certificate=_placed(user.get("client-certificate"), user_folder),
        key=_placed(user.get("client-key"), user_folder),
        certificate_data=_decoded(user.get("client-certificate-data")),
        key_data=_decoded(user.get("client-key-data")),
    )


def _from_within(environment: Mapping[str, str]) -> Access:
    """A pod's own service account."""
    return Access(
        host=environment["KUBERNETES_SERVICE_HOST"],
        port=int(environment.get("KUBERNETES_SERVICE_PORT") or 443),
        token=(_IN_CLUSTER / "token").read_text(encoding="utf-8").strip(),
        authority=str(_IN_CLUSTER / "ca.crt"),
    )


def _token(user: dict[str, Any], folder: Path) -> str:
    if user.get("token"):
        return str(user["token"])
    path = _placed(user.get("tokenFile"), folder)
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except OSError as error:
        raise MissingPiece(f"can't read the token '{path}' that the kubeconfig names: {error.strerror}") from None


def _basic(user: dict[str, Any]) -> str:
    if not user.get("username"):
        return ""
    return base64.b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode("ascii")


def _with_credential(user: dict[str, Any], folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run the program that gives a user's credential, where one is named."""
    program = user.get("exec")
    if not isinstance(program, dict) or not program.get("command"):
        return user
    import subprocess  # noqa: PLC0415 -- most users have no such program

    command = str(program["command"])
    if "/" in command and not os.path.isabs(command):
        command = str(folder / command)
    variables = {str(one.get("name")): str(one.get("value")) for one in program.get("env") or []}
    version = str(program.get("apiVersion") or "client.authentication.k8s.io/v1")
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    try:
        done = subprocess.run(
            [command, *map(str, program.get("args") or [])],
            env={**environment, **variables, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_CREDENTIAL_SECONDS, check=False,
        )  # fmt: skip
        status = json.loads(done.stdout)["status"] if done.returncode == 0 else {}
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        status = {}
    if not status:
        hint = str(program.get("installHint") or f"try: {command}")
        raise MissingPiece(f"the kubeconfig's credential program '{command}' gave no credential", hint)
    given = {
        "token": status.get("token"),
        "client-certificate-data": _encoded(status.get("clientCertificateData")),
        "client-key-data": _encoded(status.get("clientKeyData")),
    }
    return {**user, **{key: value for key, value in given.items() if value}}


def _encoded(pem: str | None) -> str:
    return base64.b64encode(pem.encode()).decode("ascii") if pem else ""


def _decoded(text: Any) -> str:
    try:
        return base64.b64decode(str(text)).decode("ascii") if text else ""
    except (binascii.Error, ValueError):
        raise MissingPiece("a certificate or key in the kubeconfig is not base64") from None


def _placed(path: Any, folder: Path) -> str:
    return str(folder / str(path)) if path else ""


def _entries(config: dict[str, Any], key: str, inner: str) -> list[tuple[str, dict[str, Any]]]:
    written = config.get(key)
    return [
        (str(entry.get("name")), entry[inner])
        for entry in (written if isinstance(written, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get(inner), dict)
    ]


def _paths(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(os.pathsep) if part]
    home = environment.get("HOME", "")
    return [Path(home) / ".kube" / "config"] if home else []


def _read(path: Path) -> dict[str, Any]:
    try:
        content = files.read_bytes(path, limit=files.MAX_DEFINITION)
        source = decode(content, lambda text: Source(str(path), path.parent, text), Report())
        nodes = read_nodes(source, Report())
    except (files.Unreadable, StopReading):
        return {}
    config = to_plain(nodes[0]) if nodes else None
    return config if isinstance(config, dict) else {}
