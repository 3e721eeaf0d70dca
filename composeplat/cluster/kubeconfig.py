"""Find the cluster and how to reach it, from the kubeconfig, as kubectl does.

Owns how kubeconfig files are read and merged: the first file that sets a value wins.
Must not open a connection, nor run a credential plugin: both wait until a request is made.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from composeplat.cluster.access import Access
from composeplat.cluster.credentials import Credential, CredentialSource, static_credentials
from composeplat.compose.nodes import to_plain
from composeplat.compose.yaml_reader import StopReading, decode, read_nodes
from composeplat.diagnostics import MissingPiece, Report, Source, join_some, printable
from composeplat.system import files
from composeplat.system.proxies import find_proxy, parse_proxy
from composeplat.system.records import mutable

_MAX_BYTES = 4 * 1024 * 1024
_MAX_LISTED = 8
DEFAULT_NAMESPACE = "default"
_AUTHORITY, _INSECURE = "certificate-authority", "insecure-skip-tls-verify"
#: As kubectl reads YAML; for the reader of this project ``yes`` and ``on`` are texts.
_TRUE = ("true", "yes", "on", "y")
_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NO_FILE = "give the path of a kubeconfig; without one, that of KUBECONFIG or of your home folder is used"
NO_CLUSTER = "give --local for a cluster on this machine (Linux, as root), or point KUBECONFIG to one of yours"


@mutable
class KubeConfig:
    """All kubeconfig files, merged."""

    paths: list[Path]
    pod_namespace: str = ""
    """That of the pod in which this runs; as for kubectl, it is that of each context that names none."""
    problems: list[str] = field(default_factory=list)
    """Why a file that is there can't be read, as a clause with its path."""
    current: str = ""
    contexts: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, tuple[dict[str, Any], Path]] = field(default_factory=dict)
    users: dict[str, tuple[dict[str, Any], Path]] = field(default_factory=dict)

    def add(self, read: Mapping[str, Any], folder: Path) -> None:
        """Add the values of a further file: the first file that sets one wins. Its paths are relative to its folder."""
        self.current = self.current or str(read.get("current-context") or "")
        for name, entry in _entries(read, "contexts", "context"):
            self.contexts.setdefault(name, entry)
        for name, entry in _entries(read, "clusters", "cluster"):
            self.clusters.setdefault(name, (entry, folder))
        for name, entry in _entries(read, "users", "user"):
            self.users.setdefault(name, (entry, folder))

    def context(self, name: str = "") -> dict[str, Any]:
        return self.contexts.get(name or self.current, {})

    def namespace(self, context: str = "") -> str:
        return str(self.context(context).get("namespace") or self.pod_namespace)

    def namespaces(self, context: str = "") -> tuple[str, ...]:
        """Return the namespace of a context, then those of the other contexts with its cluster and user."""
        chosen = self.context(context)
        same = [c for c in self.contexts.values() if all(c.get(key) == chosen.get(key) for key in ("cluster", "user"))]
        found = (str(entry.get("namespace") or self.pod_namespace or DEFAULT_NAMESPACE) for entry in (chosen, *same))
        return tuple(dict.fromkeys(found))


def read_kubeconfig(environment: Mapping[str, str], named: str = "") -> KubeConfig:
    """Read ``--kubeconfig``, else ``KUBECONFIG``, else the home folder's; an unreadable file is skipped."""
    config = KubeConfig(paths=[Path(named)] if named else _paths(environment))
    for path in config.paths:
        config.add(_read(path, config.problems), path.parent)
    if _is_in_pod(environment):
        config.pod_namespace = environment.get("POD_NAMESPACE") or _read_pod_namespace()
    return config


def parse_kubeconfig(text: str) -> KubeConfig:
    """Read a kubeconfig that is no file; of an invalid one nothing is known."""
    config = KubeConfig(paths=[])
    config.add(_parse(text.encode(errors="surrogatepass"), Path("kubeconfig"), config.problems), Path())
    return config


def context_namespace(environment: Mapping[str, str], named: str = "", context: str = "") -> str:
    """Return the namespace of a context; empty without a kubeconfig, context or namespace."""
    return read_kubeconfig(environment, named).namespace(context)


def find_access(environment: Mapping[str, str], named: str = "", context: str = "") -> Access:
    """Return how to reach the cluster of a context."""
    config = read_kubeconfig(environment, named)
    if _is_in_cluster(config, environment, named):
        return _in_cluster_access(environment)
    chosen = context or config.current
    unread = "; ".join(config.problems)
    if not config.contexts:
        if named and not Path(named).exists():
            raise MissingPiece(f"the kubeconfig '{named}' does not exist", _NO_FILE)
        places = " or ".join(f"'{path}'" for path in config.paths) or "a kubeconfig"
        raise MissingPiece(f"no cluster is configured: {unread or f'{places} names none'}", NO_CLUSTER)
    if chosen not in config.contexts:
        known = join_some(sorted(config.contexts), _MAX_LISTED)
        problem = f"there is no context '{chosen}'" if chosen else "no context is chosen"
        listed = "; ".join(filter(None, (f"contexts are: {known}", unread)))
        raise MissingPiece(f"{problem} in the kubeconfig; {listed}", "choose one with --context")
    entry = config.contexts[chosen]
    cluster, folder = config.clusters.get(str(entry.get("cluster")), ({}, Path()))
    user, user_folder = config.users.get(str(entry.get("user")), ({}, Path()))
    if not cluster.get("server"):
        raise MissingPiece(f"the kubeconfig's context '{chosen}' names no cluster with a server", NO_CLUSTER)
    placed = {
        **cluster,
        _AUTHORITY: _placed(cluster.get(_AUTHORITY), folder),
        _INSECURE: str(cluster.get(_INSECURE)).lower() in _TRUE,
    }
    server = _split(cluster, chosen)
    if server.scheme == "http":
        # As in kubectl: anyone on the way could read the others.
        credentials = static_credentials(Credential(impersonation=_impersonation(user)))
    else:
        credentials = _credentials(user, user_folder, environment, placed)
    return _access(chosen, server, placed, credentials, environment)


def _access(
    context: str,
    server: SplitResult,
    cluster: dict[str, Any],
    credentials: CredentialSource,
    environment: Mapping[str, str],
) -> Access:
    plain = server.scheme == "http"
    host, port = server.hostname or "", server.port or (80 if plain else 443)
    named = cluster.get("proxy-url")
    proxy = (
        parse_proxy(str(named), f"the proxy-url of the kubeconfig's context '{context}'")
        if named
        else find_proxy(environment, "http" if plain else "https", host, port)
    )
    return Access(
        host=host,
        port=port,
        prefix=server.path.rstrip("/"),
        plain=plain,
        context=context,
        credentials=credentials,
        proxy=proxy,
        authority=cluster[_AUTHORITY],
        authority_data=_decoded(cluster.get("certificate-authority-data")),
        verify=not cluster[_INSECURE],
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _split(cluster: Mapping[str, Any], context: str) -> SplitResult:
    """Split the URL of a server; one without a scheme is HTTP, as in kubectl."""
    server = str(cluster["server"])
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        is_url = bool(parts.hostname) and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:
        is_url = False
    if not is_url:
        raise MissingPiece(f"the server of the kubeconfig's context '{context}' is not a URL: '{server}'", NO_CLUSTER)
    return parts


def _is_in_cluster(config: KubeConfig, environment: Mapping[str, str], named: str) -> bool:
    """Whether the service account of a pod is used: a file that is named and has no context is a mistake."""
    return _is_in_pod(environment) and not config.contexts and not named


def _is_in_pod(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and _IN_CLUSTER.exists()


def _read_pod_namespace() -> str:
    try:
        return (_IN_CLUSTER / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _in_cluster_access(environment: Mapping[str, str]) -> Access:
    """Return the access of a pod's service account, whose token the kubelet renews."""
    return Access(
        host=environment["KUBERNETES_SERVICE_HOST"],
        port=int(environment.get("KUBERNETES_SERVICE_PORT") or 443),
        credentials=_file_source(Credential(), str(_IN_CLUSTER / "token")),
        authority=str(_IN_CLUSTER / "ca.crt"),
    )


def _credentials(
    user: dict[str, Any], folder: Path, environment: Mapping[str, str], cluster: dict[str, Any]
) -> CredentialSource:
    program = user.get("exec")
    written = Credential(
        token=str(user.get("token") or "") or ("" if program else _oidc_token(user.get("auth-provider"))),
        basic=_basic(user),
        certificate=_placed(user.get("client-certificate"), folder),
        key=_placed(user.get("client-key"), folder),
        certificate_data=_decoded(user.get("client-certificate-data")),
        key_data=_decoded(user.get("client-key-data")),
        impersonation=_impersonation(user),
    )
    if isinstance(program, dict) and program.get("command"):
        return _plugin_source(written, program, folder, environment, cluster)
    return _file_source(written, _placed(user.get("tokenFile"), folder))


def _oidc_token(provider: object) -> str:
    """Return the token of an OpenID Connect login, which kubectl renews in the kubeconfig; empty without a login."""
    if not isinstance(provider, dict):
        return ""
    name, settings = provider.get("name"), provider.get("config")
    if name != "oidc":
        raise MissingPiece(
            f"the kubeconfig's auth-provider '{name}' is not supported",
            "write the kubeconfig again with a current version of your cloud's command line",
        )
    token = str((settings if isinstance(settings, dict) else {}).get("id-token") or "")
    if not token:
        raise MissingPiece("the kubeconfig's auth-provider 'oidc' has no id-token", "log in with kubectl")
    return token


def _plugin_source(
    written: Credential, program: dict[str, Any], folder: Path, environment: Mapping[str, str], cluster: dict[str, Any]
) -> CredentialSource:
    """A plugin's credential takes precedence over those beside it in the kubeconfig."""
    # Loads subprocess and datetime, and most users have no plugin.
    from composeplat.cluster.plugins import read_plugin  # noqa: PLC0415

    plugin = read_plugin(program, folder, environment, cluster)

    def load() -> Credential:
        credential = plugin.load()
        if credential.certificate_data or not (written.certificate or written.certificate_data):
            return replace(credential, impersonation=written.impersonation)
        return replace(written, token=credential.token, expires=credential.expires)

    return CredentialSource(load)


def _file_source(written: Credential, token_file: str) -> CredentialSource:
    """Return a source that reads its files again when they have changed."""
    paths = [path for path in (token_file, written.certificate, written.key) if path]

    def version() -> Hashable:
        return tuple(map(_file_version, paths))

    def load() -> Credential:
        token = written.token
        if token_file:
            try:
                token = _read_token(token_file)
            except MissingPiece:
                if not token:
                    raise
        return replace(written, token=token, version=version())

    return CredentialSource(load, version)


def _file_version(path: str) -> Hashable:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise MissingPiece(f"can't read the token '{path}' that the kubeconfig names: {reason}") from error
    if not token:
        raise MissingPiece(f"the file '{path}' that the kubeconfig names as its token is empty")
    return token


def _basic(user: dict[str, Any]) -> str:
    if not user.get("username"):
        return ""
    return base64.b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode("ascii")


def _impersonation(user: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the headers with which a user acts as another one."""
    extra = user.get("as-user-extra")
    headers = [("User", user.get("as")), ("Uid", user.get("as-uid"))]
    headers += [("Group", group) for group in _listed(user.get("as-groups"))]
    for key, values in (extra if isinstance(extra, dict) else {}).items():
        headers += [(f"Extra-{quote(str(key), safe='')}", value) for value in _listed(values)]
    # The library encodes headers in Latin-1, and API servers decode them as UTF-8.
    return tuple((f"Impersonate-{name}", str(value).encode().decode("latin-1")) for name, value in headers if value)


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _decoded(text: Any) -> str:
    """Decode a certificate or key; a comment in it may be in any language."""
    try:
        return base64.b64decode(str(text)).decode("ascii", "ignore") if text else ""
    except (binascii.Error, ValueError) as error:
        raise MissingPiece("a certificate or key in the kubeconfig is not base64") from error


def _placed(path: Any, folder: Path) -> str:
    placed = str(folder / str(path)) if path else ""
    if "\0" in placed:
        message = f"the kubeconfig names a file whose path has a NUL: '{printable(placed)}'"
        raise MissingPiece(message, "correct the path in the kubeconfig")
    return placed


def _entries(config: Mapping[str, Any], key: str, inner: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (str(entry.get("name")), entry[inner])
        for entry in _listed(config.get(key))
        if isinstance(entry, dict) and isinstance(entry.get(inner), dict)
    ]


def _paths(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(os.pathsep) if part]
    home = environment.get("HOME", "")
    return [Path(home) / ".kube" / "config"] if home else []


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        content = files.read_bytes(path, limit=_MAX_BYTES)
    except files.Unreadable as error:
        problems += [] if error.missing else [f"'{path}' {error.reason}"]
        return {}
    return _parse(content, path, problems)


def _parse(content: bytes, path: Path, problems: list[str]) -> dict[str, Any]:
    report = Report()
    try:
        source = decode(content, lambda text: Source(str(path), path.parent, text), report)
        nodes = read_nodes(source, report)
    except StopReading:
        problems += [f"'{path}' is invalid in line {found.span.line}: {found.message}" for found in report.sorted()]
        return {}
    config = to_plain(nodes[0]) if nodes else None
    return config if isinstance(config, dict) else {}
