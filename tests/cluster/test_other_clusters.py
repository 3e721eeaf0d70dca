"""Local clusters of other programs: how they are recognized, and the command that loads an image into each."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.other_clusters import OtherCluster, recognize

#: As minikube writes it.
MINIKUBE: dict[str, Any] = {
    "server": "https://192.168.49.2:8443",
    "extensions": [
        {
            "name": "cluster_info",
            "extension": {
                "last-update": "Mon, 19 May 2025 12:59:54 IST",
                "provider": "minikube.sigs.k8s.io",
                "version": "v1.35.0",
            },
        }
    ],
}


@pytest.mark.parametrize(
    ("cluster", "entry", "host", "title", "args", "policy"),
    [
        ("kind-kind", {}, "127.0.0.1", "kind cluster 'kind'", "kind load image-archive A --name kind", "Never"),
        ("kind-dev", {}, "127.0.0.1", "kind cluster 'dev'", "kind load image-archive A --name dev", "Never"),
        ("k3d-a-b", {}, "0.0.0.0", "k3d cluster 'a-b'", "k3d image import A --cluster a-b", "Never"),  # noqa: S104
        ("minikube", {}, "192.168.49.2", "minikube", "minikube image load A --profile minikube", "Never"),
        ("work", MINIKUBE, "192.168.49.2", "minikube cluster 'work'", "minikube image load A --profile work", "Never"),
        (
            "docker-desktop",
            {},
            "kubernetes.docker.internal",
            "Docker Desktop",
            "docker image load --input A",
            "IfNotPresent",
        ),
        (
            "rancher-desktop",
            {},
            "127.0.0.1",
            "Rancher Desktop",
            "nerdctl --namespace k8s.io image load --input A",
            "Never",
        ),
        ("orbstack", {}, "127.0.0.1", "OrbStack", "docker image load --input A", "Never"),
    ],
)
def test_recognized(cluster: str, entry: dict[str, Any], host: str, title: str, args: str, policy: str) -> None:
    """Each is recognized by the entries of its program in the kubeconfig, and has its documented command."""
    found = recognize(cluster, entry, host)

    assert found is not None
    assert found.title == title
    assert found.load_command("A", runs_containerd=True) == args.split()
    assert found.product.pull_policy == policy


def test_rancher_desktop_with_docker() -> None:
    """Rancher Desktop with Docker's engine has the images of that engine."""
    found = recognize("rancher-desktop", {}, "127.0.0.1")

    assert found is not None
    assert found.load_command("A", runs_containerd=False) == ["docker", "image", "load", "--input", "A"]
    assert found.product.programs == {"docker", "nerdctl"}


@pytest.mark.parametrize(
    ("cluster", "entry", "host"),
    [
        ("kind-prod", {}, "api.example.com"),
        ("minikube", MINIKUBE, "8.8.8.8"),
        ("kind-", {}, "127.0.0.1"),
        ("kind", {}, "127.0.0.1"),
        ("production", {}, "127.0.0.1"),
        ("work", {"extensions": "minikube.sigs.k8s.io"}, "127.0.0.1"),
        ("work", {"extensions": [None, {"name": "cluster_info", "extension": "x"}]}, "127.0.0.1"),
        ("", {}, "127.0.0.1"),
    ],
)
def test_not_recognized(cluster: str, entry: dict[str, Any], host: str) -> None:
    """A cluster elsewhere, or with another name, is none of these."""
    assert recognize(cluster, entry, host) is None


def test_the_archive_is_one_argument() -> None:
    """A path with spaces or braces stays one argument."""
    found = recognize("kind-dev", {}, "127.0.0.1")

    assert isinstance(found, OtherCluster)
    assert found.load_command("/a b/{name}", runs_containerd=True)[3] == "/a b/{name}"
