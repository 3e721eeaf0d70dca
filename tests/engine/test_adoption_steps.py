"""The steps of ``platform import`` beside controllers that delete and keep pods meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import ComposeplatError
from composeplat.engine import adoption_steps
from composeplat.engine.adoption import Action, Adoption, LiveObjects
from composeplat.engine.adoption_steps import AdoptionSteps
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.pulumi_process import Interrupted
from composeplat.plan.desired import Plan

OLD: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "db", "uid": "uid-db", "annotations": {"dev.platform.com/replicas-before-import": "1"}},
    "spec": {"replicas": 1},
}


class Cluster:
    """A Deployment of somebody else with its ReplicaSet and pods; those that ``gone`` names are only listed."""

    def __init__(self, *pods: dict[str, Any], gone: str = "") -> None:
        self.lists = {
            "replicasets": [{"metadata": {"name": "db-1", "uid": "uid-rs", "ownerReferences": [{"uid": "uid-db"}]}}],
            "pods": list(pods),
        }
        self.gone = gone
        self.patched: list[str] = []
        self.changes: list[dict[str, Any]] = []

    def items(self, path: str) -> list[dict[str, Any]]:
        return self.lists[path.rpartition("/")[2]]

    def find(self, path: str) -> dict[str, Any] | None:
        return OLD if path.endswith("/deployments/db") and "delete" not in self.patched else None

    def get(self, _path: str) -> dict[str, Any]:
        return OLD

    def patch(self, path: str, change: dict[str, Any], **_: object) -> None:
        name = path.rpartition("/")[2]
        if name == self.gone:
            raise ApiError(404, "not found")
        self.patched.append(name)
        self.changes.append(change)

    def delete(self, *_: object, **__: object) -> None:
        self.patched.append("delete")


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": [{"uid": "uid-rs"}]}, "status": {"phase": phase}}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster, Key], AdoptionSteps]:
    def make(cluster: Cluster, successor: Key) -> AdoptionSteps:
        def wait(api: Cluster, path: str, check: Callable[[list[dict[str, Any]]], bool], _: object) -> bool:
            return check(api.items(path))

        monkeypatch.setattr(adoption_steps, "Api", lambda _: nullcontext(cluster))
        monkeypatch.setattr(adoption_steps, "wait_for", wait)
        return AdoptionSteps(
            access=Access(host="", port=0),
            plan=Plan(environment="demo", namespace="team"),
            live=LiveObjects(state=LiveState(), objects={("Deployment", "db"): OLD}),
            entries=(Adoption(action=Action.HAND_OVER, kind="Deployment", name="db", successor=successor),),
        )

    return make


def test_a_pod_that_is_gone(steps: Callable[[Cluster, Key], AdoptionSteps]) -> None:
    """The pods after it get their labels all the same: without these, no successor would know them."""
    cluster = Cluster(pod("db-1-a"), pod("db-1-b"), gone="db-1-a")

    steps(cluster, ("Deployment", "db")).mark(cast("Api", cluster))

    assert cluster.patched == ["db-1", "db-1-b"]


def test_a_replica_set_that_is_gone(steps: Callable[[Cluster, Key], AdoptionSteps]) -> None:
    cluster = Cluster(pod("db-1-a"), gone="db-1")

    steps(cluster, ("Deployment", "db")).hand_over(("Deployment", "db"))

    assert cluster.patched == ["db-1-a", "delete", "db-1-a"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended(steps: Callable[[Cluster, Key], AdoptionSteps], phase: str) -> None:
    """A workload without pods keeps those that were evicted: nothing is waited for."""
    steps(Cluster(pod("db-1-a", phase)), ("StatefulSet", "db")).hand_over(("StatefulSet", "db"))


def test_a_pod_that_runs(steps: Callable[[Cluster, Key], AdoptionSteps]) -> None:
    with pytest.raises(ComposeplatError, match="the pods of Deployment 'db' have not ended"):
        steps(Cluster(pod("db-1-a")), ("StatefulSet", "db")).hand_over(("StatefulSet", "db"))


def test_a_workload_that_is_scaled_up_again(steps: Callable[[Cluster, Key], AdoptionSteps]) -> None:
    """The Service may select by our labels by then, so that its new pods have these."""
    cluster = Cluster()
    taken = steps(cluster, ("StatefulSet", "db"))
    taken.hand_over(("StatefulSet", "db"))
    cluster.changes.clear()

    assert taken.restore(cast("Api", cluster)) == ["Deployment/db"]

    labels = {"dev.platform.com/environment": "demo", "dev.platform.com/service": "db"}
    first, last = cluster.changes
    assert first == {"spec": {"template": {"metadata": {"labels": labels}}}}
    assert last["spec"] == {"replicas": 1}


def test_an_interrupt_ends_the_wait(steps: Callable[[Cluster, Key], AdoptionSteps]) -> None:
    """It is in a thread that Pulumi waits for: it was killed, and the process stayed until the time was over."""
    waiting = steps(Cluster(pod("db-1-a")), ("StatefulSet", "db"))
    waiting.interrupts.cancelled.set()

    with pytest.raises(Interrupted):
        waiting.hand_over(("StatefulSet", "db"))
