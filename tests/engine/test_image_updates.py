"""Newer images of services whose pull policy has a time: which pods are old enough."""

from __future__ import annotations

import pytest

from composeplat.cluster.api import Api
from composeplat.engine.image_updates import update_images
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SERVICE_LABEL
from tests.cluster.objects import Server, given
from tests.conftest import Project


@pytest.mark.parametrize(("minute", "is_old"), [(59, False), (61, True)])
def test_the_age_of_an_image_is_by_the_clock_of_the_cluster(
    project: Project, monkeypatch: pytest.MonkeyPatch, minute: int, *, is_old: bool
) -> None:
    """Where this machine's clock is ahead, years here, a pod is replaced once its own cluster says that it is old."""
    plan = project("name: shop\nservices: {web: {image: nginx, pull_policy: every_1h}}").read(full=True).plan
    assert plan is not None
    asked: list[str] = []

    def newest(_: Stack, image: str) -> str:
        asked.append(image)
        return ""

    monkeypatch.setattr("composeplat.engine.image_updates._newest", newest)
    labels = {SERVICE_LABEL: "web", ENVIRONMENT_LABEL: plan.environment, MANAGED_BY_LABEL: MANAGED_BY}
    status = {"name": "web", "imageID": f"docker.io/library/nginx@sha256:{'a' * 64}"}
    pod = {
        "metadata": {"name": "web-1", "labels": labels},
        "status": {"startTime": "2025-06-01T12:00:00Z", "containerStatuses": [status]},
    }
    path = f"/api/v1/namespaces/{plan.namespace}/pods"
    date = f"Sun, 01 Jun 2025 {12 + minute // 60}:{minute % 60:02d}:00 GMT"
    with Server(date=date, answers={path: given(pod)}) as server, Api(server.access) as api:
        target = Target(access=server.access, kubeconfig="")
        stack = Stack(environment_name=plan.environment, namespace=plan.namespace, target=target, variables={})
        update_images(stack, api, plan, {"web"})

    assert asked == (["nginx"] if is_old else [])
