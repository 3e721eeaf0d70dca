"""Commands on a service that runs in another's pod, in full mode: they act on its container, its ports or its pod."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_full_expose import ask
from tests.deploy.test_full_pods import inside
from tests.deploy.test_full_watch import Watch

PROJECT = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    command: {SLEEP}
    stop_grace_period: 0
  side:
    image: busybox
    command: sh -c 'nc -ll -p 7777 -e echo side & trap exit TERM; while :; do sleep 0.2; done'
    network_mode: service:web
    stop_grace_period: 0
    expose: [7777]
    x-expose: {{type: NodePort, ports: [7777]}}
    develop:
      watch: [{{path: ./src, action: sync, target: /watched}}]
"""


def read(environment: Environment, service: str, path: str) -> str:
    """The content of a file in a service's container; empty if there is none."""
    with contextlib.suppress(subprocess.CalledProcessError):
        return inside(environment, service, "cat", path)
    return ""


def figures(environment: Environment) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = environment.platform("top", "side", "--json").expect().json["pods"]
    return found


def test_commands_on_a_service_of_another_pod(environment: Environment) -> None:
    """Files are copied and synced into its container alone; its port is reached; it sleeps and wakes with its pod."""
    environment.write("first", "src/page")
    environment.deploy(PROJECT).expect()
    environment.platform("cp", "src", "side:/copied").expect()
    environment.platform("cp", "side:/copied/page", "back").expect()
    assert (environment.folder / "back").read_text() == "first"
    assert read(environment, "web", "/copied/page") == ""

    (row,) = environment.platform("port", "side", "--json").expect().json["ports"]
    assert until(lambda: ask(environment, row["urls"][0])) == "side"

    watch = Watch(environment, "watch", "side")
    watch.until("watching", service="side")
    environment.write("second", "src/page")
    watch.until("copied", service="side")
    assert read(environment, "side", "/watched/page") == "second"
    assert read(environment, "web", "/watched/page") == ""
    assert watch.end() == 130

    (used,) = until(lambda: figures(environment))
    (pod,) = environment.pods()
    assert used["pod"] == pod["metadata"]["name"]

    environment.platform("sleep").expect()
    until(lambda: not environment.pods())
    states = {row["service"]: row["state"] for row in environment.platform("status", "--json").json["services"]}
    assert states == {"web": "asleep", "side": "asleep"}
    environment.platform("wake").expect()
    assert until(lambda: ask(environment, row["urls"][0])) == "side"
