"""The notes of a deploy: things that a cluster lacks for a plan, and NetworkPolicies of others."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.engine.cluster_notes import notes_before, notes_of_failures
from composeplat.engine.outcomes import Failure
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SERVICE_LABEL
from composeplat.plan.desired import DesiredObject, EndpointPlan, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.cluster.objects import NAMESPACE, Answer, Server, given, refusal
from tests.conftest import Project

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


POLICIES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"


def policy(name: str, selector: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"podSelector": selector}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "is_noted"),
    [
        pytest.param({}, True, id="all"),
        pytest.param({"matchLabels": {SERVICE_LABEL: "web"}}, True, id="its-label"),
        pytest.param({"matchLabels": {SERVICE_LABEL: "db"}}, False, id="another-label"),
        pytest.param(expression(SERVICE_LABEL, "In", "db", "web"), True, id="in"),
        pytest.param(expression(SERVICE_LABEL, "NotIn", "web"), False, id="not-in"),
        pytest.param(expression("team", "Exists"), False, id="exists"),
        pytest.param(expression("team", "DoesNotExist"), True, id="does-not-exist"),
    ],
)
def test_policies_of_others(project: Project, selector: dict[str, Any], *, is_noted: bool) -> None:
    """A service that fails while it runs may be kept from others by a NetworkPolicy that the file does not have."""
    found = project("services: {web: {image: app}}").read(name="shop", namespace=NAMESPACE).plan
    assert found is not None
    crash = Failure(service="web", cause=Cause(code=CauseCode.CRASH_LOOP, message="crashes", logs=True))
    own = policy("own", {}, **{ENVIRONMENT_LABEL: "shop", MANAGED_BY_LABEL: MANAGED_BY})
    with Server({POLICIES: given(own, policy("closed", selector))}) as server, Api(server.access) as api:
        notes = list(notes_of_failures(api, found, [crash]))

    command = f"kubectl --namespace {NAMESPACE} describe networkpolicy closed"
    note = f"NetworkPolicy 'closed' of others limits the connections of web: {command}"
    assert notes == ([note] if is_noted else [])


def test_policies_that_no_failure_is_due_to(project: Project) -> None:
    """They are not asked for where no container has run, and may be unreadable."""
    found = project("services: {web: {image: app}}").read(name="shop", namespace=NAMESPACE).plan
    assert found is not None
    failures = [
        Failure(service="web", cause=Cause(code=code, message="", logs=logs))
        for code, logs in ((CauseCode.IMAGE_NOT_PULLED, False), (CauseCode.CRASH_LOOP, True))
    ]
    with Server(otherwise=refusal(403, "no")) as server, Api(server.access) as api:
        assert list(notes_of_failures(api, found, failures[:1])) == []
        assert POLICIES not in server.paths
        assert list(notes_of_failures(api, found, failures)) == []
