"""How often Pulumi is run again where what came in between has passed, and with how much memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.components import program
from composeplat.diagnostics import ComposeplatError
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


SUMMARY = {"sequence": 0, "summaryEvent": {"result": "succeeded"}}


@pytest.mark.parametrize(
    ("result", "events", "is_whole"),
    [
        pytest.param(PulumiResult(0, "done"), [SUMMARY], True, id="done"),
        pytest.param(PulumiResult(0, "done"), [], False, id="no events"),
        pytest.param(PulumiResult(0, "done"), [{**SUMMARY, "sequence": 7}], False, id="some events"),
        pytest.param(PulumiResult(255, "error: no"), [], True, id="failed"),
        pytest.param(PulumiResult(255, ""), [], False, id="failed without a reason"),
        pytest.param(PulumiResult(-9, ""), [], True, id="killed"),
    ],
)
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_disk_that_is_full(
    result: PulumiResult, events: list[dict[str, Any]], *, is_whole: bool, is_interrupted: bool
) -> None:
    """Pulumi ends well though it could not write its events; the changes in them must not count as none."""

    def follow(_: object, on_event: Callable[[dict[str, Any]], None], *__: object) -> PulumiResult:
        for event in events:
            on_event(event)
        return result

    workspace = SimpleNamespace(follow=follow)
    stack = SimpleNamespace(workspace=workspace, is_interrupted=is_interrupted, note=lambda _: None, variables={})
    if is_whole or is_interrupted:
        assert pulumi_runs.run(cast("Stack", stack), ["up"])[1] == result
        return
    with pytest.raises(ComposeplatError, match="the changes of this run are unknown: Pulumi's output is incomplete"):
        pulumi_runs.run(cast("Stack", stack), ["up"])


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


PUSH = (
    "failed to solve: failed to push localhost:5001/shop-web: unexpected status from PUT request to"
    " http://localhost:5001/v2/shop-web/manifests/latest: 400 Bad Request: blob unknown to registry"
)


@pytest.mark.parametrize(("failed", "runs"), [(1, 2), (9, 3)])
def test_layers_deleted_during_a_push(failed: int, runs: int) -> None:
    """A push whose layers a registry deleted is tried again, and not without end."""
    notes: list[str] = []
    results: list[int] = []

    def follow(_: object, on_event: Callable[[dict[str, Any]], None], *__: object) -> PulumiResult:
        results.append(255 if len(results) < failed else 0)
        if results[-1]:
            on_event({"sequence": 0, "diagnosticEvent": {"severity": "error", "urn": "urn:image", "message": PUSH}})
            return PulumiResult(255, "error: update failed")
        on_event(SUMMARY)
        return PulumiResult(0, "done")

    workspace = SimpleNamespace(follow=follow)
    stack = SimpleNamespace(workspace=workspace, is_interrupted=False, note=notes.append, variables={})

    assert pulumi_runs.run(cast("Stack", stack), ["up"])[1].status == results[-1]
    assert len(results) == runs
    assert set(notes) == {"the registry deleted layers of an image during its push; pushing it again"}


IMAGE = "urn:pulumi:team::shop::composeplat:index:ComposeStack$docker-build:index:Image::shop-image/web"
OBJECT = "urn:pulumi:team::shop::composeplat:index:ComposeStack$kubernetes:core/v1:Secret::shop-environment/web"
RATE_LIMIT = (
    "failed to solve: node:20: failed to resolve source metadata for docker.io/library/node:20: unexpected status code"
    " https://registry-1.docker.io/v2/library/node/manifests/20: 429 Too Many Requests"
)
REGISTRY = 'failed to fetch anonymous token: Get "https://a.jfrog.io/artifactory/api/docker/x/v2/token": dial tcp: no'
NO_ANSWER = 'Patch "https://10.0.0.1/api/v1/namespaces/team/secrets/web": unexpected EOF'


@pytest.mark.parametrize(
    ("messages", "runs"),
    [
        pytest.param({IMAGE: RATE_LIMIT}, 1, id="rate-limit"),
        pytest.param({IMAGE: REGISTRY}, 1, id="no-registry"),
        pytest.param({OBJECT: NO_ANSWER}, 10, id="cluster"),
        pytest.param({IMAGE: RATE_LIMIT, OBJECT: NO_ANSWER}, 10, id="both"),
    ],
)
def test_a_build_without_its_registry(messages: dict[str, str], runs: int) -> None:
    """What a registry answers is no silence of the cluster: it was asked ten times where it had asked for fewer."""
    notes: list[str] = []
    count = 0

    def follow(_: object, on_event: Callable[[dict[str, Any]], None], *__: object) -> PulumiResult:
        nonlocal count
        count += 1
        for number, (urn, message) in enumerate(messages.items()):
            found = {"severity": "error", "urn": urn, "message": message}
            on_event({"sequence": number, "diagnosticEvent": found})
        return PulumiResult(255, f"Diagnostics:\n  error: {' '.join(messages.values())}\nerror: update failed")

    health = SimpleNamespace(mark_silent=lambda: None, silence=0.0)
    stack = SimpleNamespace(
        workspace=SimpleNamespace(follow=follow), is_interrupted=False, note=notes.append, variables={}, health=health
    )

    assert pulumi_runs.run(cast("Stack", stack), ["up"])[1].status == 255
    assert (count, bool(notes)) == (runs, runs > 1)
