"""Routes of the Gateway API on a cluster that has had its kind, and has it no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from composeplat.cluster.api import ApiError
from tests.deploy.conftest import Environment, until
from tests.deploy.test_import import kubectl

GROUP = "gateway.networking.k8s.io"
ROUTES = (f"{GROUP}/v1", "HTTPRoute")
NAME = f"httproutes.{GROUP}"
FILE = """\
services:
  web:
    image: busybox:1.37
    command: httpd -f -p 8080
    ports: ["80:8080"]
    stop_grace_period: 0s
"""


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute"},
            "versions": [version],
        },
    }


@pytest.fixture
def routes(environment: Environment) -> Iterator[None]:
    """The cluster has the kind of routes, until the test or its end removes it."""
    kubectl(environment, "apply", "-f", "-", given=json.dumps(definition()))
    until(lambda: is_served(environment))
    yield
    remove(environment)


def remove(environment: Environment) -> None:
    kubectl(environment, "delete", "customresourcedefinition", NAME, "--ignore-not-found")
    until(lambda: not is_served(environment))


def is_served(environment: Environment) -> bool:
    try:
        environment.objects(*ROUTES)
    except ApiError:
        return False
    return True


@pytest.mark.usefixtures("routes")
def test_routes_whose_kind_is_gone(environment: Environment) -> None:
    """Without the kind, a preview and a deploy end before anything changes; without a Gateway, both work again."""
    gateway = ("--gateway", "front")
    environment.deploy(FILE, "--domain", "apps.example.com", *gateway).expect()
    assert len(environment.objects(*ROUTES)) == 1
    environment.platform("preview", "--domain", "apps.example.com", "--expect-no-changes", *gateway).expect()

    remove(environment)

    for command in ("preview", "deploy"):
        refused = environment.platform(command, "--domain", "apps.example.com", *gateway).expect(4)
        assert (
            "error: endpoints are routes of Gateway 'front', and the cluster lacks their kind: HTTPRoute of"
            f" {GROUP}/v1\n"
            "  hint: install the Gateway API in the cluster, or leave --gateway out for Ingresses\n"
        ) in refused.stderr
    environment.platform("status").expect()

    shown = environment.platform("preview", "--domain", "apps.example.com").expect()
    assert "Ingress" in shown.stdout
    environment.platform("deploy", "--domain", "apps.example.com").expect()
    assert len(environment.objects("networking.k8s.io/v1", "Ingress")) == 1
    environment.platform("destroy", "--yes").expect()
