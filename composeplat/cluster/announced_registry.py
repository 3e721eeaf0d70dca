"""The registry that a local cluster announces for built images.

Owns the ConfigMap ``kube-public/local-registry-hosting``, which kind, k3d, minikube and others write by a convention of
Kubernetes (KEP-1755), and the rule which of it counts.
Must not know images, nor push one. It is apart because the text is the cluster's: only a registry on this machine, of a
cluster that is near, is taken without being asked for, so that no cluster can send images elsewhere.
"""

from __future__ import annotations

import http.client
import ipaddress
import re

from composeplat.cluster.api import Api, ApiError

HOSTING_PATH = "/api/v1/namespaces/kube-public/configmaps/local-registry-hosting"
_KEY = "localRegistryHosting.v1"
_HOST = re.compile(r"""^host:[ \t]*(["']?)([a-z0-9.\[\]:-]+)\1[ \t]*(?:#.*)?$""", re.MULTILINE)
_LOOPBACK = re.compile(r"(?:localhost|[a-z0-9-]+\.localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]):[0-9]{1,5}")
_NAMES = ("localhost", "kubernetes.docker.internal", "host.docker.internal")


def read_announced_registry(api: Api, api_host: str) -> str:
    """Read the registry that a cluster announces, as this machine reaches it; empty if there is none to be used."""
    if not is_near(api_host):
        return ""
    try:
        found = api.find(HOSTING_PATH)
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return ""
    return parse_hosting(((found or {}).get("data") or {}).get(_KEY))


def parse_hosting(text: object) -> str:
    """Parse the announcement; empty if it names no registry on this machine."""
    hosts = [host for _, host in _HOST.findall(text)] if isinstance(text, str) else []
    return hosts[0] if len(hosts) == 1 and _LOOPBACK.fullmatch(hosts[0]) else ""


def is_near(host: str) -> bool:
    """Whether an API server is on this machine, or in a virtual machine or a network next to it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return host in _NAMES or host.endswith(".localhost")
