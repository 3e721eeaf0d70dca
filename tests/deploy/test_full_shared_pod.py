"""Commands on a service that runs in another's pod, in full mode: they act on its container, its ports or its pod."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

import pytest

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
    command: sh -c 'nc -ll -p 7777 -e echo side & trap true TERM; sleep 1000000 & wait; true'
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

    assert " sleeps: side, web, " in environment.platform("sleep").expect().stderr
    until(lambda: not environment.pods())
    states = {row["service"]: row["state"] for row in environment.platform("status", "--json").json["services"]}
    assert states == {"web": "asleep", "side": "asleep"}
    environment.platform("wake").expect()
    assert until(lambda: ask(environment, row["urls"][0])) == "side"


@pytest.mark.endurance
def test_a_definition_of_other_pods_than_those_that_run(environment: Environment) -> None:
    """After a rollback a service is found in the pods in which it runs, not in those that the file has for it."""
    service = f"{{image: busybox, command: {SLEEP}, stop_grace_period: 0%s}}"
    joined, alone = (
        f"x-platform: {{full: true}}\nservices:\n  web: {service % ''}\n  side: {service % more}\n"
        for more in (', network_mode: "service:web"', "")
    )
    environment.deploy(joined).expect()
    environment.deploy(alone).expect()
    for number, workload in (("1", "web"), ("2", "side")):
        environment.platform("rollback", number, "--yes").expect()
        environment.write(alone if workload == "web" else joined)

        assert states(environment) == {"web": "ready", "side": "ready"}
        for command in ("exec", "run"):
            environment.platform(command, *names(environment), "side", "true").expect()
        restarted = environment.platform("restart", "side").expect()
        assert f"restarted {workload}, " in restarted.stderr


def test_a_definition_of_another_kind_than_the_one_that_runs(environment: Environment) -> None:
    """A schedule that the file does not have any more is shown, and a dependency of another kind is there."""
    service = f"{{image: busybox, command: {SLEEP}, stop_grace_period: 0%s}}"
    text = f"x-platform: {{full: true}}\nservices:\n  job: {service % '%s'}\n  db: {service % '%s'}\n"
    text += f"  web: {service % ', depends_on: [db]'}\nvolumes: {{data: {{}}}}\n"
    environment.deploy(text % (", x-schedule: 0 3 * * *", "")).expect()
    environment.write(text % ("", ", volumes: ['data:/data']"))

    assert states(environment) == {"web": "ready", "db": "ready", "job": "scheduled"}
    environment.platform("run", *names(environment), "web", "true").expect()


def names(environment: Environment) -> tuple[str, ...]:
    """The options before a service: what comes after it belongs to the command."""
    return "-T", "--name", environment.name, "--namespace", environment.namespace


def states(environment: Environment) -> dict[str, str]:
    rows = environment.platform("status", "--json").expect().json["services"]
    return {row["service"]: row["state"] for row in rows}


def test_a_pod_that_waits_for_a_service_that_fails(environment: Environment) -> None:
    """Each service in the pod says which one of them waits, and for what."""
    outcome = environment.deploy(
        f"""
x-platform: {{full: true}}
services:
  db:
    image: busybox
    command: sh -c 'exit 3'
    stop_grace_period: 0
    healthcheck: {{test: "true"}}
  api:
    image: busybox
    command: {SLEEP}
    depends_on: {{db: {{condition: service_healthy}}}}
  side:
    image: busybox
    command: {SLEEP}
    network_mode: service:api
"""
    )

    assert outcome.status == 1
    assert "error: services.side: is in the pods of api, which waits for db, which " in outcome.stderr
    assert "error: services.api: waits for db, which " in outcome.stderr
