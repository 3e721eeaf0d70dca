"""The use of CPU and memory of pods and nodes, for ``kubectl top``, ``platform top`` and autoscaling: metrics-server.

Owns its arguments, the way from the API server to it, and the objects that name it.
The API server passes requests on to a server that an APIService names. While that server does not answer, namespaces
can't be deleted and listing the kinds of objects fails in part; so the APIService exists only while metrics-server
runs.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import object_path
from composeplat.cluster.snapshot import Object
from composeplat.local.layout import METRICS_PORT, Layout
from composeplat.local.states import read_states

#: The name of the part, and of its Service.
METRICS_SERVER = "metrics-server"
#: The names of the certificates in the folder of keys.
AUTHORITY, PROXY, SERVER, KUBELET = "front-proxy-ca", "front-proxy", "metrics-server", "kubelet"
#: The name in the certificate by which the API server identifies itself.
PROXY_USER = "front-proxy-client"
_NAMESPACE = "kube-system"
#: The host name that the API server expects in the certificate.
HOST = f"{METRICS_SERVER}.{_NAMESPACE}.svc"
_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"


def metrics_server_arguments(layout: Layout) -> tuple[str, ...]:
    """The arguments of metrics-server: it listens on loopback, and has the API server authorize each request."""
    keys, kubeconfig = layout.keys, layout.inner_kubeconfig
    return (
        METRICS_SERVER,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--kubelet-certificate-authority={keys / 'ca'}.crt",
        "--bind-address=127.0.0.1",
        f"--secure-port={METRICS_PORT}",
        f"--tls-cert-file={keys / SERVER}.crt",
        f"--tls-private-key-file={keys / SERVER}.key",
    )


def api_server_arguments(layout: Layout) -> tuple[str, ...]:
    """The arguments by which the API server identifies itself, and names the user that it passes a request on for."""
    keys = layout.keys
    return (
        f"--requestheader-client-ca-file={keys / AUTHORITY}.crt",
        f"--requestheader-allowed-names={PROXY_USER}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={keys / PROXY}.crt",
        f"--proxy-client-key-file={keys / PROXY}.key",
    )


def metrics_objects(authority: bytes) -> list[Object]:
    """The objects that make the API server pass requests on to metrics-server, the APIService last."""
    service = {"name": METRICS_SERVER, "namespace": _NAMESPACE}
    return [
        # Who may read the pods of a namespace may read their use, as on other clusters.
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "system:aggregated-metrics-reader",
                "labels": {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("view", "edit")},
            },
            "rules": [{"apiGroups": [_GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
        },
        # It is no pod, and has no address that a pod can reach.
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": METRICS_PORT}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{_VERSION}.{_GROUP}"},
            "spec": {
                "group": _GROUP,
                "version": _VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {**service, "port": METRICS_PORT},
                "caBundle": base64.b64encode(authority).decode(),
            },
        },
    ]


class Registration:
    """Registers metrics-server with the API server while it runs, and only then."""

    def __init__(self, api: Api, states: Path, manifests: Iterable[Object]) -> None:
        self.api = api
        self.states = states
        self.manifests = tuple(manifests)
        self._is_registered: bool | None = None

    def update(self) -> None:
        part = read_states(self.states).get(METRICS_SERVER)
        is_ready = bool(part and part["ready"])
        if is_ready is self._is_registered:
            return
        if is_ready:
            for manifest in self.manifests:
                self.api.apply(manifest)
        else:
            self.api.delete(object_path(self.manifests[-1]))
        self._is_registered = is_ready
