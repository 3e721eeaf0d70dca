"""The aliases of objects that a program had before, by their kinds and names."""

from __future__ import annotations

import pulumi
import pytest

from composeplat.components.moved_resources import Moved, MovedResources
from composeplat.components.program import declare
from composeplat.plan import Plan
from composeplat.plan.desired import DesiredObject
from tests.components.test_stack import run
from tests.conftest import Project

URN = "urn:pulumi:team::shop::kubernetes:yaml:ConfigFile$kubernetes:apps/v1:Deployment::team/web"


def plan_of(project: Project) -> Plan:
    plan = project("services:\n  web: {image: nginx, ports: ['80:80']}\n").read().plan
    assert plan is not None
    return plan


def named(plan: Plan, kind: str) -> DesiredObject:
    return next(desired for desired in plan.objects if desired.kind == kind)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(URN, [URN], id="urn"),
        pytest.param("web-app", [("web-app", None)], id="name"),
        pytest.param(pulumi.Alias(name="x", parent=URN), [("x", URN)], id="alias"),
        pytest.param(["a", URN], [("a", None), URN], id="several"),
    ],
)
def test_aliases(project: Project, given: Moved, expected: list[object]) -> None:
    """A name is that of a resource without a parent; a URN and an alias are used as they are."""
    plan = plan_of(project)
    found = MovedResources({"Deployment/web": given}, plan.objects).of(named(plan, "Deployment"))

    assert found is not None
    assert [(alias.name, alias.parent) if isinstance(alias, pulumi.Alias) else alias for alias in found] == expected
    assert MovedResources({"Deployment/web": given}, plan.objects).of(named(plan, "Service")) is None


def test_an_unknown_object(project: Project) -> None:
    """An alias for an object that the file lacks is an error that lists the objects."""
    with pytest.raises(pulumi.RunError) as caught:
        MovedResources({"Deployment/wep": "x"}, plan_of(project).objects)

    assert str(caught.value).startswith(
        "'aliases' names 'Deployment/wep', which is no object of the file; objects are:"
    )
    assert "Deployment/web, " in str(caught.value)


def test_those_of_a_deploy(project: Project) -> None:
    """Objects that a deploy has under other URNs keep their field manager, which is ours."""
    found = run(lambda: declare(plan_of(project), cluster="", gate=None, builder="", aliases={"Service/web": URN}))

    assert [alias.urn for alias in found.request("core/v1:Service").aliases] == [URN]
    assert found.annotations("core/v1:Service")["pulumi.com/patchFieldManager"] == "composeplat"
    assert list(found.request("Deployment").aliases) == []
