"""Speak with a Kubernetes API server: get, list, apply, delete, watch.

Owns the connection: TLS, credentials, retries, and one exception for every way it can fail.
Must not know any kind of object: paths and manifests come in, plain values go out.
It is written on the standard library: the official client takes half a second and 40 MB to import.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Generator, Iterator
from typing import Any, Self

from composeplat.cluster.access import Access
from composeplat.diagnostics import ComposeplatError, Exit

_FIELD_MANAGER = "composeplat"
_TIMEOUT = 15.0
#: So often a request is made that may be made again, where connections break.
_TRIES = 5
_FIRST_PAUSE = 0.1
#: For so long a server is asked again that says it is too busy.
_PATIENCE = 30.0
_LONGEST_PAUSE = 10.0
_BUSY = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)

#: Kind -> its plural, as paths have it.
PLURALS = {
    "ConfigMap": "configmaps",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "Event": "events",
    "HTTPRoute": "httproutes",
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "Job": "jobs",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "ReplicaSet": "replicasets",
    "ResourceQuota": "resourcequotas",
    "Secret": "secrets",
    "Service": "services",
    "StatefulSet": "statefulsets",
    "StorageClass": "storageclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


class ApiError(ComposeplatError):
    """The API server refused, or could not be reached (status 0)."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        if status in (0, http.client.UNAUTHORIZED):
            self.exit_code = Exit.MISSING


def object_path(manifest: dict[str, Any]) -> str:
    """The path of an object by its manifest."""
    metadata = manifest["metadata"]
    return f"{kind_path(manifest['apiVersion'], manifest['kind'], metadata.get('namespace', ''))}/{metadata['name']}"


def kind_path(api_version: str, kind: str, namespace: str = "") -> str:
    root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{PLURALS[kind]}"


class Api:
    """One connection, opened when first used and again after a failure; not to be shared between threads.

    To be used in a ``with`` block, or closed.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self._context: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._has_answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path)

    def find(self, path: str) -> dict[str, Any] | None:
        """The same; none where there is no such object."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path).get("items") or []
        return found

    def heads(self, path: str) -> list[dict[str, Any]]:
        """The metadata of every object of a list, without the rest."""
        accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        found: list[dict[str, Any]] = json.loads(self._answer("GET", path, None, "", accept)).get("items") or []
        return found

    def apply(self, manifest: dict[str, Any], *, force: bool = True, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply: make the object what the manifest says, and leave what it does not speak of."""
        path = f"{object_path(manifest)}?fieldManager={_FIELD_MANAGER}&force={str(force).lower()}"
        path += "&dryRun=All" if dry_run else ""
        return self._call("PATCH", path, manifest, "application/apply-patch+yaml")

    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        path = object_path(manifest).rpartition("/")[0]
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self._call("POST", path + query, manifest)

    def patch(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        return self._call("PATCH", path, change, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        try:
            self._call("DELETE", path, {"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def text(self, path: str) -> str:
        """A body that is not JSON, such as ``/readyz`` or a log."""
        return self._answer("GET", path, None, "").decode("utf-8", "replace")

    def lines(self, path: str) -> Generator[str, None, None]:
        """The lines of a body that goes on until its other end has no more, such as a log that is followed."""
        connection = self._connect(timeout=_TIMEOUT)
        try:
            connection.connect()
            sock = connection.sock
            connection.request("GET", self.access.prefix + path, headers=self._headers(accept="*/*"))
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _refusal(answer.status, answer.read(), self.access)
            _keep_alive(sock)
            while line := answer.readline():
                yield line.decode("utf-8", "replace").rstrip("\n")
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, _unreachable(self.access, error)) from None
        finally:
            connection.close()

    def watch(self, path: str, version: str, *, seconds: int = 60) -> Iterator[dict[str, Any]]:
        """Events after a resource version, until the server ends the watch."""
        connection = self._connect(timeout=seconds + _TIMEOUT)
        query = f"?watch=1&resourceVersion={version}&timeoutSeconds={seconds}"
        try:
            connection.request("GET", self.access.prefix + path + query, headers=self._headers())
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _refusal(answer.status, answer.read(), self.access)
            while line := answer.readline():
                yield json.loads(line)
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, _unreachable(self.access, error)) from None
        finally:
            connection.close()

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._answer(method, path, body, kind) or b"{}")
        return answer

    def _answer(
        self, method: str, path: str, body: dict[str, Any] | None, kind: str, accept: str = "application/json"
    ) -> bytes:
        content = None if body is None else json.dumps(body).encode()
        patient_until = time.monotonic() + _PATIENCE
        attempt = 0
        while True:
            kept = self._connection is not None
            try:
                answer, read = self._exchange(method, path, content, self._headers(kind, accept))
            except (OSError, http.client.HTTPException) as error:
                self.close()
                attempt += 1
                # A kept connection may have been closed meanwhile: then nothing was done, and one try is owed.
                if not (kept and attempt == 1) and (attempt == _TRIES or not self._may_ask_again(method, error)):
                    raise ApiError(0, _unreachable(self.access, error)) from None
                if not kept:
                    time.sleep(_FIRST_PAUSE * 2 ** (attempt - 1))
                continue
            self._has_answered = True
            pause = _pause(answer)
            if pause and time.monotonic() + pause < patient_until:
                time.sleep(pause)
            elif answer.status >= http.client.BAD_REQUEST:
                raise _refusal(answer.status, read, self.access)
            else:
                return read

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._connection = self._connection or self._connect(timeout=_TIMEOUT)
        self._connection.request(method, self.access.prefix + path, content, headers)
        answer = self._connection.getresponse()
        return answer, answer.read()

    def _may_ask_again(self, method: str, error: Exception) -> bool:
        """Say whether a request whose answer was lost may be made again: then it changes nothing the second time."""
        if isinstance(error, ConnectionRefusedError):
            # A server that was there a moment ago is starting again; another was never there.
            return self._has_answered
        is_broken = isinstance(error, ConnectionError | http.client.HTTPException | ssl.SSLEOFError)
        return is_broken and method != "POST"

    def _connect(self, *, timeout: float) -> http.client.HTTPConnection:
        access = self.access
        if access.plain:
            return http.client.HTTPConnection(access.host, access.port, timeout=timeout)
        if self._context is None:
            self._context = _tls(access)
        if not access.server_name:
            return http.client.HTTPSConnection(access.host, access.port, timeout=timeout, context=self._context)
        return _Renamed(access.host, access.port, access.server_name, self._context, timeout)

    def _headers(self, kind: str = "", accept: str = "application/json") -> dict[str, str]:
        headers = {"Accept": accept}
        if self.access.token:
            headers["Authorization"] = f"Bearer {self.access.token}"
        elif self.access.basic:
            headers["Authorization"] = f"Basic {self.access.basic}"
        return {**headers, "Content-Type": kind} if kind else headers


class _Renamed(http.client.HTTPSConnection):
    """A connection to a server whose certificate is for another name than its address."""

    def __init__(self, host: str, port: int, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _tls(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.authority or None, cadata=access.authority_data or None)
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if access.certificate_data:
            # The library reads certificates from files alone.
            with tempfile.TemporaryDirectory() as folder:
                certificate, key = os.path.join(folder, "certificate"), os.path.join(folder, "key")
                for path, text in ((certificate, access.certificate_data), (key, access.key_data)):
                    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as stream:
                        stream.write(text)
                context.load_cert_chain(certificate, key)
        elif access.certificate:
            context.load_cert_chain(access.certificate, access.key or None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ApiError(0, f"can't use the certificates that the kubeconfig names: {reason}") from None
    return context


def _refusal(status: int, body: bytes, access: Access) -> ApiError:
    try:
        message = json.loads(body).get("message") or ""
    except (ValueError, AttributeError):
        message = body.decode("utf-8", "replace").strip()
    if status == http.client.UNAUTHORIZED:
        who = f"context '{access.context}'" if access.context else "the kubeconfig"
        message = f"the API server at {access.address} does not accept the credentials of {who}"
    return ApiError(status, message or f"the API server answered {status}")


def _keep_alive(sock: socket.socket) -> None:
    """Let the system find out that a connection is dead: nothing may be said on it for hours."""
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _pause(answer: http.client.HTTPResponse) -> float:
    """For how long a busy server wants to be left alone; 0 where it does not say so."""
    wanted = answer.headers.get("Retry-After", "")
    if answer.status not in _BUSY or not wanted.isdigit():
        return 0.0
    return min(max(float(wanted), _FIRST_PAUSE), _LONGEST_PAUSE)


def _unreachable(access: Access, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"the API server at {access.address} does not answer: nothing came within {_TIMEOUT:.0f} s"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the API server at {access.address} can't be reached: {reason.lower()}"
