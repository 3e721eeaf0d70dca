"""What `platform import` does after the deploy that it makes: only one that went well ends what was there before."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.engine import pulumi_runs
from composeplat.engine.adoption import LiveObjects
from composeplat.engine.events import Violation
from composeplat.engine.operations import import_objects as operation
from composeplat.engine.operations.import_objects import Found
from composeplat.engine.outcomes import DeployOptions, Failure, Outcome
from composeplat.engine.preflight import LiveState
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan

FAILURE = Failure(service="web", cause=Cause(code=CauseCode.TIMEOUT, message="is late"))


def violation(level: str) -> Violation:
    return Violation(urn="", pack="rules", policy="p", level=level, message="no")


@pytest.mark.parametrize(
    ("outcome", "last"),
    [
        pytest.param(Outcome(), "finish", id="done"),
        pytest.param(Outcome(violations=[violation("advisory")]), "finish", id="advice"),
        pytest.param(Outcome(failures=[FAILURE]), "restore", id="failed"),
        pytest.param(Outcome(violations=[violation("mandatory")]), "restore", id="refused"),
    ],
)
def test_what_comes_after_the_deploy(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, last: str) -> None:
    """Workloads are deleted once their successors run, and scaled up again where these never came."""
    done: list[str] = []

    class Steps:
        hand_over = None

        def __init__(self, **_: object) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            def note(_: object) -> list[str]:
                done.append(name)
                return []

            return note

    monkeypatch.setattr(operation, "AdoptionSteps", Steps)
    monkeypatch.setattr(operation, "Api", lambda _: nullcontext())
    monkeypatch.setattr(operation, "deploy", lambda *_: outcome)
    monkeypatch.setattr(pulumi_runs, "prepare", lambda *_: None)
    stack = SimpleNamespace(
        interrupts=nullcontext(), lock=lambda _: nullcontext(), target=SimpleNamespace(access=None),
        stop_if_interrupted=lambda *_: None,
    )  # fmt: skip
    found = Found(LiveObjects(state=LiveState(), objects={}), ())

    operation.import_objects(cast("Stack", stack), Plan(environment="demo", namespace="team"), found, DeployOptions())

    assert done == ["rehearse", "mark", last]
