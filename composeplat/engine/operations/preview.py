"""Show the changes of a deploy, without any change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.namespaces import is_ending
from composeplat.diagnostics import ComposeplatError, join_and_count
from composeplat.engine import pulumi_runs
from composeplat.engine.autoscaling import autoscaled_replicas, differs_from_state, with_autoscaled
from composeplat.engine.builder import DOCKER_HOST, docker_host_of
from composeplat.engine.checks import check
from composeplat.engine.deletion import can_update, ending_namespace_error, find_leftovers
from composeplat.engine.dev_workloads import (
    dev_workloads_by_service,
    ended_development,
    without_pods,
    workloads_without_pods,
)
from composeplat.engine.events import Change
from composeplat.engine.foreign_objects import find_foreign, foreign_notes
from composeplat.engine.history import ended_well, find_history, note_other_state
from composeplat.engine.kept_salts import with_kept_salts
from composeplat.engine.no_change import has_all
from composeplat.engine.no_change_check import NoChangeCheck, run_if_needed
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import (
    Key,
    LiveState,
    known_to_state,
    left_claims,
    missing_from_cluster,
    object_keys,
    rename_replaced,
    unknown_to_state,
    volumes_to_replace,
)
from composeplat.engine.provenance import describe_siblings
from composeplat.engine.providers import plan_with_last_values
from composeplat.engine.pulumi_args import deploy_args, registered_part
from composeplat.engine.pulumi_flags import policy_flags
from composeplat.engine.scaling import service_names, sleeping_workloads_of
from composeplat.engine.stack import Stack
from composeplat.engine.state_references import is_in_order
from composeplat.plan.desired import Plan
from composeplat.plan.workloads import ends_pods_first

_MAX_LISTED = 5
_CLAIMS = "volumeClaimTemplates"
#: The fields of a StatefulSet that an update can change.
_CHANGEABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


def preview(stack: Stack, plan: Plan, options: DeployOptions) -> Outcome:
    plan.select_services(options.services)
    return run_if_needed(stack, plan, options, "preview", _preview)


def _preview(stack: Stack, api: Api, plan: Plan, options: DeployOptions, no_change: NoChangeCheck) -> Outcome:
    if is_ending(api, stack.namespace):
        raise ending_namespace_error(stack)
    live_state = check(stack, api, plan, options)
    plan, unknown = plan_with_last_values(stack, api, plan)
    stack.workspace.make_stack()
    stack.check_cluster()
    state = stack.state
    volumes = volumes_to_replace(plan, live_state, options.replaced_volumes, options.services)
    replaced = [name for name, has_to_be in volumes.items() if has_to_be]
    scaled = autoscaled_replicas(api, plan, live_state)
    history = find_history(api, stack.namespace, stack.environment_name)
    refreshes = (
        note_other_state(stack, history) or missing_from_cluster(state, live_state) or differs_from_state(state, scaled)
    )
    parts = None if refreshes else no_change.find_parts(plan)
    policies = policy_flags(stack.variables)
    args = ["preview", *deploy_args(plan, state, live_state, options, parts), *policies]
    if refreshes:
        args.append(pulumi_runs.REFRESH)
    held_back = workloads_without_pods(state, dev_workloads_by_service(live_state.object_metadata, plan.environment))
    kept = with_kept_salts(with_autoscaled(plan, scaled), state, live_state)
    shown = preview_plan(api, without_pods(kept, held_back), replaced)
    chosen = plan.select_services(options.services)
    registered = registered_part(shown, options.services, parts)
    # A deploy notes its Docker host in the state; a preview, which needs none, takes the one that is there.
    docker = docker_host_of(state)
    more = pulumi_runs.NO_VARIABLES if docker is None else {DOCKER_HOST: docker}
    events, result = pulumi_runs.run_program(stack, shown, args, chosen, registered=registered, more=more)
    stack.stop_if_interrupted()
    if result.status and not events.is_refused:
        raise pulumi_runs.run_error(result, events) if is_in_order(state) else _out_of_order()
    foreign = find_foreign(state, live_state, stack.environment_name)
    events.leave_out(foreign)
    part = plan.limited_to(options.services)
    notes = [*_losses(plan, replaced), *_surprises(part, live_state, state), *_siblings(stack, live_state), *unknown]
    notes += foreign_notes(foreign.values())
    if not options.services:
        ended = ended_development(live_state.object_metadata, plan)
        notes += [f"{service} is under development, which ends with this deploy" for service in ended]
        events.add(_leftovers(plan, state, live_state))
    outcome = Outcome(
        changes=events.effective_changes,
        counts=no_change.complete(events.count_operations(), parts),
        kept=[*events.kept, *left_claims(plan, live_state, events.removed)],
        notes=notes,
        urls=stack.target.urls_of(part),
        violations=events.violations,
    )
    # A deploy that ends well after one that did not is a revision, even without a change.
    if not (outcome.changes or notes or scaled) and ended_well(history):
        no_change.keep(outcome.counts, has_changes=False)
    return outcome


def _out_of_order() -> ComposeplatError:
    return ComposeplatError(
        "Pulumi can't read the state: a resource comes before another one that it depends on",
        "platform refresh repairs the state",
    )


def preview_plan(api: Api, plan: Plan, replaced: Collection[str]) -> Plan:
    """The plan for a preview: replaced objects have other names in it, since a dry run can't delete those before."""
    live = api.items(kind_path("v1", "Service", plan.namespace))
    may_stop_rolling = any(map(ends_pods_first, plan.objects))
    deployments = api.items(kind_path("apps/v1", "Deployment", plan.namespace)) if may_stop_rolling else ()
    return rename_replaced(plan, live, replaced, deployments, _fixed_otherwise(api, plan))


def _fixed_otherwise(api: Api, plan: Plan) -> set[Key]:
    """The StatefulSets that can't be updated to the plan, such as those that get another anonymous volume.

    Of Jobs and Deployments, Pulumi's provider recognizes the refusal itself.
    """
    planned = {desired.name: desired.manifest for desired in plan.objects if desired.kind == "StatefulSet"}
    found = api.items(kind_path("apps/v1", "StatefulSet", plan.namespace)) if planned else ()
    live = {str(item["metadata"]["name"]): item["spec"] for item in found}
    return {
        ("StatefulSet", name)
        for name, manifest in planned.items()
        if name in live and _differs_where_fixed(live[name], manifest["spec"]) and not can_update(api, manifest)
    }


def _differs_where_fixed(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a field may differ that no update can change: only the API server knows whether two values are one."""
    fixed = {key: value for key, value in wanted.items() if key not in _CHANGEABLE}
    return (live.get(_CLAIMS) is not None and _CLAIMS not in wanted) or not has_all(live, fixed)


def _losses(plan: Plan, volumes: Iterable[str]) -> Iterable[str]:
    for volume in volumes:
        users = ", ".join(service.name for service in plan.users_of(volume)) or "no service"
        yield f"volume {volume} will be replaced and its data deleted; {users} will be replaced with it"


def _leftovers(plan: Plan, state: Mapping[str, Any], live_state: LiveState) -> list[Change]:
    """The deletions that a deploy ends with, of objects that Pulumi does not know."""
    known = known_to_state(state)
    found = find_leftovers(live_state.ours(plan.environment), plan)
    return [change for change in found if (change.kind, change.name) not in known]


def _siblings(stack: Stack, live_state: LiveState) -> Iterable[str]:
    siblings = describe_siblings(live_state, stack.environment_name, stack.claim) if stack.claim is not None else ""
    return [siblings] if siblings else []


def _surprises(part: Plan, live_state: LiveState, state: Mapping[str, Any]) -> Iterable[str]:
    """What a deploy of this part of the plan does that the list of changes does not show, or not as it will be."""
    unknown = len(unknown_to_state(part, state, live_state))
    if unknown:
        are, them = ("object is", "it") if unknown == 1 else ("objects are", "them")
        yield f"{unknown} {are} shown as new, and there already: the state does not know {them}; a deploy adopts {them}"
    ending = [f"{kind} '{name}'" for kind, name in live_state.ending(object_keys(part.objects))]
    if ending:
        shown, they = join_and_count(ending, _MAX_LISTED), "it is" if len(ending) == 1 else "they are"
        yield f"being deleted: {shown}; a deploy waits until {they} gone"
    asleep = sleeping_workloads_of(part, live_state, [service.name for service in part.services])
    if asleep:
        names = ", ".join(service_names(part, asleep))
        yield f"asleep: {names}; a deploy wakes them, and so does 'platform wake'"
