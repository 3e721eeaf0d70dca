"""Delete objects without Pulumi, and wait until they are gone.

Owns these deletions: of objects that a plan conflicts with, of an interrupted run's objects, and of objects that the
state does not have. It touches only objects with our labels: :mod:`~composeplat.engine.preflight` checks that.
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from composeplat import progress
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.namespaces import is_ending
from composeplat.cluster.snapshot import Object, pod_names
from composeplat.cluster.unreachable_nodes import find_unreachable_node, unreachable_hint
from composeplat.cluster.watching import pods_path
from composeplat.components.resource_names import Urns
from composeplat.diagnostics import ComposeplatError, join_and_count
from composeplat.engine.dev_workloads import ended_development, is_dev_workload
from composeplat.engine.events import Change, Operation
from composeplat.engine.live_state import list_metadata, read_live_state
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import CLAIM, KINDS, Key, LiveState, api_path, belongs_to, known_to_state, object_keys
from composeplat.engine.stack import Stack
from composeplat.names import MAX_LABEL_LENGTH, MAX_NAME_LENGTHS, SERVICE_LABEL, shorten
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.deadline import Deadline

_WAITING_FOR_PODS = "waiting until all pods have ended"
_DELETION_TIMEOUT_S = 120.0
_MAX_LISTED = 5
_REFUSALS = (http.client.UNPROCESSABLE_ENTITY, http.client.BAD_REQUEST)
#: Refusals because of the object that is there: it counts in a quota, and has the ports of nodes.
_FREED = ("exceeded quota", "already allocated")
#: Kinds with immutable fields: an interrupted run may have created them with other values.
_IMMUTABLE_KINDS = ("Job", "Service", "StatefulSet")


def delete(stack: Stack, api: Api, keys: Collection[Key], which: str) -> None:
    """Delete objects, and wait until they are gone."""
    for kind, name in keys:
        api.delete(api_path(kind, stack.namespace, name))
    wait_until_deleted(stack, api, keys, which)


def wait_until_deleted(stack: Stack, api: Api, keys: Iterable[Key], which: str) -> None:
    deadline = Deadline(_DELETION_TIMEOUT_S)
    for kind, name in _remaining(api, stack.namespace, keys):
        is_deleted = partial(_is_deleted, api, api_path(kind, stack.namespace, name))
        with progress.step(f"waiting until {kind} '{name}' {which} is gone", is_transient=True):
            if not stack.poll(is_deleted, deadline):
                finalizers = _finalizers(api, api_path(kind, stack.namespace, name))
                held = f", held by the finalizers {', '.join(finalizers)}" if finalizers else ""
                raise ComposeplatError(
                    f"{kind} '{name}' {which} still exists after {_DELETION_TIMEOUT_S:.0f} s{held}",
                    f"see what sets them: kubectl -n {stack.namespace} get {kind.lower()} {name} -o yaml",
                )


def wait_for_namespace(stack: Stack, api: Api) -> None:
    """Wait until a namespace that is being deleted is gone: only then it can be created again."""
    if not is_ending(api, stack.namespace):
        return
    with progress.step(f"waiting until namespace '{stack.namespace}' is deleted", is_transient=True):
        if not stack.poll(lambda: not is_ending(api, stack.namespace), Deadline(_DELETION_TIMEOUT_S)):
            raise ending_namespace_error(stack, f" and still exists after {_DELETION_TIMEOUT_S:.0f} s")


def ending_namespace_error(stack: Stack, since: str = "") -> ComposeplatError:
    return ComposeplatError(
        f"namespace '{stack.namespace}' is being deleted{since}",
        f"see what it waits for: kubectl get namespace {stack.namespace} --output yaml; or give another --namespace",
    )


def _remaining(api: Api, namespace: str, keys: Iterable[Key]) -> list[Key]:
    """Leave out the objects that are gone: a list of each kind instead of a request for each of many objects."""
    names: dict[str, list[str]] = {}
    for kind, name in keys:
        names.setdefault(kind, []).append(name)
    remaining: list[Key] = []
    for kind, wanted in names.items():
        listed = list_metadata(api, kind_path(KINDS[kind], kind, namespace)) if len(wanted) > 1 else None
        present = set(wanted) if listed is None else {str(entry["metadata"]["name"]) for entry in listed}
        remaining += [(kind, name) for name in wanted if name in present]
    return remaining


def _is_deleted(api: Api, path: str) -> bool:
    return api.find(path) is None


def _finalizers(api: Api, path: str) -> list[str]:
    found = api.find(path) or {"metadata": {}}
    return [str(finalizer) for finalizer in found["metadata"].get("finalizers") or []]


@contextlib.contextmanager
def wait_for_pods() -> Iterator[Callable[[Sequence[Object]], None]]:
    """Show that pods are waited for; what it yields is called with those that are left, and names them."""
    with progress.step(_WAITING_FOR_PODS, is_transient=True), contextlib.ExitStack() as shown:
        before = ""

        def show(pods: Sequence[Object]) -> None:
            nonlocal before
            names = join_and_count(pod_names(list(pods)), _MAX_LISTED)
            if names != before:
                shown.close()
                if names:
                    shown.enter_context(progress.step(f"waiting for {names}", is_transient=True))
                before = names

        yield show


def wait_until_no_pods(stack: Stack, api: Api) -> None:
    """Wait until all pods have ended; a note names those that take too long, as on a node that is gone."""
    path = pods_path(stack.namespace, stack.environment_name)
    left: list[Object] = []

    def has_no_pods(pods: list[Object]) -> bool:
        left[:] = [pod for pod in pods if belongs_to(pod, stack.environment_name)]
        show(left)
        return not left

    with wait_for_pods() as show:
        if stack.watch(api, path, has_no_pods, Deadline(_DELETION_TIMEOUT_S)):
            return
    shown = join_and_count(pod_names(left), _MAX_LISTED)
    hint = unreachable_hint(find_unreachable_node(left))
    why = f"; {hint}" if hint else ""
    stack.note(f"pods have not ended after {_DELETION_TIMEOUT_S:.0f} s, and may still run: {shown}{why}")


def delete_conflicting(
    stack: Stack,
    api: Api,
    plan: Plan,
    live_state: LiveState,
    state: Mapping[str, Any],
    options: DeployOptions,
) -> None:
    """Delete objects of an interrupted run that can't be updated to the plan; those of other services stay."""
    unknown = live_state.object_metadata.keys() - known_to_state(state) - options.adopted
    in_the_way = [
        (desired.kind, desired.name)
        for desired in plan.limited_to(options.services).objects
        if desired.kind in _IMMUTABLE_KINDS
        and (desired.kind, desired.name) in unknown
        and not can_update(api, desired.manifest)
        and _can_create(api, desired.manifest)
    ]
    delete(stack, api, in_the_way, "of an interrupted deploy")


def delete_volume(stack: Stack, api: Api, plan: Plan, name: str) -> None:
    """Delete a volume and its workloads, so that the deploy creates both again."""
    volume = next(volume for volume in plan.volumes if volume.name == name)
    users = [service.workload for service in plan.users_of(name)]
    stack.note(f"deleting volume {name} and its data")
    delete(stack, api, [*users, *object_keys(volume.objects)], "that is replaced")


def delete_leftovers(stack: Stack, api: Api, plan: Plan, before: LiveState) -> list[Change]:
    """Delete objects with our labels that no plan has: an interrupted run left them, or a run with another state.

    What was not there ``before`` this deploy is of another one, which has begun while this one waited for its pods.
    """
    live = read_live_state(api, stack.namespace).ours(stack.environment_name)
    found = {key: head for key, head in live.items() if _uid(head) == _uid(before.object_metadata.get(key))}
    for service, name in ended_development(found, plan).items():
        stack.note(f"the development of {service} has ended: this deploy has no such service")
        api.delete(api_path("Deployment", stack.namespace, name), uid=_uid(found["Deployment", name]))
    leftovers = find_leftovers(found, plan)
    for change in leftovers:
        uid = _uid(found[change.kind, change.name])
        api.delete(api_path(change.kind, stack.namespace, change.name), uid=uid)
    return leftovers


def _uid(head: Object | None) -> str:
    return str(head["metadata"]["uid"]) if head else ""


def find_leftovers(ours: Mapping[Key, Object], plan: Plan) -> list[Change]:
    """Find the objects of an environment that its plan does not have, and that are not being deleted already."""
    wanted, urns = set(object_keys(plan.objects)), Urns(plan.namespace, plan.environment)
    return [
        deletion_change(urns, kind, name, head)
        for (kind, name), head in ours.items()
        if kind != CLAIM
        and (kind, name) not in wanted
        and not is_dev_workload(head)
        and "deletionTimestamp" not in head["metadata"]
    ]


def deletion_change(urns: Urns, kind: str, name: str, head: Object) -> Change:
    """Return the deletion of an object that no state has, so that its URN is made up; it counts for its service."""
    service = str(head["metadata"]["labels"].get(SERVICE_LABEL, name))
    urn = urns.child(ResourceKind.SERVICE, ResourceKind.SERVICE, service, f"{kind}/{name}")
    return Change(operation=Operation.DELETE, urn=urn, kind=kind, name=name)


def can_update(api: Api, manifest: dict[str, Any]) -> bool:
    """Return whether the API server would accept an update of an object."""
    try:
        api.apply(as_plain(manifest), dry_run=True)
    except ApiError as error:
        return error.status not in _REFUSALS
    return True


def _can_create(api: Api, manifest: dict[str, Any]) -> bool:
    """Return whether it would accept the object once the present one is gone, whose place and ports are free then."""
    try:
        api.create(under_another_name(as_plain(manifest)), dry_run=True)
    except ApiError as error:
        is_denied = error.status == http.client.FORBIDDEN or error.status in _REFUSALS
        return not is_denied or any(text in str(error) for text in _FREED)
    return True


def under_another_name(manifest: Object) -> Object:
    """Return a manifest for a dry run beside the object that has its name."""
    metadata = manifest["metadata"]
    limit = MAX_NAME_LENGTHS.get(manifest["kind"], MAX_LABEL_LENGTH)
    return {**manifest, "metadata": {**metadata, "name": shorten(f"{metadata['name']}-check", limit)}}


def as_plain(value: Any) -> Any:
    """A manifest as plain data; a late value is its text."""
    match value:
        case dict():
            return {key: as_plain(item) for key, item in value.items()}
        case list():
            return [as_plain(item) for item in value]
        case str() | int() | float() | bool() | None:
            return value
        case _:
            return str(value)
