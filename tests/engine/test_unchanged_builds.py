"""When a build needs no Pulumi: the images of a state, and how they are compared."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.engine import unchanged_builds
from composeplat.engine.build_files import Doubt
from composeplat.engine.no_change import Digester, Record
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.stack import Stack
from composeplat.engine.unchanged_builds import BuildCheck, image_facts, references_of
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


def test_a_broken_state(plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pulumi is asked, whose lock puts the last copy in its place."""

    class Broken(SimpleNamespace):
        @property
        def state(self) -> dict[str, Any]:
            raise ComposeplatError("the state is broken")

    workspace = SimpleNamespace(folder=tmp_path, hold_lock=lambda _: nullcontext())
    stack = cast("Stack", Broken(workspace=workspace))
    record = Record(inputs={"a": "b"}, parts={}, state="", objects={}, resources=1)
    monkeypatch.setattr(unchanged_builds, "read_record", lambda *_: record)
    check = BuildCheck(
        stack=stack, plan=plan, images=plan.images, digester=Digester(b"x"), began_ns=0, inputs=record.inputs
    )

    assert check.find_unchanged() is None
