"""Restart services: new pods with the same settings, in the order of ``depends_on``."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object
from composeplat.engine.dev_workloads import as_deployed, dev_workloads_by_service, read_replicas
from composeplat.engine.failure_logs import failures_of
from composeplat.engine.live_state import read_live_state
from composeplat.engine.outcomes import Outcome
from composeplat.engine.pod_replacement import replace_pods
from composeplat.engine.preflight import Key
from composeplat.engine.rollout import open_rollout
from composeplat.engine.scaling import WakeUp, read_workloads
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan


def restart(stack: Stack, plan: Plan, services: Collection[str], *, wait: bool, timeout: float) -> Outcome:
    """Restart some services and those that restart with them, or all.

    Jobs, sleeping services and services under development are left alone. All services of one pod restart together.
    """
    started = time.monotonic()
    with stack.interrupts, stack.lock("restart"), Api(stack.target.access) as api:
        stack.check_project("restart", api)
        live_state = read_live_state(api, stack.namespace)
        workloads = read_workloads(api, plan) if live_state.namespace else {}
        if not workloads:
            raise stack.not_deployed_error()
        dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
        plan = replace(plan, services=tuple(as_deployed(service, workloads) for service in plan.services))
        services = plan.with_restarted(plan.with_pods_of(services))
        chosen = _restartable(stack, plan, services, workloads, dev_workloads)
        outcome = Outcome(
            services=tuple(chosen),
            developed=tuple(service.name for service in plan.services if service.cluster_name in dev_workloads),
        )
        with open_rollout(stack, api, plan, chosen, timeout) as rollout:
            WakeUp(
                plan=_among(plan, chosen),
                api=api,
                monitor=rollout.monitor,
                watcher=rollout.watcher,
                deadline=rollout.deadline,
                check=stack.check_can_continue,
                asleep={name: (key, 1) for name, key in chosen.items()},
                start=lambda key, _: replace_pods(api, stack.namespace, plan.environment, workloads[key]),
                done="restarted",
                held="is not restarted",
            ).run(in_order=True)
            if wait and chosen:
                rollout.wait()
            outcome.failures = failures_of(rollout.monitor, api)
        stack.stop_if_interrupted()
    outcome.seconds = time.monotonic() - started
    return outcome


def _restartable(
    stack: Stack, plan: Plan, services: Collection[str], workloads: dict[Key, Object], developed: Collection[str]
) -> dict[str, Key]:
    """The services to restart, dependencies first; a note says why another one that was named is not."""
    chosen: dict[str, Key] = {}
    for service in plan.services:
        if (services and service.name not in services) or service.workload_name in developed or service.pod_of:
            continue
        live = workloads.get(service.workload)
        if live is None:
            reason = "is not deployed"
        elif service.workload_kind == "Job":
            reason = "is a job: platform deploy --rerun-jobs runs it again"
        elif service.workload_kind == "CronJob":
            reason = "runs on a schedule: platform run starts it now"
        elif not read_replicas(live):
            reason = "has no pods"
        else:
            chosen[service.name] = service.workload
            continue
        if service.name in services:
            stack.note(f"{service.name} {reason}")
    return chosen


def _among(plan: Plan, chosen: Collection[str]) -> Plan:
    """The plan with only those dependencies that are restarted too: the others run, or are not waited for."""
    edges = tuple(edge for edge in plan.edges if edge.service in chosen and edge.dependency in chosen)
    return replace(plan, edges=edges)
