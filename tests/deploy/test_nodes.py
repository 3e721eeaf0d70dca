"""Pods that share a volume are kept on one node: real scheduling, on nodes that only pretend to run pods.

The volumes are of a storage that every node can mount, so that nothing but the rule holds pods to a node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from tests.conftest import Project
from tests.deploy.conftest import PORTS, Environment, an_environment, running_cluster, until

FLAG = "OKTETO_COMPOSE_VOLUME_AFFINITY_ENABLED"
NODES = kind_path("v1", "Node")

APP = "x-app: &app {image: 'app:1', expose: ['80']}\nservices:\n"
#: Two services of three pods each, which share a volume.
SHARED = (
    APP
    + "  web: {<<: *app, scale: 3, volumes: ['data:/data']}\n"
    + "  worker: {<<: *app, scale: 3, volumes: ['data:/data']}\n"
    + "volumes: {data: {class: nfs}}\n"
)
#: The second shares one volume with the first, and another with the third.
CHAIN = (
    APP
    + "  web: {<<: *app, scale: 2, volumes: ['pages:/pages']}\n"
    + "  worker: {<<: *app, volumes: ['pages:/pages', 'index:/index']}\n"
    + "  search: {<<: *app, scale: 2, volumes: ['index:/index']}\n"
    + "volumes: {pages: {class: nfs}, index: {class: nfs}}\n"
)


def storage() -> Iterator[dict[str, object]]:
    """A class of volumes that every node can mount, and more of them than the tests need."""
    yield {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nfs"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate",
    }  # fmt: skip
    for number in range(20):
        yield {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"nfs-{number}"},
            "spec": {
                "storageClassName": "nfs", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "nfs": {"server": "storage.example.com", "path": "/"},
            },
        }  # fmt: skip


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of four simulated nodes, with such storage."""
    ports = {"api": PORTS["api"] + 13}
    with running_cluster(tmp_path_factory.mktemp("nodes"), ports, simulated=4) as made:
        with Api(made.access) as api:
            for item in storage():
                api.apply(item)
        yield made


@pytest.fixture
def environment(nodes: LocalCluster, project: Project, tmp_path: Path) -> Iterator[Environment]:
    with an_environment(nodes, project({}).path, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def is_stable(nodes: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """An environment whose two services share a volume."""
    with an_environment(nodes, tmp_path_factory.mktemp("settled"), tmp_path_factory.mktemp("private")) as made:
        made.deploy(SHARED).expect()
        yield made


@pytest.fixture
def home(is_stable: Environment) -> Iterator[str]:
    """The node where its pods are, to which no other pod may come for a while."""
    (found,) = where(is_stable, "web", "worker")
    with is_stable.api() as api:
        api.patch(f"{NODES}/{found}", {"spec": {"unschedulable": True}})
        yield found
        api.patch(f"{NODES}/{found}", {"spec": {"unschedulable": None}})


def where(environment: Environment, *services: str) -> set[str]:
    """The nodes of services' pods."""
    return {str(pod["spec"].get("nodeName")) for service in services for pod in environment.pods(service)}


def test_one_node(is_stable: Environment) -> None:
    """All pods of the services that share a volume are on one node."""
    assert [len(is_stable.pods(service)) for service in ("web", "worker")] == [3, 3]
    assert len(where(is_stable, "web", "worker")) == 1


def test_one_node_for_a_chain(environment: Environment) -> None:
    """A service that shares one volume here and another there has all its sharers on its node."""
    environment.deploy(CHAIN).expect()

    assert [len(environment.pods(service)) for service in ("web", "worker", "search")] == [2, 1, 2]
    assert len(where(environment, "web", "worker", "search")) == 1


def test_asked_not_to(environment: Environment) -> None:
    """With the rule off the scheduler spreads the pods of each service over the nodes."""
    environment.write(SHARED)
    environment.platform("deploy", **{FLAG: "false"}).expect()

    assert [len(where(environment, service)) for service in ("web", "worker")] == [3, 3]


@pytest.mark.endurance
def test_asked_later(environment: Environment) -> None:
    """A deploy that turns the rule off lets pods go where there is room; one that turns it on gathers them again."""
    environment.deploy(SHARED).expect()
    (home,) = where(environment, "web", "worker")

    environment.platform("deploy", **{FLAG: "false"}).expect()
    apart = where(environment, "web", "worker")
    environment.platform("deploy").expect()

    assert len(apart - {home}) >= 2
    assert len(where(environment, "web", "worker")) == 1


def test_another_volume_of_the_namespace(is_stable: Environment, home: str, tmp_path: Path) -> None:
    """Another environment beside it, with a volume of its own, is not drawn to its node."""
    other = replace(is_stable, name="other", folder=tmp_path)
    text = SHARED.replace("web:", "shop:").replace("worker:", "mail:").replace("data", "more")

    other.deploy(text).expect()

    (found,) = where(other, "shop", "mail")
    assert found != home


def test_the_same_names_in_another_namespace(is_stable: Environment, home: str, environment: Environment) -> None:
    """An environment of the same name, with a volume of the same name, is not drawn to the node of the other one."""
    assert environment.name == is_stable.name
    environment.deploy(SHARED).expect()

    (found,) = where(environment, "web", "worker")
    assert found != home


def test_no_other_node_will_do(is_stable: Environment, home: str) -> None:
    """One pod more waits for the node where the others are, though there are free ones."""
    is_stable.write(SHARED.replace("scale: 3", "scale: 4", 1))
    is_stable.platform("deploy", "--no-wait").expect()

    def refused() -> str:
        conditions = [c for pod in is_stable.pods("web") for c in pod["status"].get("conditions", ())]
        return "".join(c["message"] for c in conditions if c.get("reason") == "Unschedulable")

    assert "3 node(s) didn't match pod affinity rules" in until(refused)
    assert {home, "None"} == where(is_stable, "web")


def test_a_node_that_an_autoscaler_adds(nodes: LocalCluster, environment: Environment) -> None:
    """A pod that no node can run is waited for while an autoscaler says that it adds one: longer than 8 seconds."""
    environment.write(APP + "  web: {<<: *app, x-node-selector: {pool: new}}\n")
    process = environment.start("deploy", "--progress", "plain")
    pod = until(lambda: next((p for p in environment.pods("web") if p["status"].get("conditions")), None))
    nominated = {
        "apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": "Nominated",
        "metadata": {"name": f"{pod['metadata']['name']}.1", "namespace": environment.namespace},
        "involvedObject": {"kind": "Pod", **{key: pod["metadata"][key] for key in ("name", "namespace", "uid")}},
        "message": "Pod should schedule on: nodeclaim/new-1", "source": {"component": "karpenter"},
    }  # fmt: skip
    with Api(nodes.access) as api:
        api.apply(nominated)
        time.sleep(10)
        assert process.poll() is None
        path = f"{NODES}/{api.items(NODES)[0]['metadata']['name']}"
        api.patch(path, {"metadata": {"labels": {"pool": "new"}}})
        try:
            _, output = process.communicate(timeout=30)
        finally:
            api.patch(path, {"metadata": {"labels": {"pool": None}}})

    assert process.returncode == 0, output
    assert "no node can run it yet: a node is being prepared" in output


@pytest.mark.endurance
def test_an_autoscaler_that_has_not_spoken(nodes: LocalCluster, environment: Environment) -> None:
    """Where a cluster has an autoscaler, a pod that no node can run is no failure before that has had its time."""
    status = {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
    }  # fmt: skip
    text = APP + "  web: {<<: *app, x-node-selector: {pool: new}}\n"
    with Api(nodes.access) as api:
        api.apply(status)
        try:
            ran = environment.deploy(text, "--timeout", "12", "--json").expect(1)
        finally:
            api.delete(f"{kind_path('v1', 'ConfigMap', 'kube-system')}/cluster-autoscaler-status")
    without = environment.deploy("", "--json").expect(1)

    assert [row["code"] for row in ran.json["failures"]] == ["timeout"]
    assert [row["code"] for row in without.json["failures"]] == ["unschedulable"]
    assert without.seconds < 30


SILENT = "silent-node"
SILENT_HINT = (
    f"kubectl describe node {SILENT} says since when; if it is gone for good, kubectl delete node {SILENT} lets its"
    " pods go"
)


@pytest.fixture
def unreachable_node(nodes: LocalCluster) -> Iterator[None]:
    """A node whose kubelet has gone: nothing starts there, and nothing ends."""
    amount = {"cpu": "8", "memory": "8Gi", "pods": "100"}
    status = {"capacity": amount, "allocatable": amount, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": SILENT, "labels": {"pool": "silent"}}
    with Api(nodes.access) as api:
        api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
        yield
        api.delete(f"{NODES}/{SILENT}")


def lose_pod(environment: Environment, service: str) -> None:
    """Let the pod of a service be as one that ran there when the kubelet went."""

    def scheduled() -> list[dict[str, Any]]:
        return [pod for pod in environment.pods(service) if pod["spec"].get("nodeName")]

    (pod,) = until(scheduled)
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    container = {"name": service, "image": "app:1", "imageID": "", "ready": True, "restartCount": 0}
    containers = [{**container, "state": {"running": {}}}]
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": containers}
    with environment.api() as api:
        path = kind_path("v1", "Pod", environment.namespace)
        api.patch(f"{path}/{pod['metadata']['name']}/status", {"status": status})


@pytest.mark.usefixtures("unreachable_node")
def test_a_node_that_does_not_report(environment: Environment) -> None:
    """Its pods can neither become ready nor end: status, a deploy and sleep say that, with a hint."""
    app = "<<: *app, x-node-selector: {pool: silent}"
    text = f"{APP}  web: {{{app}}}\n  db: {{{app}, volumes: ['data:/data']}}\nvolumes: {{data: {{class: nfs}}}}\n"
    environment.deploy(text, "--no-wait").expect()
    for service in ("web", "db"):
        lose_pod(environment, service)

    rows = environment.platform("status", "--json").expect().json["services"]
    late = environment.deploy("", "--timeout", "3").expect(1)
    asleep = environment.platform("sleep", "--timeout", "2").expect(1)
    environment.platform("wake", "--no-wait").expect()
    ending = environment.platform("status", "--json").expect().json["services"]

    assert {(row["state"], row["problem"], row["hint"]) for row in rows} == {
        ("started", f"0/1 ready, its node '{SILENT}' does not report", SILENT_HINT)
    }
    assert f"is not ready after 3 s: 0/1 ready, its node '{SILENT}' does not report" in late.stderr
    assert late.stderr.count(f"  hint: {SILENT_HINT}\n") == 2
    assert "db-0" in asleep.stderr
    assert f"  hint: {SILENT_HINT}\n" in asleep.stderr
    assert [(row["problem"], row["hint"]) for row in ending if row["service"] == "db"] == [
        (f"0/1 ready, db-0 is still ending: its node '{SILENT}' does not report", SILENT_HINT)
    ]
