"""Other people's pods in the same namespace: neither reached, nor shown, nor touched."""

from __future__ import annotations

from typing import Any

from tests.deploy.conftest import SLEEP, Environment, until

#: What a Helm release `shop` of chart `redis` gives its pods; so were ours found by.
HELM = {"app.kubernetes.io/name": "redis", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm"}
SHOP = f"services: {{redis: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0, expose: [6379]}}}}\n"


def release(namespace: str) -> list[dict[str, Any]]:
    """A Deployment and a Service as such a chart has them."""
    container = {"name": "redis", "image": "busybox:1.37", "command": ["sh", "-c", "echo of-helm; sleep 1000"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    selector = {key: HELM[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}
    metadata = {"name": "shop-redis-master", "namespace": namespace, "labels": HELM}
    template = {"metadata": {"labels": HELM}, "spec": spec}
    return [
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": selector}, "template": template},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": selector, "ports": [{"port": 6379}]},
        },
    ]  # fmt: skip


def addresses(environment: Environment, service: str) -> set[str]:
    """The pods that a Service leads to."""
    slices = environment.objects("discovery.k8s.io/v1", "EndpointSlice")
    own = [one for one in slices if one["metadata"]["labels"]["kubernetes.io/service-name"] == service]
    return {str(found["targetRef"]["name"]) for one in own for found in one.get("endpoints") or []}


def test_a_helm_release_of_the_same_names(environment: Environment) -> None:
    """Environment `shop` with a service `redis`, beside the release `shop` of chart `redis`.

    Each Service led to the other's pods, `logs` and `status` showed them, and `destroy` waited for them to end.
    """
    environment.name = "shop"
    environment.deploy(SHOP).expect()
    with environment.api() as api:
        for manifest in release(environment.namespace):
            api.apply(manifest)
    theirs = until(
        lambda: {
            name for one in environment.pods() if (name := one["metadata"]["name"]).startswith("shop-redis")
            and one["status"]["phase"] == "Running"
        }
    )  # fmt: skip
    ours = {one["metadata"]["name"] for one in environment.pods()} - theirs

    assert until(lambda: addresses(environment, "shop-redis-master")) == theirs
    assert addresses(environment, "redis") == ours
    (row,) = environment.platform("status", "--json").expect().json["services"]
    assert set(row["pods"]) == ours
    assert "of-helm" not in environment.platform("logs").expect().stdout

    environment.deploy(SHOP.replace("6379", "6380")).expect()
    environment.platform("destroy", "--yes").expect()
    assert {one["metadata"]["name"] for one in environment.pods()} == theirs
    assert {"Deployment/shop-redis-master", "Service/shop-redis-master"} == environment.names()
