"""The domain and the ingress class of other local clusters, from their programs and their classes."""

from __future__ import annotations

import pytest

from composeplat.cluster.capabilities import Classes
from composeplat.cluster.endpoint_defaults import derive_defaults
from composeplat.cluster.other_clusters import PRODUCTS

NGINX = Classes(names=("nginx",))
TRAEFIK = Classes(names=("traefik",), default="traefik")
TWO = Classes(names=("nginx", "traefik"))
OTHERS = Classes(names=("a", "b"))


@pytest.mark.parametrize(
    ("title", "classes", "is_mapped", "domain", "chosen"),
    [
        ("kind", NGINX, True, "localhost", "nginx"),
        ("kind", NGINX, False, "", "nginx"),
        ("kind", Classes(), True, "", ""),
        ("kind", TWO, True, "", ""),
        ("k3d", TRAEFIK, True, "localhost", "traefik"),
        ("k3d", TRAEFIK, False, "", "traefik"),
        ("minikube", NGINX, True, "", "nginx"),
        ("Docker Desktop", NGINX, False, "localhost", "nginx"),
        ("Docker Desktop", Classes(), True, "", ""),
        ("Rancher Desktop", TWO, False, "localhost", "traefik"),
        ("Rancher Desktop", Classes(names=("nginx", "traefik"), default="nginx"), False, "localhost", "nginx"),
        ("Rancher Desktop", OTHERS, False, "", ""),
        ("OrbStack", NGINX, False, "k8s.orb.local", "nginx"),
    ],
)
def test_defaults(title: str, classes: Classes, *, is_mapped: bool, domain: str, chosen: str) -> None:
    """A domain is known only with a class, and on this machine's ports only if something listens there."""
    (product,) = (product for product in PRODUCTS if product.title == title)

    found = derive_defaults(product, classes, lambda: is_mapped)

    assert (found.domain, found.ingress_class, found.classes) == (domain, chosen, classes.names)
