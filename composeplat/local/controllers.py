"""What a cluster of one node needs besides Kubernetes itself: volumes, routes, and a few objects.

Owns the objects every cluster has (storage classes, ingress class, the DNS service), and the list of routes the ingress
serves.
It runs as a part of the cluster: what it makes is decided by pure functions below, and a change of any object it looks
at has it look again.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from pathlib import Path

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.local.layout import (
    DNS_SERVICE,
    INGRESS_CLASS,
    NODE_ADDRESS,
    PROVISIONER,
    SIZED_CLASS,
    STORAGE_CLASS,
)
from composeplat.local.live_objects import LiveObjects
from composeplat.local.metrics import Registration, metrics_objects
from composeplat.local.own_access import own_access
from composeplat.local.policies import PolicyKeeper
from composeplat.local.volumes import Volumes
from composeplat.system.atomic import write_file
from composeplat.system.threads import start_thread

#: For a cluster without a network of its own: the packet filter is the machine's there.
WITHOUT_POLICIES = "without-policies"
_RETRY_INTERVAL_S = 1.0
_REGISTRATION_INTERVAL_S = 0.5
_SERVICES = kind_path("v1", "Service")
_SLICES = kind_path("discovery.k8s.io/v1", "EndpointSlice")
_INGRESSES = kind_path("networking.k8s.io/v1", "Ingress")


_STORAGE = {
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}


def base_objects() -> list[Object]:
    """The objects every local cluster has."""
    return [
        _default_class("storage.k8s.io/v1", "StorageClass", STORAGE_CLASS, **_STORAGE),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": SIZED_CLASS},
            **_STORAGE,
        },
        _default_class(
            "networking.k8s.io/v1", "IngressClass", INGRESS_CLASS, spec={"controller": "dev.platform.com/ingress"}
        ),
        *_dns_objects(),
    ]


def _default_class(version: str, kind: str, name: str, **fields: object) -> Object:
    """A class that objects have which name none."""
    annotation = f"{kind.lower()}.kubernetes.io/is-default-class"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "annotations": {annotation: "true"}},
        **fields,
    }


def _dns_objects() -> list[Object]:
    """The address under which pods ask for names, and the process that answers: it is no pod."""
    dns = {"name": "kube-dns", "namespace": "kube-system"}
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": dns,
            "spec": {"clusterIP": DNS_SERVICE, "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**dns, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
            "ports": ports,
        },
    ]


# routes ---------------------------------------------------------------------------------------------------------------


def is_served(ingress: Object) -> bool:
    """Return whether an ingress is of our class."""
    return ingress.get("spec", {}).get("ingressClassName") in (None, INGRESS_CLASS)


def routes(ingresses: list[Object], services: list[Object], slices: list[Object]) -> list[dict[str, str]]:
    """Every route of the ingresses, longer paths first; a target is empty where nothing answers."""
    by_name = {(s["metadata"]["namespace"], s["metadata"]["name"]): s for s in services}
    found: list[dict[str, str]] = []
    for ingress in filter(is_served, ingresses):
        spec, namespace = ingress.get("spec", {}), ingress["metadata"]["namespace"]
        for rule in spec.get("rules") or []:
            for path in rule.get("http", {}).get("paths") or []:
                backend = path.get("backend", {}).get("service")
                if backend:
                    target = _target(by_name.get((namespace, backend["name"])), backend["port"], slices)
                    found.append(
                        {
                            "host": rule.get("host", ""),
                            "path": path.get("path") or "/",
                            "target": target,
                            "name": backend["name"],
                        }
                    )
    return sorted(found, key=lambda route: (route["host"], -len(route["path"]), route["path"]))


def _target(service: Object | None, wanted: Object, slices: list[Object]) -> str:
    """The address of a service's port: its own, or, where it is headless, one of its pods'."""
    if service is None:
        return ""
    spec = service["spec"]
    port = next(
        (p for p in spec.get("ports") or [] if wanted in ({"number": p["port"]}, {"name": p.get("name")})), None
    )
    if port is None:
        return ""
    metadata = service["metadata"]
    ready = [
        (address, slice_port.get("port") or port["port"])
        for endpoint_slice in slices
        if endpoint_slice["metadata"]["namespace"] == metadata["namespace"]
        and endpoint_slice["metadata"].get("labels", {}).get("kubernetes.io/service-name") == metadata["name"]
        for slice_port in endpoint_slice.get("ports") or []
        # A port without a name has an empty one in slices, and none in Services.
        if (slice_port.get("name") or "") == (port.get("name") or "")
        for endpoint in endpoint_slice.get("endpoints") or []
        # In slices that people write, no condition means ready.
        if (endpoint.get("conditions") or {}).get("ready", True)
        for address in endpoint["addresses"]
    ]
    if not ready:
        return ""
    address = spec.get("clusterIP")
    return f"{ready[0][0]}:{ready[0][1]}" if address in (None, "", "None") else f"{address}:{port['port']}"


# acting ---------------------------------------------------------------------------------------------------------------


class Controllers:
    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self.objects = LiveObjects(api)
        self.volumes = Volumes(api, self.objects, folder / "volumes")
        self._routes = ""

    def reconcile(self) -> None:
        """Create and delete volumes, and write the routes, as the objects of the cluster ask for."""
        self.volumes.reconcile()
        self._serve()

    def _serve(self) -> None:
        ingresses = self.objects.items(_INGRESSES)
        found = routes(ingresses, self.objects.items(_SERVICES), self.objects.items(_SLICES))
        text = json.dumps(found, indent=1)
        if text != self._routes:
            write_file(self.folder / "ingress" / "routes.json", text)
            self._routes = text
        for ingress in filter(is_served, ingresses):
            if not ingress.get("status", {}).get("loadBalancer", {}).get("ingress"):
                metadata = ingress["metadata"]
                path_of = kind_path("networking.k8s.io/v1", "Ingress", metadata["namespace"])
                status = {"loadBalancer": {"ingress": [{"hostname": "localhost"}]}}
                with contextlib.suppress(ApiError):
                    self.api.patch(f"{path_of}/{metadata['name']}/status", {"status": status})


def register_metrics(access: Access, states: Path, authority: bytes) -> None:
    """Register metrics-server while it runs, for as long as the cluster runs."""
    registration = Registration(Api(access), states, metrics_objects(authority))
    while True:
        with contextlib.suppress(ApiError):
            registration.update()
        time.sleep(_REGISTRATION_INTERVAL_S)


def main() -> None:
    folder = Path(sys.argv[1])
    access = own_access(folder / "keys", int(sys.argv[2]))
    authority = folder / "keys" / "ca.crt"
    metrics = (access, Path(sys.argv[3]), authority.read_bytes())
    threading.Thread(target=register_metrics, args=metrics, daemon=True).start()
    controllers = Controllers(Api(access), folder)
    if WITHOUT_POLICIES not in sys.argv:
        # The process then ends, and the supervisor starts it again: policies must not go unapplied.
        start_thread("policies", PolicyKeeper(Api(access)).run, controllers.objects.fail)
    reconcile_forever(controllers)


def reconcile_forever(controllers: Controllers) -> None:
    """Reconcile for as long as the cluster runs: the supervisor ends this process."""
    has_base_objects = False
    while True:
        try:
            if not has_base_objects:
                for manifest in base_objects():
                    controllers.api.apply(manifest)
                has_base_objects = True
            controllers.reconcile()
        except (ApiError, OSError) as error:
            # An OSError is a full disk: the next try may find space.
            sys.stderr.write(f"{error}\n")
            time.sleep(_RETRY_INTERVAL_S)
        else:
            controllers.objects.wait()


if __name__ == "__main__":
    main()
