"""Violations of policies, at their places in the file."""

from __future__ import annotations

import pytest

from composeplat.engine.events import Events, Violation
from composeplat.engine.outcomes import Outcome
from composeplat.engine.policies import report_violations
from tests.conftest import Project, lines

FILE = """\
services:
  web:
    image: nginx
    ports: ['8080:80']
    volumes: ['data:/data']
  own:
    build: .
volumes:
  data: {}
"""
STACK = "composeplat:index:ComposeStack"
URNS = {
    "workload": f"{STACK}$composeplat:index:Service$kubernetes:apps/v1:StatefulSet::demo-workload/web",
    "component": f"{STACK}$composeplat:index:Service::demo-service/web",
    "image": f"{STACK}$composeplat:index:Service$docker-build:index:Image::demo-image/own",
    "claim": f"{STACK}$composeplat:index:Volume$kubernetes:core/v1:PersistentVolumeClaim::demo-claim/data",
    "endpoint": f"{STACK}$composeplat:index:EndpointSet$kubernetes:networking.k8s.io/v1:Ingress::demo-endpoint/web",
    "gone": f"{STACK}$composeplat:index:Service$kubernetes:apps/v1:Deployment::demo-workload/gone",
    "stack": "pulumi:pulumi:Stack::demo-team",
}


def violation(resource: str, level: str = "mandatory") -> Violation:
    urn = f"urn:pulumi:team::demo::{URNS[resource]}"
    return Violation(urn=urn, pack="team", policy="rule", level=level, message="A rule: not so")


PLACES = {
    "workload": "2:3: error: services.web, by StatefulSet 'web', violates",
    "component": "2:3: error: services.web violates",
    "image": "7:5: error: services.own.build, by Image 'own', violates",
    "claim": "9:3: error: volumes.data, by PersistentVolumeClaim 'data', violates",
    "endpoint": "1:1: error: endpoints.web, by Ingress 'web', violates",
    "gone": "1:1: error: the environment, by Deployment 'gone', violates",
    "stack": "1:1: error: the environment violates",
}


@pytest.mark.parametrize(("resource", "place"), PLACES.items())
def test_a_violation_has_a_place(project: Project, resource: str, place: str) -> None:
    """The message names the part of the file that the resource is of, and the object."""
    read = project({"compose.yaml": FILE, "Dockerfile": "FROM scratch\n"}).read(registry="r.example.com")
    assert read.plan is not None

    report = report_violations([violation(resource)], read.plan, read.loaded.origins)

    assert lines(report.sorted()) == [
        f"compose.yaml:{place} policy 'rule' of 'team': A rule: not so [policy-violation]"
    ]


@pytest.mark.parametrize(("level", "refused"), [("mandatory", True), ("advisory", False), ("remediate", False)])
def test_levels(project: Project, level: str, *, refused: bool) -> None:
    """Only a mandatory policy refuses an operation; others warn."""
    read = project({"compose.yaml": FILE, "Dockerfile": "FROM scratch\n"}).read(registry="r.example.com")
    assert read.plan is not None
    report = report_violations([violation("workload", level)], read.plan, read.loaded.origins)

    found = [violation("claim", "advisory"), violation("workload", level)]
    assert Outcome(violations=found).is_refused is Events(violations=found).is_refused is refused
    assert [found.code for found in report.sorted()] == ["policy-violation" if refused else "policy-advice"]


def test_events() -> None:
    """Pulumi's events become violations: the first line describes the policy, the others the resource."""
    events = Events()
    fields = {"resourceUrn": "urn", "policyPackName": "team", "policyName": "rule"}
    text = "Images have a version.\n'nginx' has\nnone\n"
    events.handle({"policyEvent": {**fields, "enforcementLevel": "mandatory", "message": text}})
    events.handle({"policyRemediationEvent": {**fields, "before": {}, "after": {}}})
    events.handle({"policyEvent": {"enforcementLevel": "advisory", "message": ""}})

    assert events.violations == [
        Violation(
            urn="urn", pack="team", policy="rule", level="mandatory",
            message="Images have a version: 'nginx' has none",
        ),
        Violation(
            urn="urn", pack="team", policy="rule", level="remediate", message="the policy has changed the resource"
        ),
        Violation(urn="", pack="", policy="", level="advisory", message=""),
    ]  # fmt: skip
