"""Profiles and what services inherit, by what runs in a real cluster."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, until

PROFILES = """
x-platform: {full: true}
services:
  web: {extends: {file: common/base.yaml, service: base}, environment: [OWN=1]}
  debug: {extends: web, profiles: [debug], depends_on: [web]}
"""
BASE = f"""
services:
  base:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    env_file: base.env
    label_file: base.labels
"""


def test_a_profile_is_turned_on_and_off(environment: Environment) -> None:
    """A named service is deployed with its profile and what it inherits; without the profile it is deleted."""
    environment.write(PROFILES)
    environment.write(BASE, "common/base.yaml")
    environment.write("INHERITED=1\n", "common/base.env")
    environment.write("com.example.team=shop\n", "common/base.labels")
    environment.deploy("", "debug").expect()

    assert {name.partition("/")[2].removesuffix("-env") for name in environment.names()} == {"web", "debug"}
    kept = environment.platform("preview", "--profile=debug").expect()
    preview = environment.platform("preview").expect()
    assert "debug" not in kept.stdout
    assert "  - delete Deployment debug: its profile is off: debug\n" in preview.stdout
    (pod,) = environment.pods("debug")
    assert pod["metadata"]["annotations"]["com.example.team"] == "shop"
    assert environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $INHERITED $OWN") == "1 1\n"

    environment.deploy().expect()

    assert environment.names() == {"Deployment/web", "Service/web", "Secret/web-env"}


RESTARTS = f"""
x-platform: {{full: true}}
x-app: &app {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
services:
  db: {{<<: *app, environment: {{VERSION: "1"}}}}
  web: {{<<: *app, depends_on: {{db: {{condition: service_started, restart: true}}}}}}
  plain: {{<<: *app, depends_on: [db]}}
"""


def test_a_service_restarts_with_its_dependency(environment: Environment) -> None:
    """A changed dependency gives the dependent a new pod, and no one else; `restart` does the same."""
    environment.deploy(RESTARTS).expect()
    before = pod_uids(environment)
    environment.write(RESTARTS.replace('"1"', '"2"'))

    changes = environment.deploy("", "--json").expect().json["changes"]

    reasons = {change["name"]: change["reasons"] for change in changes if change["kind"] == "Deployment"}
    assert reasons == {"db": ["its variables or files"], "web": ["a service that restarts it"]}
    until(lambda: len(environment.pods()) == 3)
    after = pod_uids(environment)
    assert sorted(name for name in before if before[name] != after[name]) == ["db", "web"]
    restarted = environment.platform("restart", "db", "--json").expect()
    assert restarted.json["services"] == ["db", "web"]
    environment.platform("preview", "--expect-no-changes").expect()


def pod_uids(environment: Environment) -> dict[str, str]:
    return {pod["metadata"]["labels"]["dev.platform.com/service"]: pod["metadata"]["uid"] for pod in environment.pods()}
