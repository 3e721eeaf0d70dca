"""Where pods run in full mode: on nodes whose labels meet the constraints, and which have the devices."""

from __future__ import annotations

from typing import Any

from composeplat.cluster.kinds import kind_path
from composeplat.local.layout import NODE
from tests.deploy.conftest import SLEEP, Environment, until

PROJECT = f"""
x-platform: {{full: true}}
x-app: &app {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
services:
  here: {{<<: *app, deploy: {{placement: {{constraints: [node.labels.zone == eu, node.platform.os == linux]}}}}}}
  there: {{<<: *app, deploy: {{placement: {{constraints: [node.labels.zone == us]}}}}}}
  fast: {{<<: *app, gpus: [{{driver: example.com/npu, count: 1}}]}}
  faster: {{<<: *app, gpus: [{{driver: example.com/npu, count: 3}}]}}
  alone: {{<<: *app, deploy: {{replicas: 2, placement: {{max_replicas_per_node: 1}}}}}}
"""


def phases(environment: Environment) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pod in environment.pods():
        service = pod["metadata"]["labels"]["dev.platform.com/service"]
        found.setdefault(service, []).append(pod["status"]["phase"])
    return {service: sorted(names) for service, names in sorted(found.items())}


def patch_node(environment: Environment, patch: dict[str, Any], subresource: str = "") -> None:
    with environment.api() as api:
        api.patch(f"{kind_path('v1', 'Node')}/{NODE}{subresource}", patch)


def test_pods_run_where_labels_and_devices_allow(environment: Environment) -> None:
    """A pod waits for a node with its label or its devices, and a second one for a second node."""
    patch_node(environment, {"metadata": {"labels": {"zone": "eu"}}})
    devices = {"example.com/npu": "2"}
    patch_node(environment, {"status": {"capacity": devices, "allocatable": devices}}, "/status")

    environment.deploy(PROJECT, "--no-wait").expect()

    expected = {
        "alone": ["Pending", "Running"],
        "fast": ["Running"],
        "faster": ["Pending"],
        "here": ["Running"],
        "there": ["Pending"],
    }
    until(lambda: phases(environment) == expected)
