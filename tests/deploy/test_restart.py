"""`platform restart`: new pods with the same settings, dependencies first."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, until

SHOP = f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  db:
    <<: *app
    healthcheck: {{test: test -e /bin/ready, interval: 1s}}
    command: sh -c "sleep 2; touch /bin/ready; trap true TERM; sleep 1000000 & wait; true"
  web: {{<<: *app, depends_on: {{db: {{condition: service_healthy}}}}}}
  kept: {{<<: *app, volumes: ['data:/data'], labels: {{dev.platform.com/update: on-delete}}}}
  once: {{<<: *app, restart: "no", command: "true"}}
volumes: {{data: }}
"""


def uids(environment: Environment) -> dict[str, str]:
    return {pod["metadata"]["labels"]["dev.platform.com/service"]: pod["metadata"]["uid"] for pod in environment.pods()}


def test_restart(environment: Environment) -> None:
    """Each service gets a new pod, in order; a preview finds no change, and a job is left alone."""
    environment.deploy(SHOP).expect()
    before = uids(environment)
    restarted = environment.platform("restart", "--json").expect()
    assert restarted.json["services"] == ["db", "web", "kept"]
    after = uids(environment)
    assert {name for name in before if before[name] != after[name]} == {"db", "kept", "web"}
    (web,) = environment.pods("web")
    (db,) = environment.pods("db")
    ready = next(c["lastTransitionTime"] for c in db["status"]["conditions"] if c["type"] == "Ready")
    assert web["metadata"]["creationTimestamp"] >= ready
    environment.platform("preview", "--expect-no-changes").expect()

    named = environment.platform("restart", "web", "once").expect()
    assert "once is a job: platform deploy --rerun-jobs runs it again" in named.stderr
    until(lambda: uids(environment)["web"] != after["web"])
    assert {**uids(environment), "web": ""} == {**after, "web": ""}
    environment.platform("refresh").expect()
    environment.platform("preview", "--expect-no-changes").expect()
