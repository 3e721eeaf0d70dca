"""What ``platform import`` has to see in a namespace, and what it need not."""

from __future__ import annotations

import json

import pytest

from composeplat.cluster.api import Api
from composeplat.diagnostics import MissingPiece
from composeplat.engine.adoption_look import read_live_objects
from composeplat.plan.desired import DesiredObject, EndpointPlan, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.cluster.objects import NAMESPACE, Server, cron_job, deployment, given, refusal

ROUTES = f"/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


def plan(kind: str) -> Plan:
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "web", "namespace": NAMESPACE}}
    route = DesiredObject(key=ResourceKey(ResourceKind.ENDPOINT, "web"), manifest=manifest)
    endpoint = EndpointPlan(name="web", urls=(), objects=(route,))
    return Plan(environment="shop", namespace=NAMESPACE, endpoints=(endpoint,))


def test_routes_that_may_not_be_listed() -> None:
    """The role ``edit`` has no routes of gateways: they are needed only if the definition has some."""
    answers = {DEPLOYMENTS: given(deployment()), ROUTES: refusal(403, "httproutes is forbidden")}
    with Server(answers, otherwise=given()) as server, Api(server.access) as api:
        found = read_live_objects(api, plan("Ingress"))
        with pytest.raises(MissingPiece, match="you may not list httproutes in namespace"):
            read_live_objects(api, plan("HTTPRoute"))

    assert [key for key in found.objects if key[0] == "Deployment"] == [("Deployment", "web")]


def test_the_answer_about_a_cron_job_is_about_a_new_one() -> None:
    """It takes the place of one of others, and what both had together could be invalid. Its name has a limit of 52."""
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
    name = "b" * 50
    manifest = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "namespace": NAMESPACE}}
    schedule = DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, name), manifest=manifest)
    shown = Plan(
        environment="shop", namespace=NAMESPACE, endpoints=(EndpointPlan(name="x", urls=(), objects=(schedule,)),)
    )
    with Server({path: given(cron_job("@daily", name))}, otherwise=given()) as server, Api(server.access) as api:
        found = read_live_objects(api, shown)

    (made,) = [asked for asked in server.asked if asked.method in ("POST", "PATCH")]
    assert (made.method, found.applied) == ("POST", {})
    assert len(json.loads(made.body)["metadata"]["name"]) == 52
