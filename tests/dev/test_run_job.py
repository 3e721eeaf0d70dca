"""The Job of a run that a person starts, from the template of a CronJob."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Queue
from typing import Any
from unittest.mock import Mock

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.dev.run_job import RunJob, make_run
from composeplat.dev.run_pod import RunOptions
from composeplat.diagnostics import ComposeplatError
from tests.cluster.objects import Answer, Server, given, refusal

PODS = "/api/v1/namespaces/team/pods"
CRON_JOB: dict[str, Any] = {
    "metadata": {"name": "backup", "namespace": "team", "uid": "u"},
    "spec": {
        "jobTemplate": {
            "metadata": {"labels": {"dev.platform.com/environment": "shop", "dev.platform.com/service": "backup"}},
            "spec": {
                "backoffLimit": 6,
                "completions": 2,
                "parallelism": 2,
                "template": {
                    "metadata": {
                        "labels": {"dev.platform.com/environment": "shop", "dev.platform.com/service": "backup"},
                        "annotations": {"note": "kept"},
                    },
                    "spec": {
                        "containers": [{"name": "backup"}],
                        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["backup"]}],
                    },
                },
            },
        }
    },
}


def test_one_try_of_one_pod_beside_the_service() -> None:
    """The CronJob owns the run, and no Service selects its pod; the CronJob itself is not changed."""
    made = make_run(CRON_JOB, "backup-run-1")

    head, spec = made["metadata"], made["spec"]
    assert head["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "u", "controller": True}
    ]
    assert head["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert set(spec) == {"backoffLimit", "template"}
    assert spec["backoffLimit"] == 0
    assert spec["template"]["metadata"] == {
        "labels": {"dev.platform.com/environment": "shop", "dev.platform.com/run": "backup"},
        "annotations": {"note": "kept", "dev.platform.com/keep": "true"},
    }
    assert spec["template"]["spec"] == {"containers": [{"name": "backup"}]}
    assert "hostAliases" in CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_only_a_run_without_settings_is_one_of_the_schedule() -> None:
    """With a command or another setting it is a one-off pod."""
    assert RunOptions().is_as_scheduled
    assert RunOptions(detached=True, kept=True).is_as_scheduled
    assert not RunOptions(command=("sh",)).is_as_scheduled
    assert not RunOptions(environment={"A": "1"}).is_as_scheduled


POD = "/api/v1/namespaces/team/pods/backup-1"


@dataclass(slots=True)
class Logs(Server):
    """Answers reads of the pod and of its log, with one answer after the other; the last stays. A watch is silent."""

    pods: list[Answer] = field(default_factory=list)
    logs: list[Answer] = field(default_factory=list)
    idle: Queue[dict[str, Any] | None] = field(default_factory=Queue)

    def answer(self, path: str) -> Answer:
        if "watch=1" in path:
            return Answer(events=self.idle)
        if path.startswith(f"{POD}/log"):
            return _next(self.logs)
        return _next(self.pods) if path == POD else given(_pod("Running"), version="5")

    def follows(self) -> int:
        return sum("/log?" in path for path in self.paths)


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    monkeypatch.setattr("composeplat.dev.run_job._POLL_INTERVAL_S", 0)
    with Logs() as server:
        yield server
        for _ in server.paths:
            server.idle.put(None)


def test_a_log_through_a_server_that_fails(logs: Logs) -> None:
    """A log is read on where the API server or a kubelet fails for a moment: the run was deleted, which still ran."""
    first, both = b"2025-06-01T12:00:01Z begun\n", b"2025-06-01T12:00:01Z begun\n2025-06-01T12:00:02Z done\n"
    logs.pods = [_object(_pod("Running")), refusal(502, "no server"), _object(_pod("Running")), _object(_pod("Failed"))]
    logs.logs = [refusal(500, "the kubelet does not answer"), Answer(first), Answer(silent=True), Answer(both)]
    with Api(logs.access) as api:
        assert list(job_of(api).lines("backup-1")) == ["begun", "done"]


def test_a_log_whose_connection_becomes_silent(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is held open and forwards nothing, the log is read over a new one, and no line twice: it waited."""
    monkeypatch.setattr("composeplat.cluster.api._MAX_WATCH_SILENCE_S", 0.3)
    before = set(threading.enumerate())
    held: Queue[bytes | None] = Queue()
    held.put(b"2025-06-01T12:00:01Z begun\n")
    rest = b"2025-06-01T12:00:01Z begun\n2025-06-01T12:00:02Z done\n"
    logs.pods = [_object(_pod("Running")), _object(_pod("Failed"))]
    logs.logs = [Answer(lines=held), Answer(rest)]
    with Api(logs.access) as api:
        assert list(job_of(api).lines("backup-1")) == ["begun", "done"]
    held.put(None)

    assert logs.follows() == 2
    assert "watch" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_a_pod_that_is_gone() -> None:
    """The log of an evicted pod ends, and what follows says so: the message was the API server's, of a missing pod."""
    with Server(otherwise=refusal(404, 'pods "backup-1" not found')) as server, Api(server.access) as api:
        job = RunJob(api=api, plan=Mock(namespace="team"), service=Mock(cluster_name="backup"))
        assert list(job.lines("backup-1")) == []
        server.answers[PODS] = given()
        server.otherwise = _object({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
        with pytest.raises(
            ComposeplatError, match="pod 'backup-1' was evicted from its node, or deleted, while it ran"
        ):
            job.exit_status("backup", "backup-1")
        server.otherwise = _object({"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        assert job.exit_status("backup", "backup-1") == 0


def test_a_pod_that_is_evicted(capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit status counts, with a note about its end."""
    found = {
        "metadata": {"name": "backup-1", "deletionTimestamp": "2025-06-01T12:00:00Z"},
        "status": {
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
            "containerStatuses": [{"name": "backup", "state": {"terminated": {"exitCode": 143}}}],
        },
    }
    with Server(otherwise=given(found)) as server, Api(server.access) as api:
        job = RunJob(api=api, plan=Mock(namespace="team"), service=Mock(cluster_name="backup"))

        assert job.exit_status("backup", "backup-1") == 143
    assert capsys.readouterr().err == "pod 'backup-1' was evicted from its node\n"


def test_a_log_that_may_not_be_read() -> None:
    """A refusal is an error at once."""
    with (
        Server(otherwise=refusal(403, "no logs for you")) as server,
        Api(server.access) as api,
        pytest.raises(ApiError, match="no logs for you"),
    ):
        list(job_of(api).lines("backup-1"))


def test_the_end_of_its_own_container() -> None:
    """Another container in the pod, as of a service mesh, has its own status, and may run on: that was taken.

    A server that fails for a moment costs neither the status nor the run.
    """
    statuses = [
        {"name": "added", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 0}}},
        {"name": "backup", "state": {"terminated": {"exitCode": 7}}},
    ]
    found = {"metadata": {"name": "backup-1"}, "status": {"phase": "Running", "containerStatuses": statuses}}
    log = "/api/v1/namespaces/team/pods/backup-1/log"
    with (
        Server(answers={log: Answer(b"2025-06-01T12:00:01Z done\n")}, otherwise=_object(found)) as server,
        Api(server.access) as api,
    ):
        job = job_of(api)
        assert list(itertools.islice(job.lines("backup-1"), 2)) == ["done"]
        assert sum("/log?" in path for path in server.paths) == 1
        server.otherwise = given(found)
        server.first = [refusal(500, "no server")]
        assert job.exit_status("backup", "backup-1") == 7


def job_of(api: Api) -> RunJob:
    return RunJob(api=api, plan=Mock(namespace="team"), service=Mock(cluster_name="backup"))


def _next(answers: list[Answer]) -> Answer:
    return answers.pop(0) if len(answers) > 1 else answers[0]


def _pod(phase: str) -> dict[str, Any]:
    return {"status": {"phase": phase}, "metadata": {"name": "backup-1", "uid": "u", "resourceVersion": "5"}}


def _object(found: dict[str, Any]) -> Answer:
    return Answer(json.dumps(found).encode())
