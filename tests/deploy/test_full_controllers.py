"""Controllers of other kinds in full mode: DaemonSets, by what they do in a real cluster."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.deploy.conftest import PLATFORM, SLEEP, Environment, until

GLOBAL = f"""
x-platform: {{full: true}}
services:
  agent:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    environment: {{A: "${{A:-1}}"}}
    deploy: {{mode: global, update_config: {{order: start-first}}}}
  web:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    depends_on: [agent]
"""
MARK = "dev.platform.com/asleep"


def daemon_set(environment: Environment) -> dict[str, Any]:
    found = environment.get("apps/v1", "DaemonSet", "agent")
    assert found is not None
    return found


def run_in(environment: Environment, command: str, *args: str) -> tuple[int, str]:
    """Run a command whose arguments come last; return its status and what it prints."""
    options = ("--name", environment.name, "--namespace", environment.namespace)
    done = subprocess.run(
        [str(PLATFORM), command, *options, *args], cwd=environment.folder, env=environment.variables,
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def states(environment: Environment) -> dict[str, tuple[str, str, int, int]]:
    rows = environment.platform("status", "--json").expect().json["services"]
    return {row["service"]: (row["kind"], row["state"], row["ready"], row["desired"]) for row in rows}


def test_global_service(environment: Environment) -> None:
    """A DaemonSet is deployed, sleeps on no node, wakes as it was, and is restarted, run, updated and destroyed."""
    environment.deploy(GLOBAL).expect()
    template = daemon_set(environment)["spec"]["template"]
    (before,) = environment.pods("agent")
    assert states(environment)["agent"] == ("DaemonSet", "ready", 1, 1)

    environment.platform("sleep").expect()

    assert environment.pods() == []
    assert states(environment)["agent"] == ("DaemonSet", "asleep", 0, 0)
    assert run_in(environment, "run", "agent", "echo", "one-off") == (0, "one-off\n")
    environment.platform("wake").expect()
    assert daemon_set(environment)["spec"]["template"] == template
    assert MARK not in json.dumps(daemon_set(environment))
    (awake,) = environment.pods("agent")
    assert awake["metadata"]["uid"] != before["metadata"]["uid"]
    preview = environment.platform("preview", "--json").expect().json
    assert preview["changes"] == []

    environment.platform("restart", "agent").expect()

    (restarted,) = environment.pods("agent")
    assert restarted["metadata"]["uid"] != awake["metadata"]["uid"]
    assert run_in(environment, "exec", "agent", "sh", "-c", "echo $A") == (0, "1\n")


def test_a_deploy_wakes_and_removes_a_global_service(environment: Environment) -> None:
    """A deploy of sleeping services gives them pods; another mode replaces them."""
    environment.deploy(GLOBAL).expect()
    environment.platform("sleep").expect()

    environment.platform("deploy", A="2").expect()

    assert run_in(environment, "exec", "agent", "sh", "-c", "echo $A") == (0, "2\n")
    assert MARK not in json.dumps(daemon_set(environment))
    environment.deploy(GLOBAL.replace("mode: global, ", "")).expect()
    assert environment.objects("apps/v1", "DaemonSet") == []
    until(lambda: len(environment.pods("agent")) == 1)
