"""Services have their own deadlines, and those that exceed them are reported with their last lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, service_status
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.watching import Watcher
from composeplat.codes.causes import CauseCode
from composeplat.engine.job_retries import Retries
from composeplat.engine.monitor import Monitor
from composeplat.engine.rollout import Rollout
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.system.deadline import Deadline
from tests.cluster.objects import NAMESPACE, deployment, ended, job, pod, replica_set, running, snapshot, stateful_set

NOWHERE = Access(host="127.0.0.1", port=9, plain=True)
WAITS = "0/1 ready, started, not ready yet"


class View(Watcher):
    """A watcher that shows one view for ever."""

    def __init__(self, view: Snapshot) -> None:
        super().__init__(NOWHERE, NAMESPACE, "shop")
        self._view = view

    @property
    def latest(self) -> Snapshot | None:
        self._rounds += 1
        return self._view


class Behind(View):
    """A watcher that at first shows a view from before a change."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        super().__init__(after)
        self._before, self._looks = before, 0

    @property
    def rounds(self) -> int:
        return int(self._looks >= 5)

    @property
    def latest(self) -> Snapshot | None:
        self._looks += 1
        return self._before if self._looks < 5 else self._view


def make_rollout(
    *held: Object, deadline: Deadline, notes: list[str] | None = None, before: Snapshot | None = None
) -> Rollout:
    services = tuple(
        ServicePlan(
            name=manifest["metadata"]["name"],
            cluster_name=manifest["metadata"]["name"],
            workload_kind=manifest["kind"],
            image="i",
            objects=(),
        )
        for manifest in held
        if manifest["kind"] in ("Deployment", "StatefulSet", "Job")
    )
    stack = Stack(
        environment_name="shop",
        namespace=NAMESPACE,
        target=Target(access=NOWHERE, kubeconfig=""),
        variables={},
        note=(notes if notes is not None else []).append,
    )
    plan = Plan(environment="shop", namespace=NAMESPACE, services=services)
    monitor = Monitor(plan=plan, on_progress=lambda _: None, chosen=frozenset(service.name for service in services))
    view = View(snapshot(*held)) if before is None else Behind(before, snapshot(*held))
    return Rollout(
        stack=stack, monitor=monitor, watcher=view, deadline=deadline, retries=Retries(stack=stack, api=Api(NOWHERE))
    )


def starting(name: str) -> Iterator[Object]:
    workload = deployment(name)
    owner = replica_set(workload)
    yield from (workload, owner, pod(owner, state=running()))


def test_a_time_that_is_over_before_the_change_is_seen() -> None:
    """What was ready before a change is not taken for its result."""
    workload = deployment("web")
    owner = replica_set(workload)
    before = snapshot(workload, owner, pod(owner, state=running(), ready=True))
    rollout = make_rollout(*starting("web"), deadline=Deadline(0), before=before)
    rollout.monitor.applied = {"web": 1}
    assert not rollout.monitor.unready(before)
    rollout.wait()

    assert rollout.monitor.causes["web"].code is CauseCode.TIMEOUT


def test_each_has_its_own_time() -> None:
    """One that starts to be asked later is given up later, and one that is given up holds nobody up."""
    deadline = Deadline(0.2, {"late": 0.6})
    rollout = make_rollout(*starting("web"), *starting("late"), deadline=deadline)
    began = time.monotonic()
    rollout.wait()

    assert 0.7 < time.monotonic() - began < 5
    assert {name: cause.message for name, cause in rollout.monitor.causes.items()} == {
        "web": f"is not ready after 0 s: {WAITS}",
        "late": f"is not ready after 1 s: {WAITS}",
    }


class StillView(View):
    """A watcher that shows one view for ever, of one round."""

    @property
    def latest(self) -> Snapshot | None:
        self._rounds = 1
        return self._view


def test_a_wait_for_one_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing changes, a check of whether the wait is over judges the service that it waits for, and not all."""
    judged = []

    def judge(*args: Any) -> ServiceStatus:
        judged.append(args)
        return service_status(*args)

    monkeypatch.setattr("composeplat.engine.monitor.service_status", judge)
    ready: list[Object] = []
    for number in range(100):
        workload = deployment(f"app{number}")
        owner = replica_set(workload)
        ready += [workload, owner, pod(owner, state=running(), ready=True)]
    rollout = make_rollout(*ready, *starting("web"), deadline=Deadline(2))
    still = replace(rollout, watcher=StillView(rollout.watcher.latest or Snapshot()))
    still.monitor.applied.update(dict.fromkeys(still.monitor.chosen, 1))
    still.wait()

    assert list(still.monitor.causes) == ["web"]
    # Every 0.4 s, for the first check of whether it is over, for those that are late, and at the end.
    assert len(judged) < 9 * 101


def test_a_workload_that_is_gone() -> None:
    """What another machine's destroy deleted ends the wait before its deadline; for a moment it may be gone."""
    rollout = make_rollout(*starting("web"), *starting("db"), deadline=Deadline(1.0))
    held = list(starting("db"))
    view = snapshot(*held, age={"deleted": 4.9})
    rollout = replace(rollout, watcher=StillView(view))
    rollout.monitor.applied.update({"web": 1, "db": 1})
    rollout.monitor.fail_deleted(view, 1)
    early = dict(rollout.monitor.causes)
    rollout.monitor.fail_deleted(snapshot(*held, age={"deleted": 5.0}), 0)
    before_its_round = dict(rollout.monitor.causes)
    rollout = replace(rollout, watcher=StillView(snapshot(*held, age={"deleted": 5.0})))
    rollout.wait()

    assert (early, before_its_round) == ({}, {})
    assert rollout.monitor.causes["web"] == Cause(
        code=CauseCode.DELETED,
        message="Deployment 'web' was deleted meanwhile, not by this run",
        hint="see whether another deploy or destroy runs, then run this again",
        has_subject=True,
    )
    assert rollout.monitor.causes["db"].code == "timeout"


def test_a_timeout_has_lines() -> None:
    """The log of the pod that was waited for is shown."""
    rollout = make_rollout(*starting("web"), deadline=Deadline(0.0))
    rollout.wait()

    assert rollout.monitor.causes["web"] == Cause(
        code=CauseCode.TIMEOUT,
        message=f"is not ready after 0 s: {WAITS}",
        hint="give it more time with --timeout",
        logs=True,
        pod="web-7d4b9c6f2-x7k2p",
        container="web",
    )


def test_a_job_between_tries() -> None:
    """It is reported by its last try; one that runs is not waited for."""
    made = {**job(), "spec": {"backoffLimit": 6}}
    other = job("other")
    rollout = make_rollout(
        made, pod(made, state=ended(127)), other, pod(other, state=running()), deadline=Deadline(0.0)
    )
    rollout.wait()
    message = "failed with exit status 127 in try 1 of 7, and tries again"

    assert rollout.monitor.causes == {
        "migrate": Cause(
            code=CauseCode.TIMEOUT,
            message=f"has not completed after 0 s: {message}",
            origin=("command",),
            logs=True,
            hint="the program to run was not found",
            pod="migrate-x7k2p",
            container="migrate",
            exit_status=127,
        )
    }


def test_pods_that_keep_their_revision() -> None:
    """A StatefulSet with OnDelete is not waited for, whatever its old pods do, and those are named."""
    made = stateful_set(updated=0, total=1)
    made["spec"]["updateStrategy"] = {"type": "OnDelete"}
    notes: list[str] = []
    rollout = make_rollout(made, pod(made, "0", state=running(), revision=1), deadline=Deadline(60), notes=notes)
    began = time.monotonic()
    rollout.wait()
    rollout.note_outdated()

    assert time.monotonic() - began < 20
    assert rollout.monitor.causes == {}
    assert notes == [
        "db: db-0 still runs the old revision, as on-delete says: kubectl delete pod --namespace team db-0"
    ]


def test_a_service_without_pods() -> None:
    """A service that is scaled to 0 has no pod that could stay ready, and ends the wait."""
    made = stateful_set(updated=0, total=0)
    made["spec"]["replicas"] = 0
    rollout = make_rollout(made, deadline=Deadline(60))
    began = time.monotonic()
    rollout.wait()

    assert time.monotonic() - began < 20
    assert rollout.monitor.causes == {}
