"""Changes between two deploys that the API server refuses, or that another part of the file takes over."""

from __future__ import annotations

import pytest

from tests.deploy.conftest import SLEEP, Environment

WEB = f'services: {{web: {{image: busybox:1.37, command: "{SLEEP}", stop_grace_period: 0s, labels: {{%s}}}}}}'
CONFIG = f"""\
x-platform: {{full: true}}
services:
  web:
    image: busybox:1.37
    command: "{SLEEP}"
    stop_grace_period: 0s
    configs: [{{source: KEY, target: /settings}}]
configs: {{KEY: {{name: settings, content: "a=1"}}}}
"""


@pytest.mark.endurance
def test_another_anonymous_volume(environment: Environment) -> None:
    """The StatefulSet is replaced, which the preview shows; so is the way back by a rollback."""
    text = WEB.replace("labels: {%s}", "volumes: [%s]")
    environment.deploy(text % "/cache").expect()

    environment.write(text % "/cache, /data")
    assert "! replace StatefulSet web" in environment.platform("preview").expect().stdout
    environment.deploy().expect()
    environment.platform("rollback", "--yes").expect()
    (after,) = environment.objects("apps/v1", "StatefulSet")
    assert [claim["metadata"]["name"] for claim in after["spec"]["volumeClaimTemplates"]] == ["anonymous-cache"]

    environment.deploy(text % "").expect()
    environment.write(text % "/cache")
    assert "! replace StatefulSet web" not in environment.platform("preview").expect().stdout


@pytest.mark.endurance
def test_a_kind_that_only_the_file_has(environment: Environment) -> None:
    """A service is shown, restarted and run as it is deployed, also if the file makes it something else by now."""
    environment.deploy(WEB % "").expect()

    environment.write(WEB.replace("labels: {%s}", "volumes: [/cache]"))
    (row,) = environment.platform("status", "--json").expect().json["services"]
    assert (row["kind"], row["state"], len(row["pods"])) == ("Deployment", "ready", 1)
    assert "busybox:1.37" in environment.platform("images").expect().stdout
    assert "not deployed" not in environment.platform("logs").expect().stderr
    placed = {"PLATFORM_NAMESPACE": environment.namespace, "COMPOSE_PROJECT_NAME": environment.name}
    # The options that come after the command are its own.
    assert environment.platform("run", "-T", "web", "echo", "ran", **placed).expect().stdout.startswith("ran ")
    environment.platform("restart", "web").expect()
    (after,) = environment.platform("status", "--json").expect().json["services"]
    assert after["pods"] != row["pods"]


@pytest.mark.endurance
def test_an_update_policy_that_becomes_recreate(environment: Environment) -> None:
    """The Deployment is replaced, which the preview shows; back again it is not."""
    environment.deploy(WEB % "").expect()
    (before,) = environment.objects("apps/v1", "Deployment")

    environment.write(WEB % "dev.platform.com/update: recreate")
    assert "! replace Deployment web" in environment.platform("preview").expect().stdout
    environment.deploy().expect()
    (after,) = environment.objects("apps/v1", "Deployment")
    assert after["spec"]["strategy"] == {"type": "Recreate"}
    assert after["metadata"]["uid"] != before["metadata"]["uid"]

    environment.deploy(WEB % "").expect()
    (last,) = environment.objects("apps/v1", "Deployment")
    assert last["metadata"]["uid"] == after["metadata"]["uid"]
    assert last["spec"]["strategy"]["type"] == "RollingUpdate"


def test_a_config_with_another_key(environment: Environment) -> None:
    """Its object has the same name, so it stays, and the pod can read it."""
    environment.deploy(CONFIG.replace("KEY", "first")).expect()
    environment.deploy(CONFIG.replace("KEY", "second")).expect()

    (pod,) = environment.pods("web")
    assert environment.exec(pod["metadata"]["name"], "cat", "/settings") == "a=1"
    (config,) = [o for o in environment.objects("v1", "ConfigMap") if o["metadata"]["name"] == "settings"]
    assert "deletionTimestamp" not in config["metadata"]
    environment.platform("preview").expect()
