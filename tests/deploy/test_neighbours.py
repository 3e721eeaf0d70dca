"""Other people's pods in the same namespace: neither reached, nor shown, nor touched."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.local.private_folder import remove_folder
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_up import SH, Up

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
    own = [manifest for manifest in slices if manifest["metadata"]["labels"]["kubernetes.io/service-name"] == service]
    return {str(found["targetRef"]["name"]) for item in own for found in item.get("endpoints") or []}


def install(environment: Environment) -> set[str]:
    """Install the release; gives the names of its pods, which run."""
    with environment.api() as api:
        for manifest in release(environment.namespace):
            api.apply(manifest)
    running = until(
        lambda: {
            name for pod in environment.pods() if (name := pod["metadata"]["name"]).startswith("shop-redis")
            and pod["status"]["phase"] == "Running"
        }
    )  # fmt: skip
    return set(running)


def test_a_helm_release_of_the_same_names(environment: Environment) -> None:
    """Environment `shop` with a service `redis`, beside the release `shop` of chart `redis`.

    Each Service led to the other's pods, `logs` and `status` showed them, and `destroy` waited for them to end.
    """
    environment.name = "shop"
    environment.deploy(SHOP).expect()
    theirs = install(environment)
    ours = {pod["metadata"]["name"] for pod in environment.pods()} - theirs

    assert until(lambda: addresses(environment, "shop-redis-master")) == theirs
    assert addresses(environment, "redis") == ours
    (row,) = environment.platform("status", "--json").expect().json["services"]
    assert set(row["pods"]) == ours
    assert "of-helm" not in environment.platform("logs").expect().stdout

    environment.deploy(SHOP.replace("6379", "6380")).expect()
    environment.platform("destroy", "--yes").expect()
    assert {pod["metadata"]["name"] for pod in environment.pods()} == theirs
    assert {"Deployment/shop-redis-master", "Service/shop-redis-master"} == environment.names()


@pytest.mark.endurance
def test_development_beside_a_helm_release(environment: Environment) -> None:
    """Under `platform up` too: the development container is reached by our Service alone, and reaches their pods not.

    Neither Deployment counts the other's pods as its own, and `status` and `logs` show ours alone.
    """
    environment.name = "shop"
    environment.write("one\n", "src/a.txt")
    environment.deploy(SHOP.replace("expose:", "volumes: ['./src:/src'], expose:")).expect()
    theirs = install(environment)
    up = Up(environment, "redis", *SH)
    up.prompt()
    dev_workload = {pod["metadata"]["name"] for pod in environment.pods()} - theirs

    assert len(dev_workload) == 1
    assert until(lambda: addresses(environment, "redis") == dev_workload)
    assert addresses(environment, "shop-redis-master") == theirs
    assert {name: pods_of(environment, name) for name in ("shop-redis-master", "redis-platform-up")} == {
        "shop-redis-master": theirs, "redis-platform-up": dev_workload,
    }  # fmt: skip
    (row,) = environment.platform("status", "--json").expect().json["services"]
    assert set(row["pods"]) == dev_workload
    assert "of-helm" not in environment.platform("logs").expect().stdout
    assert up.leave() == 0


def pods_of(environment: Environment, deployment: str) -> set[str]:
    """The pods that a Deployment's selector finds in the namespace, whosever they are."""
    found = environment.get("apps/v1", "Deployment", deployment)
    assert found is not None
    wanted = found["spec"]["selector"]["matchLabels"].items()
    return {pod["metadata"]["name"] for pod in environment.pods() if wanted <= pod["metadata"]["labels"].items()}


TWO = f"""\
services:
  web: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
  api: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, depends_on: [web]}}
"""


def take_name(environment: Environment, name: str) -> str:
    """Delete a Deployment of the environment, and create another one of its name; gives the uid."""
    spec = {"containers": [{"name": "c", "image": "busybox:1.37", "command": ["sleep", "1000"]}]}
    template = {"metadata": {"labels": {"app": "others"}}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}
    with environment.api() as api:
        api.delete(f"{kind_path('apps/v1', 'Deployment', environment.namespace)}/{name}")
        until(lambda: environment.get("apps/v1", "Deployment", name) is None)
        made = api.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": environment.namespace, "labels": {"app": "others"}},
                "spec": {"selector": {"matchLabels": {"app": "others"}}, "template": template},
            }
        )
    return str(made["metadata"]["uid"])


def is_left(environment: Environment, name: str, uid: str) -> bool:
    found = environment.get("apps/v1", "Deployment", name)
    return found is not None and found["metadata"]["uid"] == uid and "deletionTimestamp" not in found["metadata"]


def test_an_object_that_someone_else_created_again(environment: Environment) -> None:
    """It has the name of one of ours that was deleted: no deploy without its service and no destroy deletes it."""
    environment.deploy(TWO).expect()
    web = take_name(environment, "web")
    lines = [line.replace(", depends_on: [web]", "") for line in TWO.splitlines() if "web: " not in line]
    environment.write("\n".join(lines))

    preview = environment.platform("preview").expect()
    assert "Deployment web" not in preview.stdout
    assert "Service web" in preview.stdout
    assert "Deployment/web stays" in preview.stdout + preview.stderr
    deployed = environment.deploy().expect()
    assert "Deployment/web stays" in deployed.stderr
    assert is_left(environment, "web", web)

    api = take_name(environment, "api")
    environment.platform("destroy", "--yes").expect()
    assert is_left(environment, "web", web)
    assert is_left(environment, "api", api)
    assert environment.get("v1", "Service", "api") is None


def odd_objects(namespace: str) -> list[dict[str, Any]]:
    """What the API server takes, and few have: a range with a zero in front, and a port without a number."""
    metadata = {"name": "odd", "namespace": namespace}
    backend = {"service": {"name": "odd", "port": {"number": 80}}}
    rule = {"host": "*.odd.localhost", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    egress = {"to": [{"ipBlock": {"cidr": "192.168.010.0/24"}}]}
    labels = {"kubernetes.io/service-name": "odd"}
    endpoint = {"addresses": ["10.1.2.3"], "conditions": {"ready": True}}
    return [
        {
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata,
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [egress]},
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}},
        {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {**metadata, "labels": labels},
            "addressType": "IPv4", "ports": [{"name": "", "protocol": "TCP"}], "endpoints": [endpoint],
        },
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": {"rules": [rule]}},
    ]  # fmt: skip


def test_odd_objects_stop_no_controller_of_the_local_cluster(environment: Environment) -> None:
    """Nor does a volume with more folders in one another than Python removes: volumes are made and removed on."""
    text = SHOP.replace("expose: [6379]", "volumes: ['data:/data']") + "volumes: {data: {}}\n"
    environment.deploy(text).expect()
    (pod,) = environment.pods("redis")
    nest = "cd /data; for i in $(seq 1500); do mkdir d && cd d; done"
    environment.exec(pod["metadata"]["name"], "sh", "-c", nest)
    (claim,) = environment.objects("v1", "PersistentVolumeClaim")
    volume = environment.cluster.layout.volumes / claim["spec"]["volumeName"]
    assert (volume / "d/d/d").exists()
    with environment.api() as api:
        for manifest in odd_objects(environment.namespace):
            api.apply(manifest)

    environment.platform("destroy", "--volumes", "--yes").expect()
    try:
        until(lambda: not volume.exists())
    finally:
        # Nor can pytest remove it.
        remove_folder(volume)
    environment.deploy().expect()
