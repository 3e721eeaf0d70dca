"""Sleep and wake: all pods of an environment taken away, and given back as they were."""

from __future__ import annotations

import time
from collections.abc import Collection

from composeplat import progress
from composeplat.cluster.api import Api
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.deletion import FOR_PODS
from composeplat.engine.dev_workloads import WORKLOADS, dev_workloads_by_service, read_replicas
from composeplat.engine.failure_logs import failures_of
from composeplat.engine.live_state import read_live_state
from composeplat.engine.operations.refresh import refresh_replicas
from composeplat.engine.outcomes import Outcome
from composeplat.engine.preflight import Key
from composeplat.engine.rollout import open_rollout
from composeplat.engine.scaling import (
    WakeUp,
    can_sleep,
    pods_left,
    scale_down,
    scale_up,
    services_of,
    sleeping_workloads,
    workloads_of,
)
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.system.deadline import Deadline


def sleep(stack: Stack, plan: Plan, *, wait: bool, timeout: float) -> Outcome:
    """Take all pods away, but for those of services under development, and remember how many there were."""
    started = time.monotonic()
    with stack.interrupts, stack.held("sleep"), Api(stack.target.access) as api:
        stack.check_project("sleep", api)
        live_state = read_live_state(api, stack.namespace)
        dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
        workloads = workloads_of(api, stack.namespace, plan.environment) if live_state.namespace else {}
        if not workloads:
            raise stack.not_deployed()
        going = [key for key, one in workloads.items() if key[1] not in dev_workloads and can_sleep(one)]
        for key in going:
            stack.stop_if_interrupted()
            scale_down(api, stack.namespace, key, read_replicas(workloads[key]))
        if wait:
            _until_asleep(stack, api, dev_workloads, timeout)
    return _outcome(plan, going, dev_workloads, started)


def _until_asleep(stack: Stack, api: Api, dev_workloads: Collection[str], timeout: float) -> None:
    deadline = Deadline(timeout)
    with progress.step(FOR_PODS, is_transient=True):
        while left := pods_left(api, stack.namespace, stack.environment_name, dev_workloads):
            stack.go_on()
            if deadline.has_passed:
                raise ComposeplatError(
                    f"{left} pods have not ended after {timeout:.0f} s", "give them longer with --timeout"
                )
            stack.pause()


def wake(stack: Stack, plan: Plan, *, in_order: bool, wait: bool, timeout: float) -> Outcome:
    """Give what sleeps its pods back: all at once, or in the order of ``depends_on``."""
    started = time.monotonic()
    with stack.interrupts, stack.held("wake"), Api(stack.target.access) as api:
        stack.check_project("wake", api)
        live_state = read_live_state(api, stack.namespace)
        if not any(kind in WORKLOADS for kind, _ in live_state.ours(plan.environment)):
            raise stack.not_deployed()
        dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
        sleepers = sleeping_workloads(live_state, plan.environment)
        asleep = {key: count for key, count in sleepers.items() if key[1] not in dev_workloads}
        planned = {one.workload: one.name for one in plan.services}
        for key in asleep.keys() - planned.keys():
            scale_up(api, stack.namespace, key, asleep[key])
        known = {planned[key]: (key, count) for key, count in asleep.items() if key in planned}
        with open_rollout(stack, api, plan, known, timeout) as rollout:
            WakeUp(
                plan=plan,
                api=api,
                monitor=rollout.monitor,
                watcher=rollout.watcher,
                deadline=rollout.deadline,
                check=stack.go_on,
                asleep=dict(known),
            ).run(in_order=in_order)
            if wait and known:
                rollout.wait()
            failures = failures_of(rollout.monitor, api)
        stack.stop_if_interrupted()
    if asleep:
        # What was refreshed while it slept would else be a change.
        refresh_replicas(stack, *(name for _, name in asleep))
    outcome = _outcome(plan, asleep, dev_workloads, started)
    outcome.failures = failures
    return outcome


def _outcome(plan: Plan, keys: Collection[Key], dev_workloads: Collection[str], started: float) -> Outcome:
    return Outcome(
        services=tuple(services_of(plan, keys).values()),
        developed=tuple(one.name for one in plan.services if one.cluster_name in dev_workloads),
        seconds=time.monotonic() - started,
    )
