"""When a build needs no Pulumi: the images of a state, and how they are compared."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.engine.build_files import Doubt
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.unchanged_builds import image_facts, references_of
from composeplat.plan import Plan
from tests.conftest import Project

TEXT = "services:\n  web: {build: web}\n  api: {build: api}\n"


@pytest.fixture
def plan(project: Project) -> Plan:
    files = {"compose.yaml": TEXT, "web/Dockerfile": "FROM scratch\n", "api/Dockerfile": "FROM scratch\n"}
    reading = project(files).read(registry="registry.example.com/team")
    assert reading.plan is not None, reading.messages
    return reading.plan


def state_of(plan: Plan, **outputs: Any) -> dict[str, Any]:
    built = {"ref": "x@sha256:1", "digest": "sha256:1", "contextHash": "c", "tags": ["a"]}
    return {
        "resources": [
            {"urn": image_urn(plan, image), "id": "i", "outputs": {**built, **outputs}} for image in plan.images
        ]
    }


def test_the_references_of_a_state(plan: Plan) -> None:
    """Each image that was built has a reference; others have none."""
    assert references_of(plan, plan.images, state_of(plan)) == {"web": "x@sha256:1", "api": "x@sha256:1"}
    assert references_of(plan, plan.images, state_of(plan, ref=None)) == {}
    assert references_of(plan, plan.images, {}) == {}


def test_images_that_differ(plan: Plan) -> None:
    """Another digest, reference or content is a change; what a state has besides is none."""
    before = image_facts(plan, plan.images, state_of(plan))
    for name in ("ref", "digest", "contextHash"):
        assert image_facts(plan, plan.images, state_of(plan, **{name: "other"})) != before
    assert image_facts(plan, plan.images, state_of(plan, tags=["b"])) == before


def test_images_that_were_not_built(plan: Plan) -> None:
    """A state that lacks one of the images is no evidence."""
    whole = state_of(plan)
    for state in ({}, {"resources": whole["resources"][:1]}, state_of(plan, ref=None)):
        with pytest.raises(Doubt, match="was not built"):
            image_facts(plan, plan.images, state)
    whole["resources"][0]["id"] = ""
    with pytest.raises(Doubt, match="was not built"):
        image_facts(plan, plan.images, whole)
