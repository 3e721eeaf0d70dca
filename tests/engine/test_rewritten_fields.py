"""Which fields of pod templates the cluster has rewritten, by the plan and the state."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from composeplat.engine.rewritten_fields import rewritten_fields
from composeplat.plan import Plan
from composeplat.plan.resource_keys import ResourceKey
from tests.conftest import Project

TEXT = """\
services:
  web: {image: 'nginx:1.27', environment: {A: b}, x-node-selector: {disk: ssd}, labels: {team: x}}
  job: {image: 'nginx:1.27', restart: 'no'}
  night: {image: 'nginx:1.27', x-schedule: '@daily'}
"""
IMAGE = 'spec.template["spec"]["containers"][0]["image"]'
STACK = "urn:pulumi:team::demo::composeplat:index:ComposeStack$composeplat:index:Service"


@pytest.fixture
def plan(project: Project) -> Plan:
    found = project(TEXT).read(namespace="team", full=True).plan
    assert found is not None
    return found


def state(plan: Plan, **templates: Any) -> dict[str, Any]:
    """The state after a deploy of a plan; ``templates`` change the live pod templates, by service."""
    resources = []
    for desired in plan.objects:
        live = copy.deepcopy(desired.manifest)
        if desired.name in templates and "template" in live.get("spec", {}):
            templates[desired.name](live["spec"]["template"])
        kind = f"kubernetes:apps/v1:{desired.kind}"
        urn = f"{STACK}${kind}::demo-{desired.key}"
        resources.append({"urn": urn, "type": kind, "inputs": copy.deepcopy(desired.manifest), "outputs": live})
    return {"resources": resources}


def rewrite_image(template: Any) -> None:
    template["spec"]["containers"][0]["image"] = "mirror.example.com/nginx:1.27"


def found_in(plan: Plan, state: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {str(key): paths for key, paths in rewritten_fields(plan, state).items()}


def test_a_rewritten_image(plan: Plan) -> None:
    """Its path is ignored for each workload that has it; nothing is where nothing was rewritten."""
    assert found_in(plan, state(plan)) == {}
    assert found_in(plan, state(plan, web=rewrite_image, job=rewrite_image)) == {
        "workload/web": (IMAGE,),
        "workload/job": (IMAGE,),
    }


def test_a_cron_job(plan: Plan) -> None:
    """Its pod template is within that of its Jobs."""
    made = state(plan)
    (resource,) = (found for found in made["resources"] if found["inputs"]["kind"] == "CronJob")
    rewrite_image(resource["outputs"]["spec"]["jobTemplate"]["spec"]["template"])

    (paths,) = found_in(plan, made).values()
    assert paths == ('spec.jobTemplate.spec.template["spec"]["containers"][0]["image"]',)


def test_additions(plan: Plan) -> None:
    """What the cluster adds is no change of a field: defaults, annotations, a container of a mesh."""

    def add(template: Any) -> None:
        template["metadata"]["annotations"]["added"] = "x"
        template["spec"]["containers"][0]["terminationMessagePath"] = "/dev/termination-log"
        template["spec"]["containers"].append({"name": "mesh", "image": "mesh:1"})

    assert found_in(plan, state(plan, web=add)) == {}


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_a_changed_file(plan: Plan, part: str) -> None:
    """What the file changes is applied, and so is what a refresh has read, or what was never created."""
    made = state(plan, web=rewrite_image)
    for resource in made["resources"]:
        if part == "outputs":
            resource["outputs"] = {}
        elif "template" in resource["inputs"].get("spec", {}):
            rewrite_image(resource["inputs"]["spec"]["template"])

    assert found_in(plan, made) == {}


def test_fields_that_one_side_lacks(plan: Plan) -> None:
    """A field that the file adds or takes away is applied, and so is one that the cluster has removed."""
    made = state(plan, web=lambda template: template["spec"].pop("nodeSelector"))
    for resource in made["resources"]:
        template = resource["inputs"].get("spec", {}).get("template", {"metadata": {"labels": {}}})
        del template["metadata"]["labels"]
        template["metadata"]["annotations"] = {"former": "x"}

    assert found_in(plan, made) == {}


def test_others(plan: Plan) -> None:
    """Replicas are no field of a pod template; resources of others, and those that are being deleted, don't count."""
    made = state(plan, web=rewrite_image)
    for resource in made["resources"]:
        resource["outputs"].setdefault("spec", {})["replicas"] = 0
    key = ResourceKey.parse("workload/web")
    assert rewritten_fields(plan, made) == {key: (IMAGE,)}
    for resource in made["resources"]:
        resource["delete"] = True
    made["resources"].append({"urn": "urn:pulumi:team::demo::pulumi:pulumi:Stack::demo-team"})

    assert rewritten_fields(plan, made) == {}
