"""The wait for a one-off pod."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from composeplat.cluster.api import Api
from composeplat.dev.run_pod import RunOptions
from composeplat.dev.run_pods import RunPods
from composeplat.diagnostics import ComposeplatError
from composeplat.system.deadline import Deadline
from tests.cluster.objects import Answer, Server, given, refusal, until

PODS = "/api/v1/namespaces/team/pods"
LISTED = f"{PODS}?fieldSelector=metadata.name%3Dweb-run-1"
WORKLOAD = {
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "web", "image": "app"}]}}},
}
WAITING: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}


def pod(state: dict[str, Any]) -> dict[str, Any]:
    statuses = [{"name": "added", "state": {"running": {}}}, {"name": "web", "state": state}]
    metadata = {"name": "web-run-1", "namespace": "team", "uid": "p1", "labels": {"dev.platform.com/run": "web"}}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending", "containerStatuses": statuses}}


@pytest.fixture
def server() -> Iterator[Server]:
    """A cluster where the pod is created at once, and waits."""
    answers = {
        "/api/v1/namespaces/team/services/web": Answer(b'{"metadata": {"name": "web", "uid": "u1"}}'),
        PODS: Answer(json.dumps(pod(WAITING)).encode()),
        f"{PODS}/web-run-1": Answer(json.dumps(pod(WAITING)).encode()),
        LISTED: given(pod(WAITING)),
    }
    with Server(answers=answers, otherwise=given()) as server:
        yield server


def test_a_pod_that_can_not_be_deleted(server: Server) -> None:
    """The command has ended, and its status counts: it was lost, as if a migration that is done had failed."""
    server.answers[LISTED] = given(pod({"running": {}}))
    server.answers[f"{PODS}/web-run-1"] = refusal(500, "no")
    with Api(server.access) as api:
        runs = RunPods(api=api, namespace="team", environment="shop", service=Mock(cluster_name="web"))
        with runs.running(WORKLOAD, RunOptions(), ["true"], Deadline(30)):
            ran = True

    assert ran
    assert [asked.method for asked in server.asked][-1] == "DELETE"


def test_a_container_that_others_have_added(server: Server) -> None:
    """The command runs once the pod's own container does; one of a service mesh may run before."""
    with Api(server.access) as api:
        runs = RunPods(api=api, namespace="team", environment="shop", service=Mock(cluster_name="web"))

        def start() -> None:
            until(lambda: server.paths.count(LISTED) > 1)
            server.answers[LISTED] = given(pod({"running": {}}))

        threading.Thread(target=start).start()
        with runs.running(WORKLOAD, RunOptions(), ["true"], Deadline(30)) as name:
            assert name == "web-run-1"
            assert server.answers[LISTED] != given(pod(WAITING))


def test_a_pod_that_its_node_refuses(server: Server) -> None:
    """It has ended without a container, and was waited for until the timeout."""
    refused = pod({})
    refused["status"] = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    server.answers[LISTED] = given(refused)
    refusing = Mock(cluster_name="web")
    refusing.name = "web"
    with Api(server.access) as api:
        runs = RunPods(api=api, namespace="team", environment="shop", service=refusing)
        message = "web: its pod ended before it began: OutOfcpu: Node didn't have enough resource: cpu"
        with (
            pytest.raises(ComposeplatError, match=message),
            runs.running(WORKLOAD, RunOptions(), ["true"], Deadline(9)),
        ):
            pass


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
ENDED_WITH_IT = "and its command ended with it"


@pytest.mark.parametrize(
    ("left", "note"),
    [
        ([EVICTED], f"the pod 'web-run-1' was evicted from its node, {ENDED_WITH_IT}\n"),
        ([], f"the pod 'web-run-1' was deleted while it ran, {ENDED_WITH_IT}\n"),
        (None, f"the pod 'web-run-1' is gone, {ENDED_WITH_IT}\n"),
    ],
    ids=["drained", "deleted", "gone"],
)
def test_a_pod_that_is_ended_from_outside(
    server: Server, capsys: pytest.CaptureFixture[str], left: list[dict[str, str]] | None, note: str
) -> None:
    """The status is that of a signal then, and looked like a Ctrl-C."""
    server.answers[LISTED] = given(pod({"running": {}}))
    with Api(server.access) as api:
        runs = RunPods(api=api, namespace="team", environment="shop", service=Mock(cluster_name="web"))
        with runs.running(WORKLOAD, RunOptions(), ["true"], Deadline(30)):
            going = pod({"running": {}})
            going["metadata"]["deletionTimestamp"] = "2025-06-01T12:00:00Z"
            going["status"]["conditions"] = left
            server.answers[LISTED] = given() if left is None else given(going)

    assert capsys.readouterr().err == note


def test_a_pod_whose_command_is_interrupted(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Its user has ended it, and knows."""
    server.answers[LISTED] = given(pod({"running": {}}))
    with Api(server.access) as api:
        runs = RunPods(api=api, namespace="team", environment="shop", service=Mock(cluster_name="web"))
        with runs.running(WORKLOAD, RunOptions(), ["true"], Deadline(30)):
            runs.interrupt("web-run-1")
            server.answers[LISTED] = given()

    assert capsys.readouterr().err == ""
