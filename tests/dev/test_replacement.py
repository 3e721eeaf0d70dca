"""Replacing a workload: which of its pods are waited for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.dev.dev_workload import DevWorkloadInputs
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
        replacement.replace(INPUTS)


def test_a_sync_volume_that_is_being_deleted(server: Server, replacement: Replacement) -> None:
    """A new one is made once it has gone: the pod had one that nobody could use, or soon none."""
    made = f"{CLAIM}?fieldManager=composeplat&force=true"
    server.answers |= {CLAIM: Answer(b'{"metadata": {"deletionTimestamp": "2025-06-01T12:00:00Z"}}'), made: Answer()}

    def delete() -> None:
        until(lambda: server.paths.count(CLAIM) > 1)
        server.answers[CLAIM] = refusal(404, "none")

    threading.Thread(target=delete).start()
    replacement.replace(INPUTS)

    assert server.paths.count(made) == 1


def test_a_sync_volume_that_is_not_deleted(
    server: Server, replacement: Replacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another pod uses it, nothing is replaced."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    server.answers[CLAIM] = Answer(b'{"metadata": {"deletionTimestamp": "2025-06-01T12:00:00Z"}}')

    with pytest.raises(ComposeplatError, match="'web-platform-files' is being deleted"):
        replacement.replace(INPUTS)
    assert {asked.method for asked in server.asked} == {"GET"}
