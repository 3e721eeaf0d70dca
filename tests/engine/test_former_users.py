"""The end of workloads whose volumes another one takes over, while it is waited for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.engine import former_users
from composeplat.engine.former_users import end_former_users
from composeplat.engine.pulumi_process import Interrupted, Interrupts
from composeplat.engine.stack import Stack
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SERVICE_LABEL
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

CREATED, FORMER = ("StatefulSet", "db"), ("StatefulSet", "old")
SPEC = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
LABELS = {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "demo", SERVICE_LABEL: "old"}
POD = {"metadata": {"name": "old-0", "labels": LABELS}, "spec": SPEC}


@pytest.mark.parametrize(
    ("pods", "is_interrupted", "expected"),
    [
        pytest.param([], False, type(None), id="gone"),
        pytest.param([POD], False, ComposeplatError, id="late"),
        pytest.param([POD], True, Interrupted, id="interrupted"),
    ],
)
def test_the_wait(
    monkeypatch: pytest.MonkeyPatch, pods: list[Any], expected: type[object], *, is_interrupted: bool
) -> None:
    """It ends with the pods, with its time, or at Ctrl-C: Pulumi waits for it, and would be killed."""
    manifest = {"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"template": {"spec": SPEC}}}
    desired = DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, "db"), manifest=manifest)
    service = ServicePlan(name="db", cluster_name="db", workload_kind="StatefulSet", image="x", objects=(desired,))
    plan = Plan(environment="demo", namespace="team", services=(service,))
    interrupts, deleted = Interrupts(), []
    if is_interrupted:
        interrupts.cancelled.set()

    def wait(_: object, __: str, check: Callable[[list[Any]], bool], ___: object) -> bool:
        return check(pods)

    api = SimpleNamespace(delete=lambda path, **_: deleted.append(path))
    monkeypatch.setattr(former_users, "Api", lambda _: nullcontext(api))
    monkeypatch.setattr(former_users, "wait_for", wait)
    target = SimpleNamespace(access=None)
    stack = cast("Stack", SimpleNamespace(note=lambda _: None, interrupts=interrupts, target=target))

    found: ComposeplatError | None = None
    try:
        end_former_users(stack, plan, {CREATED: [FORMER]})(CREATED)
    except ComposeplatError as error:
        found = error

    assert deleted == ["/apis/apps/v1/namespaces/team/statefulsets/old"]
    assert type(found) is expected
