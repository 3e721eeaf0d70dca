"""Rolling back in full mode: what ran before a deploy that failed runs again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.conftest import SLEEP, Environment


def project(image: str, command: str, secret: str) -> str:
    return f"""
x-platform: {{full: true}}
services:
  web:
    image: {image}
    command: {command}
    stop_grace_period: 0
    environment: {{TOKEN: "{secret}"}}
    deploy: {{update_config: {{failure_action: rollback}}}}
  other:
    image: busybox
    command: {SLEEP}
    stop_grace_period: 0
    environment: {{TOKEN: "{secret}"}}
"""


def images(environment: Environment) -> list[str]:
    workload = environment.get("apps/v1", "Deployment", "web")
    assert workload
    return [container["image"] for container in workload["spec"]["template"]["spec"]["containers"]]


def test_what_ran_before_runs_again(environment: Environment) -> None:
    """With its image, command and variables; the deploy fails with the reason, and its change is pending again."""
    good = project("busybox:1.37", SLEEP, "first-token")
    environment.deploy(good).expect()

    failed = environment.deploy(project("busybox", "no-such-program", "second-token")).expect(1)

    assert "no-such-program" in failed.stderr
    assert "rolling back, as the deploy failed: web\n" in failed.stderr
    assert "web: rolled back to busybox:1.37\n" in failed.stderr
    assert images(environment) == ["busybox:1.37"]
    token = ["sh", "-c", "echo $TOKEN"]
    (pod,) = [pod for pod in environment.pods("web") if pod["status"]["phase"] == "Running"]
    assert environment.exec(pod["metadata"]["name"], *token) == "first-token\n"
    (other,) = environment.pods("other")
    assert environment.exec(other["metadata"]["name"], *token) == "second-token\n"

    pending = environment.platform("preview", "--json").expect().json["changes"]
    assert {change["kind"] for change in pending} == {"Deployment", "Secret"}
    assert {change["name"] for change in pending} == {"web", "web-env"}
    assert "first-token" not in str(environment.state())
    other_kept = good.rpartition("first-token")
    environment.write("second-token".join((other_kept[0], other_kept[2])))
    environment.platform("preview", "--expect-no-changes").expect()


@pytest.mark.endurance
def test_a_dependency_of_the_named_service(environment: Environment) -> None:
    """A deploy of a service rolls back its dependencies too, and leaves the others alone."""
    user = f"  user: {{image: busybox, command: {SLEEP}, stop_grace_period: 0, depends_on: [web]}}\n"
    good = project("busybox:1.37", SLEEP, "first-token") + user
    environment.deploy(good).expect()

    environment.write(project("busybox", "no-such-program", "second-token") + user)
    failed = environment.platform("deploy", "user").expect(1)

    assert "web: rolled back to busybox:1.37\n" in failed.stderr
    assert images(environment) == ["busybox:1.37"]
    pending = environment.platform("preview", "--json").expect().json["changes"]
    assert {change["name"] for change in pending} == {"web", "web-env", "other", "other-env"}


def test_what_was_held_back_stays_so(environment: Environment) -> None:
    """A job that waits for the service which failed does not run beside the old version of that."""
    job = "  migrate: {{image: busybox, restart: 'no', command: echo {0}, depends_on: [web]}}\n"
    environment.deploy(project("busybox:1.37", SLEEP, "token") + job.format("first")).expect()

    failed = environment.deploy(project("busybox", "no-such-program", "token") + job.format("second")).expect(1)

    assert "web: rolled back to busybox:1.37\n" in failed.stderr
    assert images(environment) == ["busybox:1.37"]
    # The deploy had deleted the job of before.
    assert environment.get("batch/v1", "Job", "migrate") is None
    pending = environment.platform("preview", "--json").expect().json["changes"]
    assert {change["name"] for change in pending} == {"web", "migrate"}


CHECKED = """
x-platform: {{full: true}}
services:
  web:
    image: busybox:1.37
    command: {command}
    stop_grace_period: 0
    environment: {{API_TOKEN: "{value}"}}
    volumes: ["data:/data"]
    healthcheck:
      test: test ! -e /data/broken || {{ echo no entry with $$API_TOKEN; exit 1; }}
      interval: 1s
      retries: 1
    deploy: {{update_config: {{failure_action: rollback}}}}
volumes: {{data: }}
"""


def test_secrets_that_come_back(environment: Environment) -> None:
    """A message about what runs again has them, and masks them, though the file has others."""
    environment.deploy(CHECKED.format(command=SLEEP, value="first-token")).expect()
    (pod,) = environment.pods("web")
    environment.exec(pod["metadata"]["name"], "touch", "/data/broken")

    failed = environment.deploy(CHECKED.format(command=SLEEP, value="second-token"), "--timeout", "20").expect(1)

    assert "web: rolled back to busybox:1.37, and it fails too: " in failed.stderr
    assert "no entry with [secret]" in failed.stderr.partition("web: rolled back to")[2]
    assert "first-token" not in failed.stderr + failed.stdout
    logs = list((Path(environment.variables["COMPOSEPLAT_DATA"]) / "stacks").rglob("operation.jsonl"))
    assert logs
    assert all("first-token" not in path.read_text() for path in logs)


BUILT = """
x-platform: {full: true}
services:
  web:
    build: ./web
    stop_grace_period: 0
    deploy: {update_config: {failure_action: rollback}}
"""


def test_the_image_that_was_built_before_runs_again(environment: Environment) -> None:
    """By its digest, as the tag names the build whose container failed; the deploy gives the reason."""
    build(environment, f"CMD {SLEEP}")
    environment.deploy(BUILT).expect()
    (before,) = images(environment)

    build(environment, "CMD echo no license; exit 3")
    failed = environment.deploy().expect(1)

    assert "@sha256:" in before
    assert "no license" in failed.stderr
    assert f"web: rolled back to {before}\n" in failed.stderr
    assert images(environment) == [before]
    (pod,) = [pod for pod in environment.pods("web") if pod["status"]["phase"] == "Running"]
    assert pod["status"]["containerStatuses"][0]["imageID"].endswith(before.rpartition("@")[2])


def build(environment: Environment, lines: str) -> None:
    environment.write(f"FROM busybox:1.37\n{lines}\n", "web/Dockerfile")
