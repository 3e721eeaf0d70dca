"""Deploy a plan to the cluster.

Owns the order: check, prepare, run Pulumi, wait, delete leftovers. Functions of data decide each step, elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from composeplat.cluster.api import Api
from composeplat.cluster.namespaces import make_namespace
from composeplat.diagnostics import format_count
from composeplat.engine import pulumi_runs
from composeplat.engine.autoscaling import (
    autoscaled_replicas,
    differs_from_state,
    release_replicas,
    wake_autoscaled,
    with_autoscaled,
)
from composeplat.engine.changed_parts import ChangedParts
from composeplat.engine.checks import check
from composeplat.engine.cluster_notes import notes_after, notes_before, notes_of_failures
from composeplat.engine.deletion import (
    delete,
    delete_conflicting,
    delete_leftovers,
    delete_volume,
    wait_for_namespace,
    wait_until_deleted,
)
from composeplat.engine.dev_workloads import (
    ORIGINAL_ANNOTATION,
    dev_workloads_by_service,
    planned_original,
    without_pods,
)
from composeplat.engine.events import Change, Events
from composeplat.engine.failure_logs import failures_of, note_refusals
from composeplat.engine.foreign_objects import forget_foreign
from composeplat.engine.former_users import end_former_users, find_former_users
from composeplat.engine.image_updates import update_images
from composeplat.engine.kept_salts import with_kept_salts
from composeplat.engine.no_change_check import NoChangeCheck, run_if_needed
from composeplat.engine.operations.preview import preview, preview_plan
from composeplat.engine.outcomes import DeployOptions, Outcome, Refused
from composeplat.engine.pod_retries import retry_pods
from composeplat.engine.policies import report_violations
from composeplat.engine.preflight import (
    Key,
    LiveState,
    api_path,
    known_to_state,
    left_claims,
    missing_from_cluster,
    object_keys,
    volumes_to_replace,
)
from composeplat.engine.provenance import describe_siblings, note_project
from composeplat.engine.providers import check_providers, run_providers
from composeplat.engine.pulumi_args import deploy_args, registered_part
from composeplat.engine.pulumi_flags import policy_flags
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.recording import Recording, record_deployment
from composeplat.engine.required_objects import release_claims
from composeplat.engine.rollback import RollBack
from composeplat.engine.rollout import Rollout, open_rollout
from composeplat.engine.scaling import remove_sleep_mark, service_names, sleeping_workloads, sleeping_workloads_of
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan


def deploy(stack: Stack, plan: Plan, options: DeployOptions) -> Outcome:
    plan.select_services(options.services)
    check_providers(stack, plan, options.services)
    if policy_flags(stack.variables):
        # As each policy sees a resource right before its change, a refusal would come after the changes of others.
        shown = preview(stack, plan, options)
        if shown.is_refused:
            return Outcome(violations=shown.violations, seconds=shown.seconds)
    return run_if_needed(stack, plan, options, options.command, _deploy)


def _deploy(stack: Stack, api: Api, plan: Plan, options: DeployOptions, no_change: NoChangeCheck) -> Outcome:
    wait_for_namespace(stack, api)
    live_state = check(stack, api, plan, options)
    plan = run_providers(stack, api, plan, options.services, options.timeout)
    _prepare_namespace(stack, api, plan, live_state)
    stack.workspace.make_stack()
    with record_deployment(stack, api, plan, options, options.command) as recording:
        return _apply(recording, live_state, no_change)


def _apply(recording: Recording, live_state: LiveState, no_change: NoChangeCheck) -> Outcome:
    stack, api, plan, options = recording.stack, recording.api, recording.plan, recording.options
    volumes = volumes_to_replace(plan, live_state, options.replaced_volumes, options.services)
    stack.mend_state()
    forget_foreign(stack, live_state)
    state = stack.state
    known = known_to_state(state) & live_state.object_metadata.keys()
    _replace_volumes(stack, api, plan, live_state, options, volumes)
    counts = autoscaled_replicas(api, plan, live_state)
    plan = _scale_for_dev_workloads(stack, api, with_autoscaled(plan, counts), live_state)
    plan = with_kept_salts(plan, state, live_state)
    release_replicas(api, plan, live_state)
    delete_conflicting(stack, api, plan, live_state, state, options)
    chosen = plan.select_services(options.services)
    asleep = _wake_sleeping(stack, api, plan, live_state, chosen)
    is_state_behind = (
        recording.follows_other_state() or missing_from_cluster(state, live_state) or differs_from_state(state, counts)
    )
    refreshes = options.refresh or asleep or any(volumes.values()) or is_state_behind
    parts = None if refreshes else no_change.find_parts(plan)
    args = ["up", *pulumi_runs.UNATTENDED_ARGS, *deploy_args(plan, stack.state, live_state, options, parts)]
    args += [*policy_flags(stack.variables), *([pulumi_runs.REFRESH] if refreshes else [])]
    _let_former_users_end(stack, api, plan, live_state, options)
    before = RollBack.remember(stack, plan, chosen, options)
    update_images(stack, api, plan, chosen)
    if recording.may_follow_failure():
        retry_pods(stack, api, plan, chosen)
    with open_rollout(stack, api, plan, chosen, options.timeout) as rollout:
        events = _roll_out(recording, args, live_state, rollout, asleep=asleep, parts=parts)
        failures = failures_of(rollout.monitor, api)
    has_changes = bool(events.effective_changes)
    events.note_made_again(known)
    events.note_same_images(state)
    recording.has_failed = bool(failures)
    stack.stop_if_interrupted(_hint(stack, events))
    for note in notes_of_failures(api, plan, failures):
        stack.note(note)
    if failures:
        before.run(stack, api, plan, events, options, live_state)
    removed = _finish(stack, api, plan, live_state, is_whole=not options.services and not failures)
    events.add(removed)
    counted = no_change.complete(events.count_operations(), parts)
    if not failures and not counts:
        no_change.keep(counted, has_changes=bool(has_changes or removed or asleep or volumes))
    return Outcome(
        changes=events.made_changes if failures else events.effective_changes,
        counts=counted,
        kept=[*events.kept, *left_claims(plan, live_state, events.removed)],
        removed=[f"{change.kind}/{change.name}" for change in removed],
        failures=failures,
        violations=events.violations,
        urls=stack.target.urls_of(plan.limited_to(options.services)),
    )


def _finish(stack: Stack, api: Api, plan: Plan, before: LiveState, *, is_whole: bool) -> list[Change]:
    """Note the shortcomings of the cluster, and return the leftovers that were deleted."""
    for note in notes_after(api, plan):
        stack.note(note)
    if not is_whole:
        return []
    removed = delete_leftovers(stack, api, plan, before)
    release_claims(stack, api, plan)
    return removed


def _prepare_namespace(stack: Stack, api: Api, plan: Plan, live_state: LiveState) -> None:
    """Create the namespace, record the project in it, and wait for objects that are being deleted."""
    stack.check_cluster()
    if not live_state.namespace:
        make_namespace(api, stack.namespace)
        stack.note(f"created namespace {stack.namespace}")
    _note_project(stack, api, live_state)
    for note in notes_before(api, plan):
        stack.note(note)
    wait_until_deleted(stack, api, live_state.ending(object_keys(plan.objects)), "of the previous run")


def _replace_volumes(
    stack: Stack, api: Api, plan: Plan, live_state: LiveState, options: DeployOptions, volumes: Mapping[str, bool]
) -> None:
    """Delete the volumes that have to be replaced, after Pulumi has shown that the deploy can continue."""
    replaced = [name for name, has_to_be in volumes.items() if has_to_be]
    if replaced:
        _check_with_preview(stack, api, plan, options, live_state, replaced)
    for name in volumes:
        if name in replaced:
            delete_volume(stack, api, plan, name)
        else:
            stack.note(f"volume {name} stays as it is: the file does not change it")


def _roll_out(
    recording: Recording,
    args: list[str],
    live_state: LiveState,
    rollout: Rollout,
    *,
    asleep: Collection[Key],
    parts: ChangedParts | None,
) -> Events:
    """Run Pulumi, then wait for the services and probe the ports of endpoints."""
    stack, api, options = recording.stack, recording.api, recording.options
    if parts is not None:
        rollout.monitor.note_unchanged(parts.unchanged_services(rollout.monitor.plan))
    with recording.watch_run():
        events, result = _run(recording, args, live_state, rollout, parts)
    recording.note_changes(events)
    for key in asleep:
        remove_sleep_mark(api, stack.namespace, key, is_certain=not result.status)
    stack.stop_if_interrupted(_hint(stack, events))
    if events.is_refused and stack.origins is not None:
        plan = rollout.monitor.plan
        raise Refused(report_violations(events.violations, plan, stack.origins), "the changes before it were made")
    note_refusals(stack, rollout.monitor, events, result)
    if result.status and not rollout.monitor.causes:
        raise pulumi_runs.run_error(result, events)
    if options.wait and not events.has_failed_build:
        rollout.wait()
        rollout.note_outdated()
    if options.wait and not rollout.monitor.causes:
        rollout.check_ports(api)
    return events


def _note_project(stack: Stack, api: Api, live_state: LiveState) -> None:
    """Record the project of this environment, before anything else is created."""
    if stack.claim is not None:
        note = note_project(api, live_state, stack.claim, stack.environment_name, stack.namespace)
        for text in (note, describe_siblings(live_state, stack.environment_name, stack.claim)):
            if text:
                stack.note(text)


def _check_with_preview(
    stack: Stack, api: Api, plan: Plan, options: DeployOptions, live_state: LiveState, replaced: Collection[str]
) -> None:
    """Run a preview before data is deleted: it fails if Pulumi can't read its state."""
    args = ["preview", *deploy_args(plan, stack.state, live_state, options)]
    shown, chosen = preview_plan(api, plan, replaced), plan.select_services(options.services)
    registered = registered_part(shown, options.services)
    events, result = pulumi_runs.run_program(stack, shown, args, chosen, registered=registered)
    stack.stop_if_interrupted()
    if result.status:
        raise pulumi_runs.run_error(result, events)


def _scale_for_dev_workloads(stack: Stack, api: Api, plan: Plan, live_state: LiveState) -> Plan:
    """Keep services under development without pods, and record in their dev workloads how many pods to restore."""
    dev_workloads = dev_workloads_by_service(live_state.object_metadata, plan.environment)
    for service in plan.services:
        if service.cluster_name in dev_workloads:
            path = api_path("Deployment", plan.namespace, dev_workloads[service.cluster_name])
            original = planned_original(plan, service).to_text()
            api.patch(path, {"metadata": {"annotations": {ORIGINAL_ANNOTATION: original}}})
            stack.note(
                f"{service.name} is under development: its own pods come back with 'platform down {service.name}'"
            )
    return without_pods(plan, dev_workloads)


def _let_former_users_end(stack: Stack, api: Api, plan: Plan, live_state: LiveState, options: DeployOptions) -> None:
    """Let the workloads that leave end before another one takes over their volumes; an import does so itself."""
    former = {} if stack.before_create else find_former_users(api, plan, live_state, options)
    if former and not options.services:
        stack.before_create = end_former_users(stack, plan, former)
        return
    # A deploy of some services deletes none.
    for created, leaving in former.items():
        names = ", ".join(name for _, name in leaving)
        stack.note(f"{names} is not in the file, and still writes to a volume of {created[1]}: platform deploy ends it")


def _wake_sleeping(stack: Stack, api: Api, plan: Plan, live_state: LiveState, chosen: Collection[str]) -> list[Key]:
    """Find sleeping workloads: Pulumi scales them up as it updates them, in their order.

    A sleeping Job is deleted and created again, since Pulumi does not compare whether a Job is suspended; and so is
    a DaemonSet, whose selector of nodes Pulumi would leave to the one who set it. Neither has pods.
    """
    asleep = sleeping_workloads_of(plan, live_state, chosen)
    if asleep:
        stack.note(f"waking sleeping services: {', '.join(service_names(plan, asleep))}")
    delete(stack, api, [key for key in asleep if key[0] in ("Job", "DaemonSet")], "that slept")
    counts = sleeping_workloads(live_state, plan.environment)
    wake_autoscaled(api, plan, {key: counts[key] for key in asleep})
    return asleep


def _run(
    recording: Recording, args: list[str], live_state: LiveState, rollout: Rollout, parts: ChangedParts | None
) -> tuple[Events, PulumiResult]:
    from composeplat.components.dependency_gate import DependencyGate  # noqa: PLC0415 -- loads Pulumi

    stack, options = recording.stack, recording.options
    monitor, plan = rollout.monitor, rollout.monitor.plan

    def handle(urn: str, events: Events) -> None:
        recording.note_changes(events)
        rollout.handle(urn, events)

    gate = DependencyGate(
        plan=plan,
        access=stack.target.access,
        watcher=rollout.watcher,
        deadline=rollout.deadline,
        existing=dict.fromkeys(live_state.object_metadata, True),
        cancelled=stack.interrupts.cancelled,
        on_waiting=monitor.emit_waiting,
        on_failure=monitor.fail,
        before_create=stack.before_create,
    )
    more = pulumi_runs.NO_VARIABLES if options.safe_checkpoints else pulumi_runs.checkpoint_variables(len(plan.objects))
    handlers = pulumi_runs.RunHandlers(handle, rollout.tick)
    return pulumi_runs.run_program(
        stack,
        plan,
        args,
        monitor.chosen,
        gate=gate,
        handlers=handlers,
        more=more,
        registered=registered_part(plan, options.services, parts),
    )


def _hint(stack: Stack, events: Events) -> str:
    place = "in the state" if stack.interrupts.count == 1 else "in the cluster"
    made = format_count(len(events.made_changes), "change")
    return f"{made} made, recorded {place}; 'platform deploy' continues from there"
