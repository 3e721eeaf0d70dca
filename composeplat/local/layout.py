"""The paths, addresses and ports of the local cluster, as data.

Must not touch the machine. It is apart because every module of the room must use the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from composeplat.system.folders import user_data_folder
from composeplat.system.records import record

NODE = "local"
NODE_ADDRESS = "192.0.2.10"
POD_RANGE = "198.18.0.0/16"
NODE_POD_RANGE = "198.18.0.0/24"
SERVICE_RANGE = "198.19.0.0/16"
API_SERVICE = "198.19.0.1"
DNS_SERVICE = "198.19.0.10"
CLUSTER_DOMAIN = "cluster.local"
DOMAIN = "localhost"

STORAGE_CLASS, SIZED_CLASS = "local", "local-sized"
PROVISIONER = "dev.platform.com/local"
INGRESS_CLASS = "local"

API_PORT = 6443
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
REGISTRY_PORT = 5000
METRICS_PORT = 4443
MIRROR_PORT = 10260
HTTPS_PORT = 443
HTTP_PORT = 80
#: Root of the namespace in which images are built: no user of the machine, as the range is set aside for containers.
BUILD_USER = 1_800_000_000
#: Where the names of other machines are resolved for the cluster; known to ``frontdoor egress``.
EGRESS_RESOLVER = "198.51.100.3"
OWN_NETWORK, HOST_NETWORK = "own", "host"
IMAGE_CACHE_BYTES = 10 * 1024**3
#: Of etcd's file; its default is 2 GiB, and at most 8 GiB is recommended.
ETCD_LIMIT_BYTES = 8 * 1024**3
PAUSE_IMAGE = "dev.platform.com/pause:1"


@record(kw_only=True)
class HostPorts:
    """The loopback ports through which the machine reaches the cluster."""

    api: int = 16443
    registry: int = REGISTRY_PORT
    https: int = HTTPS_PORT
    http: int = HTTP_PORT

    def pairs(self) -> dict[str, tuple[int, int]]:
        """Name of the socket -> (port outside, port inside)."""
        return {
            "api": (self.api, API_PORT),
            "registry": (self.registry, REGISTRY_PORT),
            "https": (self.https, HTTPS_PORT),
            "http": (self.http, HTTP_PORT),
        }


@record(kw_only=True)
class Layout:
    folder: Path
    """Data that outlives the cluster's processes: certificates, etcd, images, volumes, logs."""
    run: Path
    """Removed with the cluster's processes: sockets and process ids; short, as a socket's path must be."""
    host_ports: HostPorts = field(default_factory=HostPorts)
    build_network: str = OWN_NETWORK
    """The network of the steps of builds: one of their own, or the machine's."""
    egress: bool = True
    """Whether pods reach other machines."""
    image_cache: int = 0
    """How many bytes of images from other registries are kept; 0 is the usual limit."""
    disk_limit: int = 0
    """How many bytes all images and caches may have; 0 is no limit."""
    etcd_limit: int = ETCD_LIMIT_BYTES
    """How many bytes the file with all objects may have."""

    @property
    def lock(self) -> Path:
        """Held by a start, a stop or a deletion."""
        return self.folder / "lock"

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    @property
    def etc(self) -> Path:
        return self.folder / "etc"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def volumes(self) -> Path:
        return self.folder / "volumes"

    @property
    def ingress(self) -> Path:
        return self.folder / "ingress"

    @property
    def kubeconfig(self) -> Path:
        """For people and for Pulumi, which reach the API server through its port on this machine."""
        return self.folder / "kubeconfig"

    @property
    def inner_kubeconfig(self) -> Path:
        """For the cluster's own parts."""
        return self.etc / "kubeconfig"

    @property
    def registry(self) -> Path:
        """Pushed images."""
        return self.folder / "registry"

    @property
    def etcd_space_file(self) -> Path:
        """The file with the figures of etcd's space, as of the last check."""
        return self.run / "etcd-space.json"

    @property
    def containerd_socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def buildkit_socket(self) -> Path:
        return self.build_run / "buildkit.sock"

    @property
    def mirror_socket(self) -> Path:
        """Where the node's images come in: only the cluster's own programs can reach it."""
        return self.run / "mirror.sock"

    @property
    def build_mirror_host(self) -> str:
        """The loopback address at which the builder reaches the mirror, with the port of the registry."""
        return "127.0.0.2"

    @property
    def mirror_cache(self) -> Path:
        """Images that the mirror has pulled from other registries."""
        return self.folder / "mirror"

    @property
    def kubernetes_mark(self) -> Path:
        """The file with the version of Kubernetes that the cluster was last started with."""
        return self.folder / "kubernetes-version"

    @property
    def build_run(self) -> Path:
        """The folder of the builder, which is not root: beside the other sockets, not among them."""
        return self.run.with_name(f"{self.run.name}-build")

    @property
    def build_data(self) -> Path:
        """Layers that were fetched or built; the builder sees them below its own folder."""
        return self.folder / "builder"

    @property
    def settings_file(self) -> Path:
        """The file with the settings of the running cluster."""
        return self.run / "settings.json"

    @property
    def supervisor(self) -> Path:
        """The file that names the supervisor's process."""
        return self.run / "supervisor.json"

    @property
    def states(self) -> Path:
        """The file in which the supervisor writes the states of its parts."""
        return self.run / "parts.json"

    @property
    def ready_mark(self) -> Path:
        """The file that exists from when the cluster is ready."""
        return self.run / "ready"

    @property
    def cgroup(self) -> str:
        return self.run.name

    @property
    def ports_file(self) -> Path:
        """The ports that were chosen, for the commands that come after."""
        return self.folder / "ports.json"


def make_layout(environment: Mapping[str, str], *, simulated: bool = False) -> Layout:
    """``COMPOSEPLAT_CLUSTER`` names another folder, for a second cluster or a test."""
    named = environment.get("COMPOSEPLAT_CLUSTER")
    folder = Path(named).absolute() if named else user_data_folder(environment)
    folder /= "simulated" if simulated else "cluster"
    apart = f"-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}" if named else ""
    run = folder / "run" if simulated else Path(f"/run/composeplat{apart}")
    return Layout(folder=folder, run=run)
