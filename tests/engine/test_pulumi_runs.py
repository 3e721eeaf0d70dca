"""How often Pulumi is run again where what came in between has passed, and with how much memory."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.components import program
from composeplat.engine import inline_program, pulumi_runs
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.stack import Stack
from composeplat.plan.desired import DesiredObject, FilePlan, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

LOCKED = "error: the stack is currently locked by 1 lock(s)."


def test_a_lock_that_always_comes_back() -> None:
    """A lock that stands again after each time it was broken ends the operation after ten runs."""
    runs: list[list[str]] = []

    def follow(args: list[str], *_: Any) -> PulumiResult:
        runs.append(args)
        return PulumiResult(status=255, output=LOCKED)

    workspace = SimpleNamespace(follow=follow, unlock=lambda _: True)
    stack = SimpleNamespace(workspace=workspace, is_interrupted=False, note=lambda _: None, variables={})

    _, ended = pulumi_runs.run(cast("Stack", stack), ["up"])

    assert (len(runs), ended.status) == (10, 255)


def test_memory_for_speed() -> None:
    """Few objects may take more memory; a value of the user is left alone."""
    assert pulumi_runs.memory_variables(40, {}) == {"GOGC": "400"}
    assert pulumi_runs.memory_variables(1000, {}) == {}
    assert pulumi_runs.memory_variables(40, {"GOGC": "50"}) == {}


def test_objects_under_other_urns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is given the URNs that the state has for objects which other parts of the definition make now."""
    urn = "urn:pulumi:team::shop::composeplat:index:ComposeStack$kubernetes:core/v1:ConfigMap::shop-config/old"
    manifest = {"kind": "ConfigMap", "metadata": {"name": "settings"}}
    config = DesiredObject(key=ResourceKey(ResourceKind.CONFIG, "new"), manifest=manifest)
    plan = Plan(
        environment="shop", namespace="team", files=(FilePlan(section="configs", name="new", objects=(config,)),)
    )
    target, workspace = SimpleNamespace(other=None), SimpleNamespace(cluster="", builder={})
    state = {"resources": [{"urn": urn, "inputs": manifest}]}
    stack = SimpleNamespace(state=state, target=target, workspace=workspace, variables={})
    declared: list[dict[str, Any]] = []
    monkeypatch.setattr(program, "declare", lambda _, **given: declared.append(given))
    monkeypatch.setattr(inline_program, "serve", lambda run: nullcontext(run() or ""))
    monkeypatch.setattr(pulumi_runs, "run", lambda *_: None)

    pulumi_runs.run_program(cast("Stack", stack), plan, [], ())

    assert [given["aliases"] for given in declared] == [{"ConfigMap/settings": urn}]
