"""Replacing a workload: which of its pods are waited for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.dev.dev_workload import DevWorkloadInputs, fingerprint
from composeplat.dev.lease import LEASE_ANNOTATION, SessionLease
from composeplat.dev.replacement import Replacement
from composeplat.diagnostics import ComposeplatError
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.plan.identity import Identity
from tests.cluster.objects import Answer, Server, given, refusal, until

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "web", "uid": "j1", "labels": {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "shop"}},
    "spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "web", "image": "app"}]}}},
}
INPUTS = DevWorkloadInputs(
    identity=Identity(environment="shop", namespace="team"), service="web", paths=(), helper="agent"
)
FREE = SessionLease({"id": "mine"}, may_take=lambda _: None, may_keep=lambda _: None)
RUNNING: dict[str, Any] = {**JOB["spec"], "suspend": False}
RECORD = '{"kind": "Job", "name": "web", "replicas": 1}'
CLAIM = "/api/v1/namespaces/team/persistentvolumeclaims/web-platform-files"
DEV_WORKLOAD = "/apis/apps/v1/namespaces/team/deployments/web-platform-up"


def pod(phase: str) -> dict[str, Any]:
    owners = [{"kind": "Job", "name": "web", "uid": "j1"}]
    return {"metadata": {"name": "web-1", "uid": "p1", "ownerReferences": owners}, "status": {"phase": phase}}


@pytest.fixture
def server() -> Iterator[Server]:
    answers = {
        "/apis/batch/v1/namespaces/team/jobs/web": Answer(json.dumps(JOB).encode()),
        DEV_WORKLOAD: refusal(404, "none"),
        f"{DEV_WORKLOAD}?fieldManager=composeplat&force=true": Answer(),
        "/api/v1/namespaces/team/pods": given(),
    }
    with Server(answers=answers, otherwise=Answer(b'{"metadata": {}}')) as server:
        yield server


@pytest.fixture
def replacement(server: Server) -> Iterator[Replacement]:
    with Api(server.access) as api:
        yield Replacement(api=api, namespace="team", environment="shop", kind="Job", name="web")


@pytest.mark.parametrize(
    ("phase", "is_waited_for"), [("Succeeded", False), ("Failed", False), ("Running", True)], ids=str
)
def test_pods_that_have_ended(
    server: Server, replacement: Replacement, monkeypatch: pytest.MonkeyPatch, phase: str, *, is_waited_for: bool
) -> None:
    """A pod of a Job stays when it has ended, and so does one that its node has evicted: `up` waited for its end."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    server.answers["/api/v1/namespaces/team/pods"] = given(pod(phase))
    with pytest.raises(ComposeplatError, match="have not ended") if is_waited_for else nullcontext():
        replacement.replace(INPUTS, FREE)


@pytest.mark.parametrize(("owner", "is_waited_for"), [("c1", True), ("c2", False)])
def test_a_run_of_a_schedule(
    server: Server, monkeypatch: pytest.MonkeyPatch, owner: str, *, is_waited_for: bool
) -> None:
    """A Job of a CronJob runs on when that is suspended: it may write to the volume of the development container."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    template = JOB["spec"]["template"]
    schedule = {
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": {**JOB["metadata"], "uid": "c1"},
        "spec": {"jobTemplate": {"spec": {"template": template}}},
    }
    job = {"metadata": {"name": "web", "ownerReferences": [{"kind": "CronJob", "name": "web", "uid": owner}]}}
    server.answers |= {
        "/apis/batch/v1/namespaces/team/cronjobs/web": Answer(json.dumps(schedule).encode()),
        "/apis/batch/v1/namespaces/team/jobs/web": Answer(json.dumps(job).encode()),
        "/api/v1/namespaces/team/pods": given(pod("Running")),
    }
    with (
        Api(server.access) as api,
        pytest.raises(ComposeplatError, match="have not ended") if is_waited_for else nullcontext(),
    ):
        Replacement(api=api, namespace="team", environment="shop", kind="CronJob", name="web").replace(INPUTS, FREE)


def test_a_sync_volume_that_is_being_deleted(server: Server, replacement: Replacement) -> None:
    """A new one is made once it has gone: the pod had one that nobody could use, or soon none."""
    made = f"{CLAIM}?fieldManager=composeplat&force=true"
    server.answers |= {CLAIM: Answer(b'{"metadata": {"deletionTimestamp": "2025-06-01T12:00:00Z"}}'), made: Answer()}

    def delete() -> None:
        until(lambda: server.paths.count(CLAIM) > 1)
        server.answers[CLAIM] = refusal(404, "none")

    threading.Thread(target=delete).start()
    replacement.replace(INPUTS, FREE)

    assert server.paths.count(made) == 1


def test_a_sync_volume_that_is_not_deleted(
    server: Server, replacement: Replacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another pod uses it, nothing is replaced."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    server.answers[CLAIM] = Answer(b'{"metadata": {"deletionTimestamp": "2025-06-01T12:00:00Z"}}')

    with pytest.raises(ComposeplatError, match="'web-platform-files' is being deleted"):
        replacement.replace(INPUTS, FREE)
    assert {asked.method for asked in server.asked} == {"GET"}


def dev_workload(annotation: str) -> Answer:
    metadata = {
        "name": "web-platform-up",
        "uid": "d1",
        "resourceVersion": "7",
        "labels": {"dev.platform.com/up": "web"},
        "annotations": {"dev.platform.com/up-original": annotation},
    }
    return Answer(json.dumps({"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 0}}).encode())


@pytest.mark.parametrize("annotation", ["{", "{}", "[1]", '{"kind": "Job", "name": "web", "replicas": "many"}'])
@pytest.mark.parametrize(
    ("asleep", "suspended"), [({}, [False]), ({"dev.platform.com/asleep": "1"}, [])], ids=["awake", "asleep"]
)
def test_the_record_of_the_original_is_broken(
    server: Server,
    replacement: Replacement,
    monkeypatch: pytest.MonkeyPatch,
    annotation: str,
    asleep: dict[str, str],
    suspended: list[bool],
) -> None:
    """The service runs again by the plan, with a note: it stayed without pods. One that sleeps stays asleep."""
    notes: list[str] = []
    monkeypatch.setattr("composeplat.progress.note", notes.append)
    job = {**JOB, "metadata": {**JOB["metadata"], "annotations": asleep}}
    server.answers |= {
        DEV_WORKLOAD: dev_workload(annotation),
        "/apis/batch/v1/namespaces/team/jobs/web": Answer(json.dumps(job).encode()),
    }

    assert replacement.restore(volumes=False)

    patched = [json.loads(asked.body) for asked in server.asked if asked.method == "PATCH"]
    assert [patch["spec"]["suspend"] for patch in patched if "suspend" in patch.get("spec", {})] == suspended
    assert server.asked[-1].method == "DELETE"
    (note,) = notes
    assert note == (
        "the annotation dev.platform.com/up-original of the Deployment 'web-platform-up' can't be read:"
        " web gets its number of pods from the definition"
    )


def test_a_broken_record_is_made_again(server: Server, replacement: Replacement) -> None:
    """The next `up` records the number of pods by the plan, and not that of the original, which has none now."""
    replacement.planned_replicas = 3
    server.answers[DEV_WORKLOAD] = dev_workload("{")

    replacement.replace(INPUTS, FREE)

    assert recorded_replicas(server) == 3


class Lost(Exception):
    """Another session has the lease, or nobody."""


def test_two_sessions_in_the_same_moment(server: Server, replacement: Replacement) -> None:
    """The lease goes to the dev workload as it was checked: the second session took it from the first."""
    seen: list[Any] = []
    by_another = json.loads(dev_workload(RECORD).body)
    by_another["metadata"] |= {"resourceVersion": "8", "annotations": {LEASE_ANNOTATION: '{"id": "other"}'}}

    def check(found: Any) -> None:
        seen.append(found)
        if found["metadata"]["annotations"].get(LEASE_ANNOTATION):
            raise Lost

    job, left = Answer(json.dumps(JOB).encode()), dev_workload(RECORD)
    written = refusal(409, "the object has been modified")
    server.first = [job, left, Answer(b'{"metadata": {}}'), left, written, Answer(json.dumps(by_another).encode())]
    with pytest.raises(Lost):
        replacement.replace(INPUTS, SessionLease({"id": "mine"}, may_take=check, may_keep=check))

    (refused,) = [json.loads(asked.body) for asked in server.asked if asked.method == "PATCH"]
    assert refused["metadata"]["resourceVersion"] == "7"
    assert [found["metadata"]["resourceVersion"] for found in seen] == ["7", "8"]


def test_a_dev_workload_that_its_controller_changes(server: Server, replacement: Replacement) -> None:
    """A refused write is no loss of the lease."""
    job, left = Answer(json.dumps(JOB).encode()), dev_workload(RECORD)
    written = refusal(409, "the object has been modified")
    server.answers[DEV_WORKLOAD] = left
    server.first = [job, left, Answer(b'{"metadata": {}}'), left, written]

    replacement.replace(INPUTS, FREE)

    replicas = [json.loads(asked.body)["spec"]["replicas"] for asked in server.asked if asked.method == "PATCH"]
    assert replicas == [0, 0, 1]


def test_a_service_that_is_given_back_while_its_pods_end(server: Server, replacement: Replacement) -> None:
    """No development container starts beside the pods that the service has again."""

    def lose(_: object) -> None:
        raise Lost

    with pytest.raises(Lost):
        replacement.replace(INPUTS, SessionLease({"id": "mine"}, may_take=lambda _: None, may_keep=lose))

    replicas = [json.loads(asked.body)["spec"]["replicas"] for asked in server.asked if asked.method == "PATCH"]
    assert replicas == [0]


def test_a_service_that_has_pods_of_its_own_again(server: Server, replacement: Replacement) -> None:
    """After a deploy, its number of pods is that of the deploy, and no more the one that was recorded."""
    server.answers |= {
        DEV_WORKLOAD: dev_workload('{"kind": "Job", "name": "web", "replicas": 0}'),
        "/apis/batch/v1/namespaces/team/jobs/web": Answer(json.dumps({**JOB, "spec": RUNNING}).encode()),
    }

    replacement.replace(INPUTS, FREE)

    assert recorded_replicas(server) == 1


def test_the_number_of_pods_stays_recorded(server: Server, replacement: Replacement) -> None:
    """The workload of a service under development has none, and `down` gives it those that it had."""
    server.answers[DEV_WORKLOAD] = dev_workload('{"kind": "Job", "name": "web", "replicas": 1}')

    replacement.replace(INPUTS, FREE)

    assert recorded_replicas(server) == 1


def test_what_is_deployed_again(server: Server, replacement: Replacement) -> None:
    """A workload with pods, or with another template than the recorded; none is none, and nothing to follow."""
    recorded = json.loads(dev_workload(RECORD).body)
    recorded["metadata"]["annotations"]["dev.platform.com/up-template"] = fingerprint(JOB)
    found = []
    for workload in (JOB, {**JOB, "spec": RUNNING}, {**JOB, "spec": {**JOB["spec"], "template": {"spec": {}}}}):
        server.answers["/apis/batch/v1/namespaces/team/jobs/web"] = Answer(json.dumps(workload).encode())
        found.append(replacement.is_outdated(recorded))
    server.answers["/apis/batch/v1/namespaces/team/jobs/web"] = refusal(404, "none")

    assert found == [False, True, True]
    assert not replacement.is_outdated(recorded)


def recorded_replicas(server: Server) -> int:
    applied = next(json.loads(asked.body) for asked in server.asked if asked.path.startswith(f"{DEV_WORKLOAD}?"))
    return int(json.loads(applied["metadata"]["annotations"]["dev.platform.com/up-original"])["replicas"])


def dev_pod() -> dict[str, Any]:
    owners = [{"kind": "ReplicaSet", "name": "web-platform-up-1", "uid": "r1", "controller": True}]
    return {"metadata": {"name": "web-platform-up-1-x", "ownerReferences": owners}, "status": {"phase": "Running"}}


def test_the_own_pods_start_after_the_development_container(
    server: Server, replacement: Replacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would write to one volume: while the container runs, the service is not given back."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    owner = {"metadata": {"name": "web-platform-up-1", "ownerReferences": [{"kind": "Deployment", "uid": "d1"}]}}
    server.answers |= {
        DEV_WORKLOAD: dev_workload(RECORD),
        "/apis/apps/v1/namespaces/team/replicasets/web-platform-up-1": Answer(json.dumps(owner).encode()),
        "/api/v1/namespaces/team/pods": given(dev_pod()),
    }
    with pytest.raises(ComposeplatError, match="its development container of service 'web' has not ended"):
        replacement.restore(volumes=True)

    (stopped,) = [asked for asked in server.asked if asked.method != "GET"]
    assert (stopped.path, json.loads(stopped.body)["spec"]) == (DEV_WORKLOAD, {"replicas": 0})


@pytest.mark.parametrize(("volumes", "deleted"), [(False, [DEV_WORKLOAD]), (True, [DEV_WORKLOAD, CLAIM])], ids=str)
def test_a_service_is_given_back(
    server: Server, replacement: Replacement, *, volumes: bool, deleted: list[str]
) -> None:
    """It has its pods before the record of their number goes; its synced files go only where that is asked for."""
    server.answers[DEV_WORKLOAD] = dev_workload(RECORD)

    assert replacement.restore(volumes=volumes)

    changes = [(asked.method, asked.path) for asked in server.asked if asked.method != "GET"]
    job = "/apis/batch/v1/namespaces/team/jobs/web"
    assert changes[:2] == [("PATCH", DEV_WORKLOAD), ("PATCH", job)]
    assert [path for method, path in changes if method == "DELETE"] == deleted
