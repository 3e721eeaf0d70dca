"""Replacing a workload: which of its pods are waited for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.dev.dev_workload import DevWorkloadInputs
from composeplat.dev.replacement import Replacement
from composeplat.diagnostics import ComposeplatError
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.plan.desired import Identity
from tests.cluster.objects import Answer, Server, given, refusal

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "web", "uid": "j1", "labels": {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "shop"}},
    "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "app"}]}}},
}
DEV_WORKLOAD = "/apis/apps/v1/namespaces/team/deployments/web-platform-up"


def pod(phase: str) -> dict[str, Any]:
    owners = [{"kind": "Job", "name": "web", "uid": "j1"}]
    return {"metadata": {"name": "web-1", "uid": "p1", "ownerReferences": owners}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("phase", "is_waited_for"), [("Succeeded", False), ("Failed", False), ("Running", True)], ids=str
)
def test_pods_that_have_ended(monkeypatch: pytest.MonkeyPatch, phase: str, *, is_waited_for: bool) -> None:
    """A pod of a Job stays when it has ended, and so does one that its node has evicted: `up` waited for its end."""
    monkeypatch.setattr("composeplat.dev.replacement._PODS_TIMEOUT_S", 0.2)
    answers = {
        "/apis/batch/v1/namespaces/team/jobs/web": Answer(json.dumps(JOB).encode()),
        DEV_WORKLOAD: refusal(404, "none"),
        f"{DEV_WORKLOAD}?fieldManager=composeplat&force=true": Answer(),
        "/api/v1/namespaces/team/pods": given(pod(phase)),
    }
    inputs = DevWorkloadInputs(
        identity=Identity(environment="shop", namespace="team"), service="web", paths=(), helper="agent"
    )
    with Server(answers=answers) as server, Api(server.access) as api:
        replacement = Replacement(api=api, namespace="team", environment="shop", kind="Job", name="web")
        with pytest.raises(ComposeplatError, match="have not ended") if is_waited_for else nullcontext():
            replacement.replace(inputs)
