"""Sleep and wake: scale all workloads of an environment to zero, and back to their previous number of pods."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, pod_names
from composeplat.cluster.unreachable_nodes import find_unreachable_node, unreachable_hint
from composeplat.cluster.watching import pods_path
from composeplat.diagnostics import ComposeplatError, format_count, join_and_count
from composeplat.engine.deletion import wait_for_pods
from composeplat.engine.dev_workloads import dev_workloads_by_service, read_replicas
from composeplat.engine.failure_logs import failures_of
from composeplat.engine.live_state import read_live_state
from composeplat.engine.operations.refresh import refresh_replicas
from composeplat.engine.outcomes import Failure, Outcome
from composeplat.engine.preflight import Key
from composeplat.engine.rollout import open_rollout
from composeplat.engine.scaling import (
    WakeUp,
    by_service,
    can_sleep,
    read_workloads,
    running_pods,
    scale_down,
    scale_up,
    scaled_down_by_others,
    service_names,
    sleeping_workloads,
)
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.system.deadline import Deadline

_MAX_LISTED = 5


def sleep(stack: Stack, plan: Plan, *, wait: bool, timeout: float) -> Outcome:
    """Scale all workloads to zero, except services under development, and record their numbers of pods."""
    started = time.monotonic()
    with stack.interrupts, stack.lock("sleep"), Api(stack.target.access) as api:
        stack.check_project("sleep", api)
        live_state = read_live_state(api, stack.namespace)
        dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
        workloads = read_workloads(api, plan) if live_state.namespace else {}
        if not workloads:
            raise stack.not_deployed_error()
        going = [key for key, found in workloads.items() if key[1] not in dev_workloads and can_sleep(found)]
        for key in going:
            stack.stop_if_interrupted()
            scale_down(api, stack.namespace, key, read_replicas(workloads[key]))
        if wait:
            # A run that has begun ends by itself.
            scheduled = {name for kind, name in workloads if kind == "CronJob"}
            _until_asleep(stack, api, scheduled | set(dev_workloads), timeout)
    return _outcome(plan, going, dev_workloads, started)


def _until_asleep(stack: Stack, api: Api, dev_workloads: Collection[str], timeout: float) -> None:
    left: list[Object] = []

    def is_asleep(pods: list[Object]) -> bool:
        left[:] = running_pods(pods, stack.environment_name, dev_workloads)
        show(left)
        return not left

    path = pods_path(stack.namespace, stack.environment_name)
    with wait_for_pods() as show:
        if not stack.watch(api, path, is_asleep, Deadline(timeout)):
            raise _still_awake(stack, left, timeout)


def _still_awake(stack: Stack, left: list[Object], timeout: float) -> ComposeplatError:
    """Return the error about pods that still run; those that nothing ends are named first."""
    kept = [pod for pod in left if "deletionTimestamp" not in pod["metadata"]]
    names = pod_names([*kept, *(pod for pod in left if pod not in kept)])
    command = f"kubectl describe pod --namespace {stack.namespace} {names[0]}"
    ending = unreachable_hint(find_unreachable_node(left)) or "give them more time with --timeout"
    return ComposeplatError(
        f"{format_count(len(left), 'pod')} still running after {timeout:.0f} s: {join_and_count(names, _MAX_LISTED)}",
        f"{names[0]} is not terminating; see which workload it is of: {command}" if kept else ending,
    )


def wake(stack: Stack, plan: Plan, *, in_order: bool, wait: bool, timeout: float) -> Outcome:
    """Scale sleeping workloads up again: all at once, or in the order of ``depends_on``."""
    started = time.monotonic()
    with stack.interrupts, stack.lock("wake"), Api(stack.target.access) as api:
        stack.check_project("wake", api)
        live_state = read_live_state(api, stack.namespace)
        if not any(kind in WORKLOAD_KINDS for kind, _ in live_state.ours(plan.environment)):
            # Raises if they may not be listed.
            read_workloads(api, plan)
            raise stack.not_deployed_error()
        dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
        sleepers = sleeping_workloads(live_state, plan.environment)
        asleep = {key: count for key, count in sleepers.items() if key[1] not in dev_workloads}
        _note_scaled_down(stack, api, plan, dev_workloads)
        failures = _wake_workloads(stack, api, plan, asleep, in_order=in_order, wait=wait, timeout=timeout)
        stack.stop_if_interrupted()
    if asleep:
        # A refresh during sleep would otherwise show the pods as a change.
        refresh_replicas(stack, *(name for _, name in asleep))
    outcome = _outcome(plan, asleep, dev_workloads, started)
    outcome.failures = failures
    return outcome


def _note_scaled_down(stack: Stack, api: Api, plan: Plan, dev_workloads: Collection[str]) -> None:
    """Note the services whose state is `asleep` too, and that only a deploy scales up."""
    workloads = {key: found for key, found in read_workloads(api, plan).items() if key[1] not in dev_workloads}
    names = scaled_down_by_others(plan, workloads)
    if names:
        shown = join_and_count(names, _MAX_LISTED)
        stack.note(f"scaled to 0 by others, not by 'platform sleep': {shown}; platform deploy --refresh scales them up")


def _wake_workloads(
    stack: Stack, api: Api, plan: Plan, asleep: Mapping[Key, int], *, in_order: bool, wait: bool, timeout: float
) -> list[Failure]:
    known = by_service(plan, asleep)
    for key in asleep.keys() - {key for key, _ in known.values()}:
        scale_up(api, stack.namespace, key, asleep[key])
    with open_rollout(stack, api, plan, known, timeout) as rollout:
        WakeUp(
            plan=plan,
            api=api,
            monitor=rollout.monitor,
            watcher=rollout.watcher,
            deadline=rollout.deadline,
            check=stack.check_can_continue,
            asleep=dict(known),
        ).run(in_order=in_order)
        if wait and known:
            rollout.wait()
        return failures_of(rollout.monitor, api)


def _outcome(plan: Plan, keys: Collection[Key], dev_workloads: Collection[str], started: float) -> Outcome:
    return Outcome(
        services=tuple(service_names(plan, keys)),
        developed=tuple(service.name for service in plan.services if service.cluster_name in dev_workloads),
        seconds=time.monotonic() - started,
    )
