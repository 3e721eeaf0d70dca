"""Local clusters of other programs: kind, k3d, minikube, Docker Desktop, Rancher Desktop and OrbStack.

Owns a row for each program: its names in the kubeconfig, its command for images, its addresses.
Must not run a command or ask a cluster. It is apart because the rows are facts about other people's programs, of which
none can be run in the tests: they are compared with documentation, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from composeplat.cluster.announced_registry import is_near
from composeplat.system.records import record

_ARCHIVE, _NAME = "{archive}", "{name}"
_LOOPBACK = "localhost"
_IF_NOT_PRESENT, _NEVER = "IfNotPresent", "Never"
_DOCKER_LOAD = ("docker", "image", "load", "--input", _ARCHIVE)


@record(kw_only=True)
class Product:
    """A program that runs clusters on the user's machine."""

    title: str
    prefix: str = ""
    """The beginning of a cluster's name in the kubeconfig; the cluster's own name follows."""
    names: tuple[str, ...] = ()
    """The kubeconfig's names of its only cluster."""
    provider: str = ""
    """The provider in the extension ``cluster_info`` of the kubeconfig, where the name of a cluster is anything."""
    load: tuple[str, ...]
    """The command that loads an archive of an image."""
    load_into_containerd: tuple[str, ...] = ()
    """The command if the nodes run containerd, where that is another one."""
    pull_policy: str = _NEVER
    """The policy under which a node uses a loaded image, and pulls no other."""
    domain: str = ""
    """The domain whose names lead to the cluster's ingress controller; empty if none is documented."""
    has_mapped_ports: bool = False
    """Whether that holds only if the user has mapped the ports of the controller."""
    ingress_class: str = ""
    """The class of the controller that comes with the program."""

    @property
    def programs(self) -> frozenset[str]:
        """The programs of which one loads images."""
        return frozenset(args[0] for args in (self.load, self.load_into_containerd) if args)

    def own_name(self, cluster: str, provider: str) -> str:
        """Return the program's name for a cluster of the kubeconfig; empty if it is not one of its clusters."""
        if cluster in self.names or (self.provider and provider == self.provider):
            return cluster
        return cluster.removeprefix(self.prefix) if self.prefix and cluster.startswith(self.prefix) else ""


PRODUCTS = (
    Product(
        title="kind",
        prefix="kind-",
        load=("kind", "load", "image-archive", _ARCHIVE, "--name", _NAME),
        domain=_LOOPBACK,
        has_mapped_ports=True,
    ),
    Product(
        title="k3d",
        prefix="k3d-",
        load=("k3d", "image", "import", _ARCHIVE, "--cluster", _NAME),
        domain=_LOOPBACK,
        has_mapped_ports=True,
        ingress_class="traefik",
    ),
    Product(
        title="minikube",
        names=("minikube",),
        provider="minikube.sigs.k8s.io",
        load=("minikube", "image", "load", _ARCHIVE, "--profile", _NAME),
        ingress_class="nginx",
    ),
    Product(
        title="Docker Desktop",
        names=("docker-desktop",),
        load=_DOCKER_LOAD,
        # Nodes in containers get images of the engine through a mirror, which is a pull.
        pull_policy=_IF_NOT_PRESENT,
        domain=_LOOPBACK,
    ),
    Product(
        title="Rancher Desktop",
        names=("rancher-desktop",),
        load=_DOCKER_LOAD,
        load_into_containerd=("nerdctl", "--namespace", "k8s.io", "image", "load", "--input", _ARCHIVE),
        domain=_LOOPBACK,
        ingress_class="traefik",
    ),
    Product(title="OrbStack", names=("orbstack",), load=_DOCKER_LOAD, domain="k8s.orb.local"),
)


@record
class OtherCluster:
    """A local cluster of another program, by the program's own name for it."""

    product: Product
    name: str

    @property
    def title(self) -> str:
        """The cluster, for messages."""
        return (
            f"{self.product.title} cluster '{self.name}'" if self.name not in self.product.names else self.product.title
        )

    def load_command(self, archive: str, *, runs_containerd: bool) -> list[str]:
        """Return the arguments that load an archive into the nodes."""
        product = self.product
        args = product.load_into_containerd if runs_containerd and product.load_into_containerd else product.load
        values = {_ARCHIVE: archive, _NAME: self.name}
        return [values.get(arg, arg) for arg in args]


@record
class EndpointDefaults:
    """The settings of endpoints that follow from a cluster; empty if unknown."""

    domain: str = ""
    ingress_class: str = ""
    classes: tuple[str, ...] = ()
    """The ingress classes of the cluster."""


def recognize(cluster: str, entry: Mapping[str, Any], api_host: str) -> OtherCluster | None:
    """Recognize a cluster by its name and entry in the kubeconfig; one that is elsewhere is none of these."""
    if not is_near(api_host):
        return None
    provider = _provider(entry)
    found = ((product, product.own_name(cluster, provider)) for product in PRODUCTS)
    return next((OtherCluster(product, name) for product, name in found if name), None)


def _provider(entry: Mapping[str, Any]) -> str:
    """Return the provider that the extension ``cluster_info`` of an entry names."""
    extensions = entry.get("extensions")
    for extension in extensions if isinstance(extensions, list) else ():
        content = extension.get("extension") if isinstance(extension, dict) else None
        if isinstance(content, dict) and extension.get("name") == "cluster_info":
            return str(content.get("provider") or "")
    return ""
