"""A plan in which workloads keep the selectors that they have already."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.names import ENVIRONMENT_LABEL, SERVICE_LABEL
from composeplat.plan import Plan
from composeplat.plan.kept_selectors import keep_selectors
from tests.conftest import Project

TEXT = """\
services:
  web: {image: nginx, ports: ['80:80']}
  api: {image: nginx, ports: ['80:80']}
  once: {image: nginx, restart: 'no'}
"""
OLD = {"app": "web", "tier": "front"}


def plan_of(project: Project) -> Plan:
    plan = project(TEXT).read().plan
    assert plan is not None
    return plan


def test_a_kept_selector(project: Project) -> None:
    """The workload and its Service select by the old labels, and the pods have these beside our own."""
    plan = plan_of(project)
    kept = keep_selectors(plan, {"web": OLD})
    before = {(desired.kind, desired.name): desired.manifest for desired in plan.objects}
    after = {(desired.kind, desired.name): desired.manifest for desired in kept.objects}

    changed = {key for key, manifest in after.items() if manifest != before[key]}
    assert changed == {("Deployment", "web"), ("Service", "web")}
    assert after["Service", "web"]["spec"]["selector"] == OLD
    spec = after["Deployment", "web"]["spec"]
    assert spec["selector"] == {"matchLabels": OLD}
    labels = spec["template"]["metadata"]["labels"]
    assert labels.items() >= {**OLD, ENVIRONMENT_LABEL: "demo", SERVICE_LABEL: "web"}.items()
    assert keep_selectors(plan, {}) == plan


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        pytest.param({"other": OLD}, "there is no service 'other'", id="no-service"),
        pytest.param({"once": OLD}, "the selector of service 'once' can't be kept: it is a Job", id="a-job"),
        pytest.param({"web": {}}, "the selector of service 'web' is empty", id="empty"),
        pytest.param({"web": {"a b": "c"}}, "the selector of service 'web' has an invalid label: a b: c", id="key"),
        pytest.param({"web": {"a": "b c"}}, "the selector of service 'web' has an invalid label: a: b c", id="value"),
        pytest.param({"web": {SERVICE_LABEL: "api"}}, f"has the label {SERVICE_LABEL}", id="our-own"),
    ],
)
def test_an_invalid_selector(project: Project, selectors: Mapping[str, Mapping[str, str]], message: str) -> None:
    """A selector that can't be kept is an error that names the service."""
    with pytest.raises(ComposeplatError, match=message):
        keep_selectors(plan_of(project), selectors)
