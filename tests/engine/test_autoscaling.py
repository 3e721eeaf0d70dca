"""Which workloads an autoscaler has in hand, and how many pods a deploy leaves them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.engine.autoscaling import (
    autoscaled_replicas,
    describe_missing_metrics,
    differs_from_state,
    own_autoscaled,
    without_replicas,
)
from composeplat.engine.dev_workloads import with_replicas
from composeplat.engine.preflight import LiveState
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.cluster.objects import NAMESPACE, Answer, Server, given, refusal

AUTOSCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web"
KEY = ("Deployment", "web")
HEAD = {"metadata": {"name": "web", "labels": Identity(environment="shop", namespace=NAMESPACE).labels("web")}}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def plan() -> Plan:
    manifest = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    service = ServicePlan(
        name="Web",
        cluster_name="web",
        workload_kind="Deployment",
        image="x",
        objects=(DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, "web"), manifest=manifest),),
    )
    return Plan(environment="shop", namespace=NAMESPACE, services=(service,))


def autoscaler(name: str = "web") -> dict[str, Any]:
    return {"metadata": {"name": "any"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": name}}}


def live(replicas: int, **annotations: str) -> Answer:
    item = {"metadata": {"name": "web", "annotations": annotations}, "spec": {"replicas": replicas}}
    return Answer(json.dumps(item).encode())


def counted(server: Server, found: Answer, workload: Answer) -> dict[tuple[str, str], int]:
    server.answers = {AUTOSCALERS: found, DEPLOYMENT: workload}
    with Api(server.access) as api:
        return autoscaled_replicas(api, plan(), LiveState(object_metadata={KEY: HEAD}))


def test_the_number_that_an_autoscaler_chose_is_kept(server: Server) -> None:
    """A deploy that changed a workload took it back to the file's own number."""
    counts = counted(server, given(autoscaler()), live(5))

    assert counts == {KEY: 5}
    (workload,) = with_replicas(plan(), {"web": counts[KEY]}).services[0].objects
    assert workload.manifest["spec"]["replicas"] == 5


def test_a_sleeping_workload_keeps_its_replicas(server: Server) -> None:
    """A deploy wakes it with as many pods as the autoscaler had given it."""
    assert counted(server, given(autoscaler()), live(0, **{"dev.platform.com/asleep": "4"})) == {KEY: 4}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(given(), id="none"),
        pytest.param(given(autoscaler("other")), id="of-others"),
        pytest.param(refusal(403, "forbidden"), id="not-allowed"),
        pytest.param(refusal(404, "not found"), id="not-known"),
    ],
)
def test_without_an_autoscaler_the_file_s_number_counts(found: Answer, server: Server) -> None:
    """What someone else has scaled by hand is taken back, as before."""
    assert counted(server, found, live(5)) == {}


def test_a_disabled_autoscaler(server: Server) -> None:
    """A workload of no pods is scaled by nobody, and comes up as the file says."""
    assert counted(server, given(autoscaler()), live(0)) == {}


@pytest.mark.parametrize(("known", "expected"), [(1, True), (5, False)])
def test_a_number_that_the_state_does_not_know(known: int, *, expected: bool) -> None:
    """It is read first: it would look like a change."""
    manifest = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": known}}

    assert differs_from_state({"resources": [{"inputs": manifest}]}, {KEY: 5}) is expected


# autoscalers of the plan ----------------------------------------------------------------------------------------------

METRICS = "/apis/metrics.k8s.io/v1beta1"


def autoscaled_plan() -> Plan:
    (service,) = plan().services
    manifest = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    own = DesiredObject(key=ResourceKey(ResourceKind.AUTOSCALER, "web"), manifest=manifest)
    return replace(plan(), services=(replace(service, objects=(*service.objects, own)),))


def test_the_environment_s_own_autoscaler_is_left_to_the_plan(server: Server) -> None:
    """Its workload has no number in the plan; and without it in the plan the file's own number counts again."""
    own = autoscaler()
    own["metadata"]["labels"] = HEAD["metadata"]["labels"]

    assert own_autoscaled(plan()) == {}
    assert own_autoscaled(autoscaled_plan()) == {KEY: "Web"}
    assert counted(server, given(own), live(5)) == {}


def test_replicas_are_released() -> None:
    """The fields of those who apply lose the number of pods; the autoscaler's own entry and others stay."""
    applied = {"operation": "Apply", "manager": "composeplat", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:x": {}}}}
    scaled = {"operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    labels = {"operation": "Apply", "manager": "other", "fieldsV1": {"f:metadata": {}}}

    released = {**applied, "fieldsV1": {"f:spec": {"f:x": {}}}}
    assert without_replicas([applied, scaled, labels]) == [released, scaled, labels]


@pytest.mark.parametrize(
    ("scaled", "status", "note"),
    [
        (True, 404, "Web: the cluster has no metrics server, so x-autoscale keeps the smallest number of pods"),
        (True, 503, ""),
        (False, 404, ""),
    ],
)
def test_a_cluster_without_metrics(server: Server, *, scaled: bool, status: int, note: str) -> None:
    """A deploy says so if a service needs them."""
    server.answers = {METRICS: refusal(status, "no")}
    with Api(server.access) as api:
        assert describe_missing_metrics(api, autoscaled_plan() if scaled else plan()) == note
