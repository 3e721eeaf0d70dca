"""Metrics on the local cluster: real figures of real pods, who may read them, and scaling by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.local.cluster import LocalCluster
from composeplat.local.layout import METRICS_PORT
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy.conftest import PORTS, SLEEP, Environment, until

#: The limit leaves the other tests their share of the processors.
FILE = f"""\
services:
  busy:
    image: 'busybox:1.37'
    command: sh -c 'trap exit TERM; while :; do :; done'
    deploy: {{resources: {{limits: {{cpus: '0.3'}}, reservations: {{cpus: '0.1', memory: 8M}}}}}}
    stop_grace_period: 0
  idle: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
"""
METRICS = "/apis/metrics.k8s.io/v1beta1"


def autoscaler(namespace: str) -> dict[str, Any]:
    """One or two pods, so that each uses half of the CPU that it requests."""
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "busy", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"},
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def kubectl_top(environment: Environment, *args: str) -> list[list[str]]:
    kube = Toolchain(os.environ).need(KUBE).path
    command = [str(kube), "kubectl", f"--kubeconfig={environment.cluster.layout.kubeconfig}", "top", *args]
    done = subprocess.run([*command, "--no-headers"], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.endurance
def test_real_figures(environment: Environment) -> None:
    """A pod that computes shows more CPU than an idle one, in both tools, and is scaled from one to two by that."""
    environment.deploy(FILE).expect()
    with environment.api() as api:
        api.apply(autoscaler(environment.namespace))
    early = environment.platform("top").expect()
    assert early.stdout or early.stderr == (
        "no metrics of these pods yet: a pod has its first some 20 s after its start\n"
    )

    def figures() -> dict[str, dict[str, Any]]:
        found = environment.platform("top", "--json").expect().json["pods"]
        return {pod["service"]: pod for pod in found} if len(found) > 1 else {}

    pods = until(figures)
    assert 150 < pods["busy"]["cpu"] <= 330
    assert pods["idle"]["cpu"] < 50
    assert all(50_000 < pod["memory"] < 50_000_000 for pod in pods.values())
    rows = environment.platform("top", "busy").expect().stdout.splitlines()
    assert rows[0].split() == ["SERVICE", "POD", "CPU", "MEMORY"]
    assert rows[1].split()[:2] == ["busy", pods["busy"]["pod"]]
    assert pods["busy"]["pod"] in [row[0] for row in kubectl_top(environment, "pods", "-n", environment.namespace)]
    assert [row[0] for row in kubectl_top(environment, "nodes")] == ["local"]
    until(lambda: len([pod for pod in environment.pods("busy") if pod["status"]["phase"] == "Running"]) == 2)


#: Asks a port of loopback for metrics, with headers, and prints the status.
ASK = f"""
import http.client, json, ssl, sys
context = ssl._create_unverified_context()
connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), timeout=10, context=context)
connection.request("GET", "{METRICS}/pods", headers=json.loads(sys.argv[2]))
print(connection.getresponse().status, end="")
"""


def ask(port: int, *before: str, **headers: str) -> str:
    sent = json.dumps({name.replace("_", "-"): value for name, value in headers.items()})
    command = [*before, sys.executable, "-c", ASK, str(port), sent]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_who_may_read(cluster: LocalCluster) -> None:
    """Nobody without a token reads metrics, also not as an administrator; the role "view" may read them."""
    token = (cluster.layout.keys / "token").read_text().strip()
    inside = partial(ask, METRICS_PORT, "nsenter", "-t", str(cluster.status().pid), "-n", "--")
    with Api(cluster.access) as api:
        until(lambda: api.find(METRICS))
        view = api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")

    assert any(rule.get("apiGroups") == ["metrics.k8s.io"] for rule in view["rules"])
    assert ask(PORTS["api"]) == inside() == "403"
    assert inside(X_Remote_User="admin", X_Remote_Group="system:masters") == "403"
    assert inside(Authorization="Bearer none") == "401"
    assert ask(PORTS["api"], Authorization=f"Bearer {token}") == inside(Authorization=f"Bearer {token}") == "200"
