"""`platform up` of services with controllers of other kinds, in full mode: a DaemonSet, and a CronJob."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_up import plainly

PROJECT = f"""
x-platform: {{full: true}}
services:
  agent:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    environment: {{NAME: agent}}
    deploy: {{mode: global}}
    volumes: [./src:/src]
  backup:
    image: busybox
    command: echo done
    environment: {{NAME: backup}}
    x-schedule: "0 0 29 2 *"
    volumes: [./src:/src]
"""


def kinds(environment: Environment) -> dict[str, tuple[str, str]]:
    rows = environment.platform("status", "--json").expect().json["services"]
    return {row["service"]: (row["kind"], row["state"]) for row in rows}


def is_suspended(environment: Environment) -> bool:
    (schedule,) = environment.objects("batch/v1", "CronJob")
    return bool(schedule["spec"]["suspend"])


def test_other_kinds_are_developed(environment: Environment) -> None:
    """A dev workload replaces the pods of a DaemonSet, or suspends a CronJob; `down` brings back what was."""
    environment.write("synced", "src/page")
    environment.deploy(PROJECT).expect()
    before = kinds(environment)
    show = ("--", "sh", "-c", "echo $NAME; cat /src/page")

    assert plainly(environment, "agent", *show).expect().stdout == "agent\nsynced"
    assert plainly(environment, "backup", *show).expect().stdout == "backup\nsynced"

    assert kinds(environment) == {"agent": ("DaemonSet", "in-development"), "backup": ("CronJob", "in-development")}
    assert is_suspended(environment)
    assert {owner["kind"] for pod in environment.pods() for owner in pod["metadata"]["ownerReferences"]} == {
        "ReplicaSet"
    }
    assert "platform down SERVICE" in environment.platform("down").expect(1).stderr
    for service in before:
        environment.platform("down", service).expect()
    assert until(lambda: kinds(environment) == before)
    assert not is_suspended(environment)
    environment.platform("preview", "--expect-no-changes").expect()
