"""Jobs that fail: their exit status, last lines and what their container lacks, at once and afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy.conftest import SLEEP, Environment, Ran, an_environment, until

FILES = {
    "Dockerfile": "FROM busybox:1.37\n",
    "sql/init.sql": "select 1;\n",
    "compose.yaml": f"""\
services:
  migrate:
    build: .
    command: sh -c 'exec 2>&1; echo reading; cat /sql/init.sql'
    restart: on-failure
    deploy: {{restart_policy: {{max_attempts: 1}}}}
    volumes:
      - ./sql:/sql
  web:
    image: busybox:1.37
    command: "{SLEEP}"
    stop_grace_period: 0
    depends_on: {{migrate: {{condition: service_completed_successfully}}}}
""",
}
MISSING = "cat: can't open '/sql/init.sql': No such file or directory"
LEFT_OUT = "compose.yaml:8:9: note: services.migrate.volumes[0] is a host volume of a service that is built"
LACKS = "left out of its container: services.migrate.volumes[0] (compose.yaml:8:9)"
CAUSE = "failed with exit status 1, after 2 tries"


@pytest.fixture(scope="module")
def failed(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Environment, Ran]]:
    """A migration whose file is not in its image, as in a report: 300 s went by without a line of its log."""
    with an_environment(cluster, tmp_path_factory.mktemp("job"), tmp_path_factory.mktemp("private")) as made:
        for name, text in FILES.items():
            made.write(text, name)
        yield made, made.deploy()


def test_a_try_that_failed_is_reported_while_it_tries_on(failed: tuple[Environment, Ran]) -> None:
    """The first try that fails is reported with its lines and what was left out; the same again is one line."""
    _, ran = failed
    lines = ran.stderr.splitlines()
    (warning,) = (n for n, line in enumerate(lines) if line.endswith("[job-retry]"))
    last = next(n for n, line in enumerate(lines) if line.endswith("[deploy-failed]"))

    assert "services.migrate: failed with exit status 1 in try 1 of 2, and tries again" in lines[warning]
    assert lines[warning:].index(f"    {MISSING}") < last - warning
    assert ran.stderr.count(LEFT_OUT) == 2


def test_the_last_failure_ends_the_deploy(failed: tuple[Environment, Ran]) -> None:
    """The deploy reports the exit status, the last lines and the omitted volumes; then the dependents."""
    environment, ran = failed
    ran.expect(1)
    last = ran.stderr[ran.stderr.index("[deploy-failed]") :]

    assert f"services.migrate: {CAUSE} [deploy-failed]" in ran.stderr
    assert f"    reading\n    {MISSING}\n" in last
    assert LEFT_OUT in last
    assert f"services.web: waits for migrate, which {CAUSE}" in last
    assert environment.pods("web") == []


def test_status_and_logs_show_it_afterwards(failed: tuple[Environment, Ran]) -> None:
    """Both have the reason, the lines of the failed pods, and what was left out."""
    environment, _ = failed
    status = environment.platform("status").expect().stdout
    (row,) = (
        item for item in environment.platform("status", "--json").json["services"] if item["service"] == "migrate"
    )
    logs = environment.platform("logs", "migrate").expect()

    assert f"  migrate: {CAUSE}\n    reading\n    {MISSING}\n    {LACKS}\n" in status
    assert row["log_lines"] == ["reading", MISSING]
    assert [(item["line"], item["column"]) for item in row["omitted_volumes"]] == [(8, 9)]
    assert logs.stdout.count(MISSING) == 2
    assert logs.stderr == f"migrate: {CAUSE}\n  {LACKS}\n"


def test_the_next_deploy_shows_it_again(failed: tuple[Environment, Ran]) -> None:
    """Without a change nothing is tried again, and the reason is reported with its lines at once."""
    environment, _ = failed
    again = environment.deploy().expect(1)

    assert f"services.migrate: {CAUSE} [deploy-failed]" in again.stderr
    assert f"    {MISSING}\n" in again.stderr
    assert again.seconds < 30


def test_deleted_pods(failed: tuple[Environment, Ran]) -> None:
    """Where someone has deleted a failed job's pods, that is reported, and not that the environment has none."""
    environment, _ = failed
    with environment.api() as api:
        for pod in environment.pods("migrate"):
            api.delete(f"{kind_path('v1', 'Pod', environment.namespace)}/{pod['metadata']['name']}")
    until(lambda: not environment.pods("migrate"))
    gone = (
        "migrate: failed, after 2 tries; its pods are gone, and their logs with them (run it again with --rerun-jobs)\n"
    )

    assert environment.platform("logs", "migrate").expect().stderr == f"{gone}  {LACKS}\n"
    assert gone in environment.platform("status").expect().stdout


@pytest.mark.endurance
def test_a_first_try_is_reported_within_seconds(environment: Environment) -> None:
    """A job that has many tries left is reported by its first, and given up with its lines when the time is over."""
    began = time.monotonic()
    text = (
        "services: {migrate: {image: 'busybox:1.37', command: \"sh -c 'echo no table; exit 3'\", restart: on-failure}}"
    )
    environment.write(text)
    process = environment.start("deploy", "--timeout", "15", "--progress", "plain")
    assert process.stderr is not None
    for line in process.stderr:
        if "[job-retry]" in line:
            break
    first = time.monotonic() - began
    rest = process.stderr.read()

    assert first < 15
    assert "services.migrate: has not completed after 15 s: failed with exit status 3 in try" in rest
    assert rest.count("    no table\n") == 2
    assert process.wait() == 1


def evict(environment: Environment, pod: str) -> None:
    """Evict a pod as the drain of its node does."""
    names = {"name": pod, "namespace": environment.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": names}
    path = f"{kind_path('v1', 'Pod', environment.namespace)}/{pod}/eviction"
    kubectl = [str(Toolchain(os.environ).need(KUBE).path), "kubectl"]
    kubectl.append(f"--kubeconfig={environment.cluster.layout.kubeconfig}")
    subprocess.run([*kubectl, "create", "--raw", path, "-f", "-"], input=json.dumps(eviction), text=True, check=True)


MIGRATION = f"""\
services:
  migrate:
    image: busybox:1.37
    command: sh -c 'trap "sleep 3; exit 3" TERM; echo begun; for i in 1 2 3 4 5 6 7 8; do sleep 1; done'
    restart: RESTART
  web:
    image: busybox:1.37
    command: "{SLEEP}"
    stop_grace_period: 0
    depends_on: {{migrate: {{condition: service_completed_successfully}}}}
"""


def evict_during_deploy(environment: Environment, restart: str) -> tuple[int, str]:
    """Evict the pod of a job while a deploy waits for it; return the deploy's exit status and messages."""
    environment.write(MIGRATION.replace("RESTART", restart))
    process = environment.start("deploy", "--progress", "plain")
    (pod,) = until(lambda: [found for found in environment.pods("migrate") if found["status"]["phase"] == "Running"])
    evict(environment, pod["metadata"]["name"])
    _, messages = process.communicate(timeout=240)
    return process.returncode, messages


@pytest.mark.endurance
def test_an_evicted_pod_is_no_failed_try(environment: Environment) -> None:
    """A deploy waits for the next pod of a job whose pod is evicted, and warns of no failure."""
    status, messages = evict_during_deploy(environment, "on-failure")

    assert status == 0, messages
    assert "[job-retry]" not in messages
    (web,) = environment.pods("web")
    assert web["status"]["phase"] == "Running"


def test_an_evicted_job_without_further_tries(environment: Environment) -> None:
    """A job that may run only once has failed, and not its program."""
    status, messages = evict_during_deploy(environment, "'no'")

    assert status == 1
    assert "services.migrate: was evicted from its node [deploy-failed]" in messages
    assert "hint: run it again with --rerun-jobs" in messages
    assert "services.web: waits for migrate, which was evicted from its node" in messages


def test_a_running_job_that_changes(environment: Environment) -> None:
    """Its pod has ended before that of its successor is created: both would do the same work at once."""
    text = """\
services:
  job:
    image: busybox:1.37
    restart: "no"
    stop_grace_period: 4s
    command: sh -c 'trap "" TERM; sleep 1000'
"""
    environment.deploy(text).expect()
    environment.write(text.replace("sleep 1000", "true"))
    deploy, most = environment.start("deploy"), 0
    while deploy.poll() is None:
        pods = [pod for pod in environment.objects("v1", "Pod") if pod["status"]["phase"] in ("Pending", "Running")]
        most = max(most, len(pods))

    assert (deploy.returncode, most) == (0, 1)
    assert "job: waits until its old pods have ended" in deploy.communicate()[1]
