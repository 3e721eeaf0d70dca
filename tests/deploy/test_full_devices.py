"""Devices in full mode: a pod runs on a node that has the resource of its devices."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_full_scheduling import patch_node, phases

PROJECT = f"""
x-platform: {{full: true}}
x-app: &app {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
services:
  few: {{<<: *app, devices: [/dev/ttyUSB0], x-devices: &names {{/dev/ttyUSB0: example.com/serial}}}}
  many:
    <<: *app
    devices: [/dev/ttyUSB0, /dev/ttyUSB1]
    x-devices: {{<<: *names, /dev/ttyUSB1: example.com/serial}}
"""


def test_a_device_is_a_resource_of_the_node(environment: Environment) -> None:
    """The node has one such device: the pod with one runs, and that with two waits."""
    devices = {"example.com/serial": "1"}
    patch_node(environment, {"status": {"capacity": devices, "allocatable": devices}}, "/status")

    environment.deploy(PROJECT, "--no-wait").expect()

    until(lambda: phases(environment) == {"few": ["Running"], "many": ["Pending"]})
