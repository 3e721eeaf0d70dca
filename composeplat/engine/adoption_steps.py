"""The steps of ``platform import`` in the cluster: labels, and the handing over of workloads.

Owns the order of requests in each step, so that a run that ends between two of them leaves pods running, and the next
run continues: a label is there or not, and a workload is gone only once its pods have our labels.
Must not decide which objects they are: :mod:`~composeplat.engine.adoption` does.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_list import wait_for
from composeplat.cluster.snapshot import Object, has_ended
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.adoption import Action, Adoption, LiveObjects
from composeplat.engine.adoption_fields import mark_patch
from composeplat.engine.dev_workloads import read_replicas, replicas_patch
from composeplat.engine.preflight import Key, api_path
from composeplat.engine.pulumi_process import Interrupts
from composeplat.names import ENVIRONMENT_LABEL, LABEL_PREFIX, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.plan.desired import Plan
from composeplat.system.deadline import Deadline, poll

#: The number of pods that a workload had before it was scaled to zero for its successor.
REPLICAS_ANNOTATION = f"{LABEL_PREFIX}/replicas-before-import"
_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2


@dataclass(slots=True, kw_only=True)
class AdoptionSteps:
    """The steps for the objects that were decided on, in one namespace."""

    access: Access
    plan: Plan
    live: LiveObjects
    entries: tuple[Adoption, ...]
    interrupts: Interrupts = field(default_factory=Interrupts)
    stopped: list[Adoption] = field(default_factory=list)
    """Workloads that this run has scaled to zero."""

    @property
    def handed_over(self) -> list[Adoption]:
        return [entry for entry in self.entries if entry.action is Action.HAND_OVER]

    def rehearse(self, api: Api) -> None:
        """Ask the API server whether every step is allowed, before any is taken."""
        self._mark(api, dry_run=True)
        for entry in self.handed_over:
            path, uid = self._path(entry), self._uid(entry)
            try:
                if not entry.is_in_place:
                    api.patch(path, _stop_patch(self.live.objects[entry.key]), dry_run=True)
                api.delete(path, uid=uid, dry_run=True)
            except ApiError as error:
                raise _refusal(entry, error) from error

    def mark(self, api: Api) -> None:
        """Label the objects that stay, and the pods that are handed over; let other Services find these."""
        self._mark(api, dry_run=False)

    def _mark(self, api: Api, *, dry_run: bool) -> None:
        for entry in self.handed_over:
            self._label_pods(api, entry, dry_run=dry_run)
        for entry in self.entries:
            found = self.live.objects.get(entry.key)
            try:
                if entry.action is Action.ADOPT and found is not None:
                    api.patch(self._path(entry), mark_patch(found, _labels(self.plan)), dry_run=dry_run)
                elif entry.action is Action.FOLLOW and found is not None:
                    old = dict.fromkeys(found["spec"].get("selector") or {})
                    patch = {"spec": {"selector": {**old, **entry.selector}}}
                    api.patch(self._path(entry), patch, dry_run=dry_run)
            except ApiError as error:
                raise _refusal(entry, error) from error

    def _label_pods(self, api: Api, entry: Adoption, *, dry_run: bool = False) -> None:
        """Label the pods of a workload, and its ReplicaSets, by which its successor adopts them."""
        patch = {"metadata": {"labels": self._pod_labels(entry)}}
        owners = {self._uid(entry)}
        try:
            for found in self._replica_sets(api, entry):
                owners.add(found["metadata"]["uid"])
                if entry.is_in_place:
                    _patch_if_there(api, self._object_path("apps/v1", "ReplicaSet", found), patch, dry_run=dry_run)
            for pod in api.items(kind_path("v1", "Pod", self.plan.namespace)):
                if _owners(pod) & owners and "deletionTimestamp" not in pod["metadata"]:
                    _patch_if_there(api, self._object_path("v1", "Pod", pod), patch, dry_run=dry_run)
        except ApiError as error:
            raise _refusal(entry, error) from error

    def _replica_sets(self, api: Api, entry: Adoption) -> list[Object]:
        """List the ReplicaSets of a workload; those that it has left behind have our labels."""
        if entry.kind != "Deployment":
            return []
        labels = self._pod_labels(entry)
        return [
            found
            for found in api.items(kind_path("apps/v1", "ReplicaSet", self.plan.namespace))
            if self._uid(entry) in _owners(found)
            or (not _owners(found) and labels.items() <= (found["metadata"].get("labels") or {}).items())
        ]

    def _pod_labels(self, entry: Adoption) -> dict[str, str]:
        return self.plan.identity.selector(entry.successor[1] if entry.successor else "")

    def _template_patch(self, entry: Adoption) -> Object:
        return {"spec": {"template": {"metadata": {"labels": self._pod_labels(entry)}}}}

    # while the deploy runs

    def hand_over(self, workload: Key) -> None:
        """Hand over the workloads in whose place another is created now."""
        with Api(self.access) as api:
            for entry in self.handed_over:
                if entry.successor == workload and api.find(self._path(entry)) is not None:
                    if entry.is_in_place:
                        self._release(api, entry)
                    else:
                        self._stop(api, entry)

    def _release(self, api: Api, entry: Adoption) -> None:
        """Delete a workload without its pods; a Job has none that anybody needs."""
        keeps_pods = entry.kind != "Job"
        if keeps_pods:
            self._label_pods(api, entry)
        propagation = "Orphan" if keeps_pods else "Background"
        api.delete(self._path(entry), uid=self._uid(entry), propagation=propagation)
        self._wait(lambda: api.find(self._path(entry)) is None, f"{entry.kind} '{entry.name}' is not gone")
        if keeps_pods:
            # Pods that came in between, and those that are still to come.
            self._label_pods(api, entry)
            for found in self._replica_sets(api, entry):
                _patch_if_there(api, self._object_path("apps/v1", "ReplicaSet", found), self._template_patch(entry))

    def _stop(self, api: Api, entry: Adoption) -> None:
        """Scale a workload to zero, and wait until its pods have ended: they may write to the same volume."""
        self.stopped.append(entry)
        api.patch(self._path(entry), _stop_patch(api.get(self._path(entry))))
        owners = {self._uid(entry), *(found["metadata"]["uid"] for found in self._replica_sets(api, entry))}
        path = kind_path("v1", "Pod", self.plan.namespace)

        def have_ended(pods: list[Object]) -> bool:
            self.interrupts.stop_waits()
            # No controller deletes pods that were evicted.
            return not any(_owners(pod) & owners and not has_ended(pod) for pod in pods)

        is_done = wait_for(api, path, have_ended, Deadline(_TIMEOUT_S))
        _expect(f"the pods of {entry.kind} '{entry.name}' have not ended", is_done=is_done)

    def _wait(self, is_done: Callable[[], bool], failure: str) -> None:
        _expect(failure, is_done=poll(is_done, Deadline(_TIMEOUT_S), interval_s=_POLL_INTERVAL_S))

    # after the deploy

    def finish(self, api: Api) -> list[str]:
        """Delete the workloads of other kinds and names whose successors run; return which."""
        gone = []
        for entry in self.handed_over:
            if entry.key != entry.successor and api.find(self._path(entry)) is not None:
                api.delete(self._path(entry), uid=self._uid(entry))
                gone.append(f"{entry.kind}/{entry.name}")
        return gone

    def restore(self, api: Api) -> list[str]:
        """Scale the workloads up again that have no successor; return which."""
        restored = []
        for entry in self.stopped:
            successor = entry.successor
            if successor is not None and api.find(api_path(successor[0], self.plan.namespace, successor[1])) is None:
                restored += self._scale_up(api, entry)
        return restored

    def _scale_up(self, api: Api, entry: Adoption) -> list[str]:
        found = api.find(self._path(entry))
        count = (found or {"metadata": {}})["metadata"].get("annotations", {}).get(REPLICAS_ANNOTATION, "")
        if not count.isdecimal():
            return []
        # Services select pods by our labels by now.
        api.patch(self._path(entry), self._template_patch(entry))
        patch = {**replicas_patch(entry.kind, int(count)), "metadata": {"annotations": {REPLICAS_ANNOTATION: None}}}
        api.patch(self._path(entry), patch)
        return [f"{entry.kind}/{entry.name}"]

    def _path(self, entry: Adoption) -> str:
        return api_path(entry.kind, self.plan.namespace, entry.name)

    def _object_path(self, version: str, kind: str, found: Object) -> str:
        return f"{kind_path(version, kind, self.plan.namespace)}/{found['metadata']['name']}"

    def _uid(self, entry: Adoption) -> str:
        return str(self.live.objects[entry.key]["metadata"]["uid"])


def _labels(plan: Plan) -> dict[str, str]:
    return {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: plan.environment}


def _patch_if_there(api: Api, path: str, patch: Object, *, dry_run: bool = False) -> None:
    """Change an object that its controller may have deleted since it was listed."""
    try:
        api.patch(path, patch, dry_run=dry_run)
    except ApiError as error:
        if error.status != http.client.NOT_FOUND:
            raise


def _owners(found: Object) -> set[str]:
    return {str(owner["uid"]) for owner in found["metadata"].get("ownerReferences") or ()}


def _stop_patch(found: Object) -> Object:
    annotations = found["metadata"].get("annotations") or {}
    count = annotations.get(REPLICAS_ANNOTATION) or str(read_replicas(found))
    return {**replicas_patch(found["kind"], 0), "metadata": {"annotations": {REPLICAS_ANNOTATION: count}}}


def _refusal(entry: Adoption, error: ApiError) -> ComposeplatError:
    if error.status == http.client.CONFLICT:
        message = f"{entry.kind} '{entry.name}' has changed since it was looked at"
        return ComposeplatError(message, "run the command again")
    if error.status == http.client.FORBIDDEN:
        hint = "take it over as somebody who may change it"
        return ComposeplatError(f"can't take over {entry.kind} '{entry.name}': {error}", error.hint or hint)
    return error


def handed_over_services(entries: Iterable[Adoption]) -> list[str]:
    """Return the services that are away for a moment."""
    return list(dict.fromkeys(str(entry.path[-1]) for entry in entries if entry.is_interrupted))


def _expect(failure: str, *, is_done: bool) -> None:
    if not is_done:
        raise ComposeplatError(f"{failure} after {_TIMEOUT_S:.0f} s", "look for its finalizers and its pods")
