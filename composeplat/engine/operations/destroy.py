"""Delete an environment from the cluster, except its volumes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object
from composeplat.components.resource_names import Urns
from composeplat.engine import pulumi_runs
from composeplat.engine.deletion import deletion_change, wait_until_deleted, wait_until_no_pods
from composeplat.engine.events import Change, Events
from composeplat.engine.foreign_objects import forget_foreign
from composeplat.engine.live_state import read_live_state
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import CLAIM, Key, LiveState, api_path, lost_objects, object_keys, unused_claims
from composeplat.engine.provenance import forget_project
from composeplat.engine.providers import release_providers
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.recording import Recording, forget_history, record_deployment
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan


def destroy(stack: Stack, plan: Plan, *, volumes: bool, wait: bool) -> Outcome:
    started = time.monotonic()
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        with stack.lock("destroy"), Api(stack.target.access) as api:
            stack.check_project("destroy", api)
            with record_deployment(stack, api, plan, DeployOptions(wait=wait), "destroy") as recording:
                outcome = _destroy(recording, volumes=volumes, wait=wait)
            if not outcome.kept:
                forget_history(stack, api)
            release_providers(stack)
    outcome.seconds = time.monotonic() - started
    return outcome


def find_volumes(stack: Stack, plan: Plan) -> list[str]:
    """Return the claims, with their sizes, that are deleted where the volumes are deleted too."""
    with Api(stack.target.access) as api:
        live_state = read_live_state(api, stack.namespace, object_keys(plan.objects))
    return _claims(_own_objects(plan, live_state), live_state)


def _destroy(recording: Recording, *, volumes: bool, wait: bool) -> Outcome:
    stack, api, plan = recording.stack, recording.api, recording.plan
    events = Events()
    if stack.state.get("resources"):
        stack.workspace.make_stack()
        stack.check_cluster()
        stack.mend_state()
        before = read_live_state(api, stack.namespace)
        forget_foreign(stack, before)
        gone = frozenset(key for key, _ in lost_objects(stack.state, before))
        with recording.watch_run():
            events, result = _forget_all(recording, gone)
        events.leave_out([urn for urn, change in events.changes.items() if _is_no_deletion(change, gone)])
        recording.note_changes(events)
        if result.status and not stack.is_interrupted:
            raise pulumi_runs.run_error(result, events)
        stack.stop_if_interrupted("the next 'platform destroy' deletes the rest")
    # Objects that the state does not have.
    live_state = read_live_state(api, stack.namespace, object_keys(plan.objects))
    outcome = Outcome(changes=events.effective_changes, counts=events.count_operations())
    ours = _own_objects(plan, live_state)
    going = {key: head for key, head in ours.items() if volumes or key[0] != CLAIM}
    urns = Urns(plan.namespace, plan.environment)
    for (kind, name), head in going.items():
        outcome.removed.append(f"{kind}/{name}")
        if "deletionTimestamp" not in head["metadata"]:
            api.delete(api_path(kind, stack.namespace, name))
            events.add([deletion_change(urns, kind, name, head)])
            recording.note_changes(events)
    found = _claims(ours, live_state)
    outcome.kept = [] if volumes else found
    outcome.unused = [_with_size(name, live_state) for name in unused_claims(plan, live_state)]
    outcome.deleted_volumes = found if volumes else []
    if not outcome.kept:
        forget_project(api, stack.environment_name, stack.namespace)
    if wait:
        wait_until_deleted(stack, api, going, "that is destroyed")
        wait_until_no_pods(stack, api)
    return outcome


def _forget_all(recording: Recording, gone: Collection[Key]) -> tuple[Events, PulumiResult]:
    """Delete the objects of the state; those that are gone already are not named."""
    stack = recording.stack

    def take(urn: str, events: Events) -> None:
        recording.note_changes(events)
        change = events.changes.get(urn) if urn in events.done else None
        if change is None or change.kind == "Image" or _is_no_deletion(change, gone):
            return
        stack.note(f"deleted {change.kind}/{change.name}")

    # Half of them are components and the like.
    objects = len(stack.state.get("resources") or []) / 2
    args = [
        "destroy",
        *pulumi_runs.UNATTENDED_ARGS,
        "--stack",
        stack.namespace,
        "--parallel",
        "64",
        *pulumi_runs.NO_PROGRAM_ARGS,
    ]
    return pulumi_runs.run(stack, args, pulumi_runs.RunHandlers(take), pulumi_runs.checkpoint_variables(objects))


def _is_no_deletion(change: Change, gone: Collection[Key]) -> bool:
    """Whether a resource goes from the state only: a volume stays in the cluster, or the object is gone already."""
    return change.kept or (change.kind, change.name) in gone


def _own_objects(plan: Plan, live_state: LiveState) -> dict[Key, Object]:
    # An external claim that once was of the environment still has its labels until the next deploy.
    external = {(required.kind, required.name) for required in plan.required}
    return {key: head for key, head in live_state.ours(plan.environment).items() if key not in external}


def _claims(objects: Iterable[Key], live_state: LiveState) -> list[str]:
    return [_with_size(name, live_state) for kind, name in objects if kind == CLAIM]


def _with_size(name: str, live_state: LiveState) -> str:
    claim = live_state.claims.get(name, {})
    size = claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "")
    return f"{name} ({size})" if size else name
