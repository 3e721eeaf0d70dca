"""The inputs of an exported state, as a plan has them again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.components.resource_names import Urns
from composeplat.compose.model import DependencyCondition
from composeplat.engine import pulumi_runs, rollback
from composeplat.engine.events import Change, Events, Operation
from composeplat.engine.monitor import Monitor
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.recorded_plan import images_of, reveal
from composeplat.engine.rollback import RollBack
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.names import DEV_WORKLOAD_LABEL, ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.plan.desired import DesiredObject, Edge, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.revealed import Revealed
from composeplat.plan.strategic_merge import merge

MARK = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def test_secrets_stay_secrets() -> None:
    """A secret is its value, marked, wherever it is; anything else is as it was, and nothing shows a secret."""
    inputs = {
        "kind": "Secret",
        "data": {**MARK, "plaintext": '{"A": "eA=="}'},
        "list": [1, {**MARK, "plaintext": '"x"'}],
    }

    found = reveal(inputs)

    assert found == {"kind": "Secret", "data": Revealed({"A": "eA=="}), "list": [1, Revealed("x")]}
    assert "eA==" not in repr(found)


def test_a_text_that_looks_like_a_secret() -> None:
    """Without Pulumi's mark it is data."""
    assert reveal({"plaintext": "x"}) == {"plaintext": "x"}


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_images(*, is_scheduled: bool) -> None:
    """A CronJob has its pod template elsewhere than a Deployment."""
    pods = {"template": {"spec": {"containers": [{"image": "a:1"}, {"image": "b:2"}]}}}
    spec = {"jobTemplate": {"spec": pods}} if is_scheduled else pods
    workload = DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, "web"), manifest={"spec": spec})

    assert images_of((workload,)) == ["a:1", "b:2"]


def test_earlier_secrets_are_hidden() -> None:
    """Those of a service that may go back, which none does without a wait: the file has others by now."""
    component = Urns("team", "demo").component(ResourceKind.SERVICE, "web")
    secret = {"kind": "Secret", "data": {**MARK, "plaintext": '{"TOKEN": "Zmlyc3Q="}'}}
    resource = {
        "urn": "urn:pulumi:team::demo::composeplat:index:Service$kubernetes:core/v1:Secret::demo-environment/web",
        "type": "kubernetes:core/v1:Secret", "parent": component, "inputs": secret,
    }  # fmt: skip
    other = {**resource, "parent": component.replace("/web", "/other")}
    state = {"resources": [resource, other]}
    workspace = SimpleNamespace(reveal_state=lambda: state)
    hidden: list[tuple[str, str]] = []
    stack = cast("Stack", SimpleNamespace(state=state, workspace=workspace, hide_secrets=hidden.extend))
    service = ServicePlan(
        name="web", cluster_name="web", workload_kind="Deployment", image="b:2", objects=(), rolls_back=True
    )
    plan = Plan(environment="demo", namespace="team", services=(service,))

    assert RollBack.remember(stack, plan, ["web"], DeployOptions(wait=False)) == RollBack({})
    assert hidden == []
    found = RollBack.remember(stack, plan, ["web"], DeployOptions())

    assert [desired.manifest["data"] for desired in found.objects["web"]] == [Revealed({"TOKEN": "Zmlyc3Q="})]
    assert hidden == [("TOKEN", "Zmlyc3Q="), ("TOKEN", "first")]


URN = "urn:pulumi:team::demo::composeplat:index:Service$kubernetes:apps/v1:Deployment::demo-workload/web"
WEB = DesiredObject(
    key=ResourceKey(ResourceKind.WORKLOAD, "web"),
    manifest={
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"image": "a:1"}]}}},
    },
)


@pytest.mark.parametrize(
    ("message", "note"),
    [
        pytest.param("", "web: rolled back to a:1", id="applied"),
        pytest.param("quota", "web: not rolled back: Deployment 'web' could not be updated: quota", id="refused"),
        pytest.param("the disk", "web: not rolled back: Pulumi failed: the disk", id="failed"),
    ],
)
def test_what_was_rolled_back(monkeypatch: pytest.MonkeyPatch, message: str, note: str) -> None:
    """A service is rolled back only if Pulumi has applied its objects; else the note has the reason."""
    service = ServicePlan(name="web", cluster_name="web", workload_kind="Deployment", image="b:2", objects=(WEB,))
    plan = Plan(environment="demo", namespace="team", services=(service,))
    monitor = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset({"web"}))
    deployed, back = Events(), Events()
    deployed.changes[URN] = Change(operation=Operation.UPDATE, urn=URN, kind="Deployment", name="web")
    back.changes = deployed.changes
    back.messages = {} if not message else {URN: [message]} if message == "quota" else {"": [message]}

    @contextlib.contextmanager
    def rollout(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(monitor=monitor, handle=None, tick=None, wait=lambda: None)

    def run_program(*_: object, **__: object) -> tuple[Events, PulumiResult]:
        monitor.applied |= {} if message else {"web": 1}
        return back, PulumiResult(1 if message else 0, "")

    monkeypatch.setattr(rollback, "open_rollout", rollout)
    monkeypatch.setattr(rollback, "autoscaled_replicas", lambda *_: {})
    monkeypatch.setattr(pulumi_runs, "run_program", run_program)
    monkeypatch.setattr(Stack, "state", {})
    target = Target(access=Access(host="127.0.0.1", port=1), kubeconfig="")
    notes: list[str] = []
    stack = Stack(environment_name="demo", namespace="team", target=target, variables={}, note=notes.append)
    RollBack({"web": (WEB,)}).run(stack, cast("Api", None), plan, deployed, DeployOptions(), LiveState())

    assert notes == ["rolling back, as the deploy failed: web", note]


@pytest.mark.parametrize(("is_developed", "expected"), [(False, 8), (True, 0)])
def test_the_number_of_pods_stays(monkeypatch: pytest.MonkeyPatch, *, is_developed: bool, expected: int) -> None:
    """It is that which an autoscaler has chosen since the last deploy; a service under development has no pods."""
    before = replace(WEB, manifest=merge(WEB.manifest, {"spec": {"replicas": 2}}))
    service = ServicePlan(name="web", cluster_name="web", workload_kind="Deployment", image="b:2", objects=(WEB,))
    plan = Plan(environment="demo", namespace="team", services=(service,))
    labels = {
        MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "demo", **({DEV_WORKLOAD_LABEL: "web"} if is_developed else {})
    }  # fmt: skip
    live = LiveState(object_metadata={("Deployment", "web-dev"): {"metadata": {"name": "web-dev", "labels": labels}}})
    events = Events()
    events.changes[URN] = Change(operation=Operation.UPDATE, urn=URN, kind="Deployment", name="web")
    monitor = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset({"web"}))
    rollout = SimpleNamespace(monitor=monitor, handle=None, tick=None, wait=lambda: None)
    applied: list[Plan] = []

    def run_program(_: object, found: Plan, *__: object, **___: object) -> tuple[Events, PulumiResult]:
        applied.append(found)
        return Events(), PulumiResult(0, "")

    monkeypatch.setattr(rollback, "open_rollout", lambda *_: contextlib.nullcontext(rollout))
    monkeypatch.setattr(rollback, "autoscaled_replicas", lambda *_: {("Deployment", "web"): 8})
    monkeypatch.setattr(pulumi_runs, "run_program", run_program)
    stack = cast("Stack", SimpleNamespace(note=lambda _: None, state={}, stop_if_interrupted=lambda: None))

    RollBack({"web": (before,)}).run(stack, cast("Api", None), plan, events, DeployOptions(), live)

    (workload,) = applied[0].services[0].objects
    assert workload.manifest["spec"]["replicas"] == expected


def test_what_waits_for_a_service_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback applies nothing else: a job that the deploy held back would run with what ran before."""
    job = replace(WEB, key=ResourceKey(ResourceKind.WORKLOAD, "migrate"))
    services = tuple(
        ServicePlan(name=name, cluster_name=name, workload_kind=kind, image="b:2", objects=(desired,))
        for name, kind, desired in (("web", "Deployment", WEB), ("migrate", "Job", job))
    )
    edge = Edge(service="migrate", dependency="web", condition=DependencyCondition.HEALTHY)
    plan = Plan(environment="demo", namespace="team", services=services, edges=(edge,))
    events = Events()
    events.changes[URN] = Change(operation=Operation.UPDATE, urn=URN, kind="Deployment", name="web")
    monitor = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset({"web"}))
    rollout = SimpleNamespace(monitor=monitor, handle=None, tick=None, wait=lambda: None)
    types = "composeplat:index:ComposeStack$composeplat:index:Service$kubernetes:batch/v1:Job"
    held = f"urn:pulumi:team::demo::{types}::demo-workload/migrate"
    state = {"resources": [{"urn": held}, {"urn": URN}]}
    runs: list[tuple[list[str], Plan]] = []

    def run_program(_: object, __: object, args: list[str], *___: object, **more: Any) -> tuple[Events, PulumiResult]:
        runs.append((args, more["registered"]))
        return Events(), PulumiResult(0, "")

    monkeypatch.setattr(rollback, "open_rollout", lambda *_: contextlib.nullcontext(rollout))
    monkeypatch.setattr(rollback, "autoscaled_replicas", lambda *_: {})
    monkeypatch.setattr(pulumi_runs, "run_program", run_program)
    stack = cast("Stack", SimpleNamespace(note=lambda _: None, state=state, stop_if_interrupted=lambda: None))

    RollBack({"web": (WEB,)}).run(stack, cast("Api", None), plan, events, DeployOptions(), LiveState())

    ((args, registered),) = runs
    assert [service.name for service in registered.services] == ["web"]
    assert args[args.index("--exclude") + 1] == held
