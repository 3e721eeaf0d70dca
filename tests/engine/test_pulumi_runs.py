"""How often Pulumi is run again where what came in between has passed, and with how much memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from composeplat.engine import pulumi_runs
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.stack import Stack

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
