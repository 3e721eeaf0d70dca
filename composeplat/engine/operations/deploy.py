"""Deploy: the cluster made what the plan says."""

from __future__ import annotations

import time
from collections.abc import Collection

from composeplat.cluster.api import Api
from composeplat.cluster.namespaces import make_namespace
from composeplat.engine import pulumi_runs
from composeplat.engine.autoscaling import autoscaled_replicas, differs_from_state, with_autoscaled
from composeplat.engine.checks import check
from composeplat.engine.deletion import clear_the_way, delete, remove_leftovers, remove_volume, until_gone
from composeplat.engine.dev_workloads import (
    ORIGINAL_ANNOTATION,
    dev_workloads_by_service,
    planned_original,
    without_pods,
)
from composeplat.engine.events import Events
from composeplat.engine.failure_logs import failures_of, note_refusals
from composeplat.engine.operations.preview import as_shown
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import Key, LiveState, api_path, missing_from_cluster, object_keys, volumes_to_replace
from composeplat.engine.provenance import note_project, siblings_of
from composeplat.engine.pulumi_args import deploy_args
from composeplat.engine.pulumi_process import Ended
from composeplat.engine.rollout import Rollout, open_rollout
from composeplat.engine.scaling import note_awake, services_of, sleeping_workloads_of
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.progress import Phase


def deploy(stack: Stack, plan: Plan, options: DeployOptions) -> Outcome:
    started = time.monotonic()
    plan.select_services(options.services)
    with stack.interrupts:
        pulumi_runs.prepare(stack, plan)
        with stack.held("deploy"), Api(stack.target.access) as api:
            outcome = _deploy(stack, api, plan, options)
    outcome.seconds = time.monotonic() - started
    return outcome


def _deploy(stack: Stack, api: Api, plan: Plan, options: DeployOptions) -> Outcome:
    live_state = check(stack, api, plan, options)
    replaced = volumes_to_replace(plan, live_state, options.replaced_volumes)
    stack.check_cluster()
    if not live_state.namespace:
        make_namespace(api, stack.namespace)
        stack.note(f"made namespace {stack.namespace}")
    _note_project(stack, api, live_state)
    until_gone(stack, api, live_state.ending(object_keys(plan.objects)), "of before")
    stack.workspace.make_stack()
    state = stack.state
    stack.workspace.drop_pending(state)
    losing = [name for name, has_to_be in replaced.items() if has_to_be]
    if losing:
        _prove(stack, api, plan, options, live_state, losing)
    for name in replaced:
        if name in losing:
            remove_volume(stack, api, plan, name)
        else:
            stack.note(f"volume {name} stays as it is: the file does not change it")
    scaled = autoscaled_replicas(api, plan, live_state)
    plan = _heed_dev_workloads(stack, api, with_autoscaled(plan, scaled), live_state)
    clear_the_way(stack, api, plan, live_state, state)
    chosen = plan.select_services(options.services)
    asleep = _heed_sleepers(stack, api, plan, live_state, chosen)
    words = ["up", *pulumi_runs.WITHOUT_ASKING, *deploy_args(plan, stack.state, live_state, options)]
    if (
        options.refresh
        or missing_from_cluster(state, live_state)
        or asleep
        or losing
        or differs_from_state(state, scaled)
    ):
        words.append("--refresh")
    with open_rollout(stack, api, plan, chosen, options.timeout) as rollout:
        events, ended = _run(stack, plan, words, live_state, rollout, options)
        for key in asleep:
            note_awake(api, stack.namespace, key, surely=not ended.status)
        stack.stop_if_interrupted(_hint(stack, events))
        note_refusals(stack, rollout.monitor, events, ended)
        if ended.status and not rollout.monitor.causes:
            raise pulumi_runs.failed(ended, events)
        if options.wait and not events.failed_builds:
            rollout.wait()
            rollout.note_outdated()
        if options.wait and not rollout.monitor.causes:
            rollout.ask_ports(api)
        failures = failures_of(rollout.monitor, api)
    stack.stop_if_interrupted(_hint(stack, events))
    removed = [] if options.services or failures else remove_leftovers(stack, api, plan)
    return Outcome(
        changes=events.changing,
        counts=events.counted(),
        kept=events.kept,
        removed=removed,
        failures=failures,
        urls=stack.target.urls_of(plan),
    )


def _note_project(stack: Stack, api: Api, live_state: LiveState) -> None:
    """Remember which project this is, before anything else is made."""
    if stack.claim is not None:
        told = note_project(api, live_state, stack.claim, stack.environment_name, stack.namespace)
        for text in (told, siblings_of(live_state, stack.environment_name, stack.claim)):
            if text:
                stack.note(text)


def _prove(
    stack: Stack, api: Api, plan: Plan, options: DeployOptions, live_state: LiveState, losing: Collection[str]
) -> None:
    """See that Pulumi can go on, before data is deleted: that it can read its state, above all."""
    words = ["preview", *deploy_args(plan, stack.state, live_state, options)]
    events, ended = pulumi_runs.run_program(
        stack, as_shown(api, plan, losing), words, plan.select_services(options.services)
    )
    stack.stop_if_interrupted()
    if ended.status:
        raise pulumi_runs.failed(ended, events)


def _heed_dev_workloads(stack: Stack, api: Api, plan: Plan, live_state: LiveState) -> Plan:
    """Let the pods of services under development stay away, and tell their dev workloads how many there are to be."""
    dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
    for service in plan.services:
        if service.cluster_name in dev_workloads:
            path = api_path("Deployment", plan.namespace, dev_workloads[service.cluster_name])
            api.patch(path, {"metadata": {"annotations": {ORIGINAL_ANNOTATION: planned_original(service).to_text()}}})
            stack.note(
                f"{service.name} is under development: its own pods come back with 'platform down {service.name}'"
            )
    return without_pods(plan, dev_workloads)


def _heed_sleepers(stack: Stack, api: Api, plan: Plan, live_state: LiveState, chosen: Collection[str]) -> list[Key]:
    """Let Pulumi see that services sleep: it then gives them their pods back as it changes them, in their order.

    A Job that sleeps is made anew: whether it is suspended is nothing that Pulumi looks at.
    """
    asleep = sleeping_workloads_of(plan, live_state, chosen)
    if asleep:
        stack.note(f"waking what sleeps: {', '.join(services_of(plan, asleep).values())}")
    delete(stack, api, [key for key in asleep if key[0] == "Job"], "that slept")
    return asleep


def _run(
    stack: Stack, plan: Plan, words: list[str], live_state: LiveState, rollout: Rollout, options: DeployOptions
) -> tuple[Events, Ended]:
    from composeplat.components.dependency_gate import DependencyGate  # noqa: PLC0415 -- loads Pulumi

    monitor = rollout.monitor
    gate = DependencyGate(
        plan=plan,
        access=stack.target.access,
        watcher=rollout.watcher,
        deadline=rollout.deadline,
        existing=dict.fromkeys(live_state.object_metadata, True),
        cancelled=stack.interrupts.cancelled,
        on_waiting=lambda service, message: monitor.emit(service, Phase.WAITING, message),
        on_failure=monitor.fail,
    )
    more = pulumi_runs.NOTHING if options.safe_checkpoints else pulumi_runs.checkpoints(len(plan.objects))
    listening = pulumi_runs.RunHandlers(rollout.handle, rollout.tick)
    return pulumi_runs.run_program(stack, plan, words, monitor.chosen, gate=gate, listening=listening, more=more)


def _hint(stack: Stack, events: Events) -> str:
    done = len(events.done & {change.urn for change in events.changing})
    noted = "are noted" if stack.interrupts.count == 1 else "will be found again"
    return f"{done} changes were made and {noted}; 'platform deploy' goes on from there"
