"""Credential plugins: the programs that a kubeconfig's ``exec`` names, run as client-go runs them.

Owns the protocol ``client.authentication.k8s.io``: the input of a plugin, and how its output is checked.
Must not know when a credential is renewed: :mod:`composeplat.cluster.credentials` decides that.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from composeplat.cluster.credentials import Credential
from composeplat.diagnostics import MissingPiece

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
_TIMEOUT_S = 60.0
#: A person has to read, open a browser, and log in.
_INTERACTIVE_TIMEOUT_S = 600.0
_MAX_REASON = 200
_SECRET_OPTION, _HIDDEN = re.compile(r"--?\S*(?:secret|password|token)", re.IGNORECASE), "****"


@dataclass(slots=True, kw_only=True)
class Plugin:
    """A plugin, as configured in the kubeconfig."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _VERSIONS[0]
    mode: str = ""
    """Whether it may ask the user: ``Never``, ``IfAvailable`` or ``Always``."""
    cluster: Mapping[str, Any] | None = None
    """The cluster's entry, if the plugin requests it."""
    install_hint: str = ""
    _has_run: bool = False

    def load(self) -> Credential:
        """Run the plugin, and read its credential."""
        interactive = self._is_interactive()
        output = self._run(interactive=interactive)
        self._has_run = True
        return self._read(output)

    def _is_interactive(self) -> bool:
        """Return whether the plugin may ask the user: on its first run only, as progress uses the terminal later."""
        has_terminal = sys.stdin is not None and sys.stdin.isatty()
        if self.mode == "Always" and not has_terminal:
            raise self._failed("needs a terminal to ask for your login, and there is none")
        return has_terminal and (self.mode == "Always" or (self.mode != "Never" and not self._has_run))

    def _run(self, *, interactive: bool) -> str:
        spec = {"interactive": interactive, **({"cluster": self.cluster} if self.cluster is not None else {})}
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        limit = _INTERACTIVE_TIMEOUT_S if interactive else _TIMEOUT_S
        try:
            ended = subprocess.run(
                [self.command, *self.arguments],
                env={**self.environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"did not finish within {limit:.0f} s") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._failed(f"can't be run: {reason.lower()}") from error
        if ended.returncode:
            status = ended.returncode
            how = f"failed with exit status {status}" if status > 0 else f"was ended by signal {-status}"
            raise self._failed(f"{how}{_last_line(ended.stderr)}")
        return ended.stdout

    def _read(self, output: str) -> Credential:
        try:
            answer = json.loads(output)
        except ValueError as error:
            raise self._failed("gave no ExecCredential: its output is not JSON") from error
        if not isinstance(answer, dict) or not isinstance(answer.get("status"), dict):
            raise self._failed("gave no credential: its output has no 'status'")
        version = answer.get("apiVersion", self.api_version)
        if version != self.api_version:
            raise self._failed(f"gave an ExecCredential of version '{version}', not '{self.api_version}'")
        return self._credential(answer["status"])

    def _credential(self, status: Mapping[str, Any]) -> Credential:
        token, certificate, key = (
            str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if bool(certificate) != bool(key):
            raise self._failed("gave no credential: a certificate and its key must come together")
        if not token and not certificate:
            raise self._failed("gave no credential: its status has neither a token nor a certificate")
        expires = self._moment(str(status.get("expirationTimestamp") or ""))
        return Credential(token=token, certificate_data=certificate, key_data=key, expires=expires)

    def _moment(self, text: str) -> float:
        if not text:
            return math.inf
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise self._failed(f"gave an invalid expirationTimestamp: '{text}'") from error
        return moment.timestamp()

    def _failed(self, reason: str) -> MissingPiece:
        command_line = " ".join([self.command, *_without_secrets(self.arguments)])
        return MissingPiece(
            f"the kubeconfig's credential plugin '{self.command}' {reason}", self.install_hint or f"try: {command_line}"
        )


def _last_line(output: str | None) -> str:
    lines = (output or "").strip().splitlines()
    return f": {lines[-1][:_MAX_REASON]}" if lines else ""


def _without_secrets(arguments: Iterable[str]) -> Iterator[str]:
    """Yield arguments with the values of options such as ``--client-secret`` hidden."""
    is_value = False
    for argument in arguments:
        option, equals, _ = argument.partition("=")
        is_secret = _SECRET_OPTION.fullmatch(option) is not None
        yield _HIDDEN if is_value else f"{option}={_HIDDEN}" if is_secret and equals else argument
        is_value = is_secret and not equals


def read_plugin(
    entry: Mapping[str, Any], folder: Path, environment: Mapping[str, str], cluster: Mapping[str, Any]
) -> Plugin:
    """Read a user's ``exec``; ``cluster`` is the entry of the cluster that the credential is for."""
    command = str(entry["command"])
    if "/" in command and not os.path.isabs(command):
        # Beside a kubeconfig in the current folder it would lose its slash, and be looked for on PATH.
        command = str(folder.absolute() / command)
    pairs = [pair for pair in _list(entry, "env", command) if isinstance(pair, dict)]
    own = {str(pair.get("name")): str(pair.get("value") or "") for pair in pairs}
    return Plugin(
        command=command,
        arguments=tuple(map(str, _list(entry, "args", command))),
        environment={**environment, **own},
        api_version=_version(entry, command),
        mode=_mode(entry, command),
        install_hint=_text(entry, "installHint"),
        cluster=_cluster_info(cluster) if entry.get("provideClusterInfo") else None,
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "").strip()


def _list(entry: Mapping[str, Any], key: str, command: str) -> list[Any]:
    found = entry.get(key) or []
    if not isinstance(found, list):
        raise MissingPiece(f"the kubeconfig's credential plugin '{command}' has '{key}', which must be a list")
    return found


def _version(entry: Mapping[str, Any], command: str) -> str:
    version = _text(entry, "apiVersion") or _VERSIONS[0]
    if version not in _VERSIONS:
        raise MissingPiece(
            f"the kubeconfig's credential plugin '{command}' has apiVersion '{version}',"
            f" which is not supported: it must be {' or '.join(_VERSIONS)}",
            "write the kubeconfig again with a current version of your cloud's command line",
        )
    return version


def _mode(entry: Mapping[str, Any], command: str) -> str:
    mode = _text(entry, "interactiveMode") or "IfAvailable"
    if mode not in _MODES:
        raise MissingPiece(
            f"the kubeconfig's credential plugin '{command}' has interactiveMode '{mode}'",
            f"it must be {', '.join(_MODES[:-1])} or {_MODES[-1]}",
        )
    return mode


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster's entry as a plugin gets it that sets ``provideClusterInfo``."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = {name: cluster[name] for name in names if cluster.get(name)}
    if "certificate-authority-data" not in info and cluster.get("certificate-authority"):
        # What a file that can't be read means is an error of the connection.
        with contextlib.suppress(OSError):
            content = Path(cluster["certificate-authority"]).read_bytes()
            info["certificate-authority-data"] = base64.b64encode(content).decode()
    for extension in cluster.get("extensions") or []:
        if isinstance(extension, dict) and extension.get("name") == f"{_GROUP}/exec":
            info["config"] = extension.get("extension")
    return info
