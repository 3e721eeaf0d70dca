"""Speak with a Kubernetes API server: get, list, apply, delete, watch.

Owns the connection: TLS, credentials, retries, and one exception for every way it can fail.
Must not know any kind of object: paths and manifests come in, plain values go out.
It is written on the standard library: the official client takes half a second and 40 MB to import.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from composeplat.diagnostics import ComposeplatError, Exit

_FIELD_MANAGER = "composeplat"
_TIMEOUT = 15.0

#: Kind -> its plural, as paths have it.
PLURALS = {
    "ConfigMap": "configmaps",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "HTTPRoute": "httproutes",
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "Job": "jobs",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "Secret": "secrets",
    "Service": "services",
    "StatefulSet": "statefulsets",
    "StorageClass": "storageclasses",
}


class ApiError(ComposeplatError):
    """The API server refused, or could not be reached (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        if status == 0:
            self.exit_code = Exit.MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a server is reached."""

    host: str
    port: int
    token: str
    authority: str
    """The file with the certificate that signed the server's."""


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
        self._connection: http.client.HTTPSConnection | None = None

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

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path).get("items") or []
        return found

    def apply(self, manifest: dict[str, Any], *, force: bool = True) -> dict[str, Any]:
        """Server-side apply: make the object what the manifest says, and leave what it does not speak of."""
        path = f"{object_path(manifest)}?fieldManager={_FIELD_MANAGER}&force={str(force).lower()}"
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

    def watch(self, path: str, version: str, *, seconds: int = 60) -> Iterator[dict[str, Any]]:
        """Events after a resource version, until the server ends the watch."""
        connection = self._connect(timeout=seconds + _TIMEOUT)
        query = f"?watch=1&resourceVersion={version}&timeoutSeconds={seconds}"
        try:
            connection.request("GET", path + query, headers=self._headers())
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _refusal(answer.status, answer.read())
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

    def _answer(self, method: str, path: str, body: dict[str, Any] | None, kind: str) -> bytes:
        content = None if body is None else json.dumps(body).encode()
        for attempt in (1, 2):
            connection = self._connection or self._connect(timeout=_TIMEOUT)
            fresh = self._connection is None
            self._connection = connection
            try:
                connection.request(method, path, content, self._headers(kind))
                answer = connection.getresponse()
                read = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self._connection = None
                # A kept connection may have been closed meanwhile: then nothing was done, and one try is owed.
                if fresh or attempt == 2:  # noqa: PLR2004 -- the second and last
                    raise ApiError(0, _unreachable(self.access, error)) from None
                continue
            if answer.status >= http.client.BAD_REQUEST:
                raise _refusal(answer.status, read)
            return read
        raise AssertionError

    def _connect(self, *, timeout: float) -> http.client.HTTPSConnection:
        if self._context is None:
            try:
                self._context = ssl.create_default_context(cafile=self.access.authority)
            except OSError as error:
                raise ApiError(0, f"can't read the cluster's certificate: {error.strerror or error}") from None
        return http.client.HTTPSConnection(self.access.host, self.access.port, timeout=timeout, context=self._context)

    def _headers(self, kind: str = "") -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.access.token}", "Accept": "application/json"}
        return {**headers, "Content-Type": kind} if kind else headers


def _refusal(status: int, body: bytes) -> ApiError:
    try:
        message = json.loads(body).get("message") or ""
    except (ValueError, AttributeError):
        message = body.decode("utf-8", "replace").strip()
    return ApiError(status, message or f"the API server answered {status}")


def _unreachable(access: Access, error: Exception) -> str:
    reason = str(error) or type(error).__name__
    return f"the API server at {access.host}:{access.port} can't be reached: {reason.lower()}"
