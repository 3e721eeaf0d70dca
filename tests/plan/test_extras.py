"""Objects of a program beside a service: the additions to their manifests, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.preflight import belongs_to
from composeplat.plan import Plan
from composeplat.plan.extras import check_services, plan_extras
from tests.conftest import Project

TEXT = """\
services:
  web: {image: x}
  log: {image: x, network_mode: 'service:web'}
  debug_shell: {image: x, profiles: [debug]}
x-platform: {full: true}
"""
BUDGET: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}}
SELECTED = {"dev.platform.com/environment": "shop", "dev.platform.com/service": "web"}


@pytest.fixture
def plan(project: Project) -> Plan:
    made = project({"compose.yaml": TEXT}).read(name="shop", namespace="team").plan
    assert made is not None
    return made


def test_what_is_added(plan: Plan) -> None:
    """Name, namespace, labels and selector: values written by hand stay."""
    (extra,) = plan_extras(plan, {"web": [BUDGET]})["web"]

    assert extra.label == "PodDisruptionBudget/web"
    assert extra.manifest == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": "web",
            "namespace": "team",
            "labels": {"app.kubernetes.io/part-of": "shop", "app.kubernetes.io/component": "web"},
        },
        "spec": {"minAvailable": 1, "selector": {"matchLabels": SELECTED}},
    }
    assert "metadata" not in BUDGET


def test_what_is_written_stays(plan: Plan) -> None:
    late = object()
    metadata = {"name": "mine", "namespace": "team", "labels": {"team": late, "app.kubernetes.io/part-of": "all"}}
    selector = {"matchLabels": {"a": "b"}}
    (extra,) = plan_extras(plan, {"web": [{**BUDGET, "metadata": metadata, "spec": {"selector": selector}}]})["web"]

    assert extra.manifest["metadata"] == {
        "name": "mine",
        "namespace": "team",
        "labels": {"team": late, "app.kubernetes.io/part-of": "all", "app.kubernetes.io/component": "web"},
    }
    assert extra.manifest["spec"] == {"selector": selector}


def test_a_kind_that_selects_nothing(plan: Plan) -> None:
    """Only kinds whose selector has a known meaning get one."""
    monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "spec": {"endpoints": []}}
    other = {"apiVersion": "example.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "b"}, "spec": {}}
    first, second = plan_extras(plan, {"web": [monitor, {**other, "kind": "Other"}]})["web"]

    assert first.manifest["spec"] == {"endpoints": [], "selector": {"matchLabels": SELECTED}}
    assert second.manifest["spec"] == {}


def test_a_service_in_the_pods_of_another(plan: Plan) -> None:
    """Its pods are those of the other."""
    (extra,) = plan_extras(plan, {"log": [BUDGET]})["log"]

    assert extra.name == "log"
    assert extra.manifest["spec"]["selector"] == {"matchLabels": SELECTED}


def test_an_object_is_not_of_the_environment(plan: Plan) -> None:
    """A deploy deletes objects of its environment that its plan has not: these have no such labels."""
    (extra,) = plan_extras(plan, {"web": [BUDGET]})["web"]

    assert not belongs_to(extra.manifest, "shop")


def test_an_inactive_service(plan: Plan) -> None:
    """A program may have objects for services that only some profiles start."""
    assert plan_extras(plan, {"debug_shell": [BUDGET], "web": []}) == {"web": ()}


PLACE = "extras['web'][0]"
NO_MANIFEST = "give the manifest of an object, as a dict"
MAY_BE_OUTPUTS = "its values may be outputs"
OTHER_NAME = "give it another 'metadata.name'; to change an object of the file, use 'transforms' or 'x-kubernetes'"


@pytest.mark.parametrize(
    ("manifest", "message", "hint"),
    [
        ("x", f"{PLACE} must have 'apiVersion', a plain text", NO_MANIFEST),
        ({"kind": "X"}, f"{PLACE} must have 'apiVersion', a plain text", NO_MANIFEST),
        ({"apiVersion": "v1", "kind": 7}, f"{PLACE} must have 'kind', a plain text", NO_MANIFEST),
        ({"apiVersion": "v1::x", "kind": "X"}, f"{PLACE}.apiVersion must be such as 'policy/v1', not 'v1::x'", ""),
        (
            {**BUDGET, "metadata": {"name": "A b"}},
            f"{PLACE}.metadata.name must be of lowercase letters, digits, '-' and '.', not 'A b'",
            "",
        ),
        ({**BUDGET, "metadata": "x"}, f"{PLACE}.metadata must be a dict", MAY_BE_OUTPUTS),
        ({**BUDGET, "spec": []}, f"{PLACE}.spec must be a dict", MAY_BE_OUTPUTS),
        (
            {**BUDGET, "metadata": {"namespace": "other"}},
            f"{PLACE}.metadata.namespace differs from the namespace of the stack",
            "leave it out, or make the object a resource of its own",
        ),
        (
            {**BUDGET, "metadata": {"labels": {"dev.platform.com/x": "shop"}}},
            f"{PLACE}.metadata.labels has 'dev.platform.com/x', by which platform knows the objects of the definition",
            "leave the label out",
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            "'extras' has Deployment 'web', which exists already",
            OTHER_NAME,
        ),
    ],
)
def test_what_is_refused(plan: Plan, manifest: Any, message: str, hint: str) -> None:
    with pytest.raises(ComposeplatError) as caught:
        plan_extras(plan, {"web": [manifest]})

    assert (str(caught.value), caught.value.hint) == (message, hint)


def test_two_of_a_name(plan: Plan) -> None:
    with pytest.raises(ComposeplatError, match="'extras' has PodDisruptionBudget 'b', which exists already"):
        plan_extras(plan, {name: [{**BUDGET, "metadata": {"name": "b"}}] for name in ("web", "log")})


def test_no_such_service(plan: Plan) -> None:
    with pytest.raises(ComposeplatError) as caught:
        check_services(plan, "extras", {"wbe": ()})

    assert str(caught.value) == "'extras' names a service that the definition does not have: 'wbe'"
    assert caught.value.hint == "services are: log, web"
