"""What a cluster lacks for a plan: the notes of a deploy."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.engine.cluster_notes import notes_before
from composeplat.plan.desired import DesiredObject, EndpointPlan, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.cluster.objects import NAMESPACE, Answer, Server, given, refusal

CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
MAY_NOT_ANSWER = "so nothing may answer at the addresses: choose one with --ingress-class"


def ingress_class(name: str, *, is_default: bool = False) -> dict[str, Any]:
    annotation = {"ingressclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {"metadata": {"name": name, "annotations": annotation}}


def plan(wanted: str = "", **annotations: str) -> Plan:
    spec = {"ingressClassName": wanted} if wanted else {}
    metadata = {"name": "web", "namespace": NAMESPACE, "annotations": annotations}
    manifest = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
    ingress = DesiredObject(key=ResourceKey(ResourceKind.ENDPOINT, "web"), manifest=manifest)
    endpoint = EndpointPlan(name="web", urls=("https://web.example.com",), objects=(ingress,), routes=())
    return Plan(environment="shop", namespace=NAMESPACE, services=(), endpoints=(endpoint,))


@pytest.mark.parametrize(
    ("wanted", "classes", "expected"),
    [
        pytest.param("", [ingress_class("nginx")], f"default ingress class, {MAY_NOT_ANSWER}: nginx", id="no-default"),
        pytest.param("", [ingress_class("nginx", is_default=True)], "", id="default"),
        pytest.param("nginx", [ingress_class("nginx")], "", id="named"),
        pytest.param("ngnix", [ingress_class("nginx")], f"ingress class 'ngnix', {MAY_NOT_ANSWER}: nginx", id="typo"),
        pytest.param("", [], "", id="no-classes"),
    ],
)
def test_ingress_classes(wanted: str, classes: list[dict[str, Any]], expected: str) -> None:
    """An Ingress without a class that the cluster has is served by nobody, although it has an address."""
    with Server({CLASSES: given(*classes)}) as server, Api(server.access) as api:
        found = list(notes_before(api, plan(wanted)))

    assert found == ([f"the cluster has no {expected}"] if expected else [])


@pytest.mark.parametrize(
    ("answer", "annotations"),
    [
        pytest.param(refusal(403, "ingressclasses is forbidden"), {}, id="may-not-be-listed"),
        pytest.param(given(ingress_class("nginx")), {"kubernetes.io/ingress.class": "nginx"}, id="by-annotation"),
    ],
)
def test_classes_that_are_not_known(answer: Answer, annotations: dict[str, str]) -> None:
    """Nothing is noted where it is not known."""
    with Server({CLASSES: answer}) as server, Api(server.access) as api:
        assert list(notes_before(api, plan(**annotations))) == []
