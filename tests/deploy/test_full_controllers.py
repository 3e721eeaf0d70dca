"""Controllers of other kinds in full mode: DaemonSets, Jobs and CronJobs, by what they do in a real cluster."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

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


@pytest.mark.endurance
def test_a_deploy_wakes_and_removes_a_global_service(environment: Environment) -> None:
    """A deploy of sleeping services gives them pods; another mode replaces them."""
    environment.deploy(GLOBAL).expect()
    environment.platform("sleep").expect()

    woken = environment.platform("deploy", A="2").expect()

    assert " 1 replaced, " in woken.stderr
    assert "created" not in woken.stderr.splitlines()[-1]
    assert run_in(environment, "exec", "agent", "sh", "-c", "echo $A") == (0, "2\n")
    assert MARK not in json.dumps(daemon_set(environment))
    environment.deploy(GLOBAL.replace("mode: global, ", "")).expect()
    assert environment.objects("apps/v1", "DaemonSet") == []
    until(lambda: len(environment.pods("agent")) == 1)


JOBS = """
x-platform: {full: true}
services:
  backup:
    image: busybox
    command: sh -c 'echo "begin $$A"; sleep 1; echo end; exit 3'
    environment: {A: one}
    x-schedule: "0 0 29 2 *"
  web:
    image: busybox
    command: "true"
    depends_on: [backup]
    deploy: {mode: replicated-job, replicas: 2}
"""


def status_of(environment: Environment, service: str) -> dict[str, Any]:
    rows = environment.platform("status", "--json").expect().json["services"]
    return next(row for row in rows if row["service"] == service)


def ended_run(environment: Environment, service: str) -> dict[str, Any]:
    """Return the only run of a schedule once the cluster has seen its end, which is after that of the pod."""

    def ended() -> dict[str, Any] | None:
        (run,) = status_of(environment, service)["schedule"]["runs"]
        found: dict[str, Any] = run
        return found if found["result"] in ("completed", "failed") else None

    return until(ended)  # type: ignore[no-any-return]


def test_a_schedule_is_run_by_hand(environment: Environment) -> None:
    """A deploy does not wait for runs; `platform run` starts one, prints its log, and exits with its status."""
    environment.deploy(JOBS).expect()
    before = status_of(environment, "backup")
    assert (before["kind"], before["state"], before["problem"]) == ("CronJob", "scheduled", "")
    assert before["schedule"]["runs"] == []
    assert before["schedule"]["next_runs"][0].endswith("-02-29T00:00:00Z")
    web = environment.get("batch/v1", "Job", "web")
    assert web is not None
    assert web["status"]["succeeded"] == 2

    assert run_in(environment, "run", "backup") == (3, "begin one\nend\n")

    run = ended_run(environment, "backup")
    assert (run["result"], run["exit_status"], run["manual"]) == ("failed", 3, True)
    after = status_of(environment, "backup")
    assert (after["problem"], after["log_lines"]) == ("its last run failed with exit status 3", ["begin one", "end"])
    assert "backup: 0 0 29 2 * (Etc/UTC), last run failed" in environment.platform("status").expect().stdout
    job = environment.get("batch/v1", "Job", run["job"])
    assert job is not None
    assert [owner["kind"] for owner in job["metadata"]["ownerReferences"]] == ["CronJob"]
    assert environment.pods("backup") == []
    assert run_in(environment, "run", "backup", "sh", "-c", "echo $A two") == (0, "one two\n")
    environment.deploy().expect()
    assert environment.get("batch/v1", "Job", run["job"]) is not None
    environment.platform("destroy", "--yes").expect()
    until(lambda: environment.objects("batch/v1", "Job") == [])


@pytest.mark.endurance
def test_a_schedule_sleeps_and_runs_by_itself(environment: Environment) -> None:
    """A sleeping schedule starts nothing; awake, its runs start when they are due, and are in the history."""
    text = JOBS.replace("0 0 29 2 *", "* * * * *").replace("exit 3", "exit 0")
    environment.deploy(text).expect()
    environment.platform("sleep").expect()
    assert status_of(environment, "backup")["state"] == "asleep"
    assert status_of(environment, "backup")["schedule"]["next_runs"] == []

    environment.deploy(text).expect()

    assert status_of(environment, "backup")["state"] == "scheduled"
    until(lambda: environment.objects("batch/v1", "Job"), seconds=90)
    runs = until(lambda: status_of(environment, "backup")["schedule"]["runs"])
    assert runs[0]["manual"] is False


MANUAL = """
x-platform: {full: true}
services:
  web:
    image: busybox
    command: "true"
    restart: "no"
jobs:
  migrate:
    image: busybox
    command: echo migrated
    depends_on: [web]
    triggers: {manual: true}
  nightly:
    image: busybox
    triggers: {manual: false, schedule: ["0 3 * * 7"]}
"""


def test_a_job_that_only_a_person_starts(environment: Environment) -> None:
    """A deploy starts no job; `platform run` does, unless the schedule alone may."""
    environment.deploy(MANUAL).expect()
    assert status_of(environment, "migrate")["state"] == "manual"
    assert status_of(environment, "nightly")["schedule"]["cron"] == "0 3 * * 0"

    assert run_in(environment, "run", "migrate") == (0, "migrated\n")

    run = ended_run(environment, "migrate")
    assert (run["result"], run["exit_status"], run["manual"]) == ("completed", 0, True)
    refused = run_in(environment, "run", "nightly")
    assert refused[0] == 1
    assert "job 'nightly' starts on its schedule alone" in refused[1]
