"""Replace a service's workload with its dev workload, and restore the original.

Owns the order of the steps. A kill at any moment leaves a state that :meth:`Replacement.restore` can repair: the dev
workload, which records the original, is created before the original changes, and is deleted last.
Must not know files, ports or the terminal: those are the session's.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from composeplat import progress
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, workload_status
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_list import LiveList, wait_for
from composeplat.cluster.snapshot import Object, has_ended
from composeplat.cluster.watching import Watcher, pods_path
from composeplat.codes.causes import CauseCode
from composeplat.dev.dev_workload import (
    DevWorkloadInputs,
    dev_workload_name,
    fingerprint,
    make_dev_workload,
    make_sync_volume,
    recorded_original,
    recorded_template,
    sync_volume_name,
)
from composeplat.dev.lease import LEASE_ANNOTATION, Check, Holder, SessionLease, lease_holder, lease_text
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.dev_workloads import (
    ORIGINAL_ANNOTATION,
    OriginalWorkload,
    is_dev_workload,
    read_replicas,
    replicas_patch,
)
from composeplat.engine.preflight import CLAIM, api_path, belongs_to
from composeplat.engine.scaling import remembered_replicas, remove_scaling_owner
from composeplat.plan.desired import Manifest
from composeplat.system.deadline import Deadline, poll

#: The kinds between a workload and its pods: those of a Deployment and of a CronJob.
_BETWEEN = {"ReplicaSet": "apps/v1", "Job": "batch/v1"}
_PODS_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2
#: For as long a dev workload is written again that others change meanwhile, as its controller does.
_WRITE_TIMEOUT_S = 10.0


class DevWorkloadFailed(ComposeplatError):
    """The development container does not become ready."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence("the development container"), cause.hint)
        self.cause = cause


@dataclass(slots=True, kw_only=True)
class Replacement:
    """A service of an environment, and the dev workload that replaces its own."""

    api: Api
    namespace: str
    environment: str
    kind: str
    name: str
    """The cluster name of the service; its workload has the same."""
    planned_replicas: int = 1
    """The number of pods by the plan, for a dev workload whose record of the original is broken."""
    lists: Mapping[str, LiveList] = field(default_factory=dict)
    """By kind: where workloads are read, instead of asking for each."""

    # reading

    def workload(self) -> Object | None:
        return self._get(self.kind, self.name)

    def deployed_workload(self) -> Object:
        workload = self.workload()
        if workload is None or not belongs_to(workload, self.environment):
            raise ComposeplatError(f"service '{self.name}' is not deployed", "platform deploy")
        return workload

    def dev_workload(self) -> Object | None:
        name = dev_workload_name(self.name)
        found = self._get("Deployment", name)
        if found is not None and not is_dev_workload(found):
            raise ComposeplatError(
                f"the Deployment '{name}' exists and is no development container", "rename or delete it"
            )
        return found

    def holder(self) -> Holder | None:
        return lease_holder(self.dev_workload(), self.api.server_time)

    def claims(self) -> set[str]:
        """Return the names of the namespace's claims."""
        metadata = self.api.object_metadata(kind_path("v1", CLAIM, self.namespace))
        return {claim["metadata"]["name"] for claim in metadata}

    def has_limit_policies(self) -> bool:
        """Return whether the namespace may refuse containers without limits, or set limits of its own."""
        try:
            kinds = ("ResourceQuota", "LimitRange")
            return any(self.api.object_metadata(kind_path("v1", kind, self.namespace)) for kind in kinds)
        except ApiError:
            # Not everyone may list them, and no namespace refuses a container because of its limits.
            return True

    def is_outdated(self, dev_workload: Object) -> bool:
        """Return whether the service was deployed since: its original has another template now, or pods."""
        workload = self.workload()
        if workload is None:
            return False
        return read_replicas(workload) > 0 or recorded_template(dev_workload) != fingerprint(workload)

    def _original(self, dev_workload: Object | None) -> OriginalWorkload | None:
        """Return the workload that a dev workload replaces: if its record is broken, that of the service, by the plan.

        Without that, the service would stay without pods: the original has none while it is replaced.
        """
        found = None if dev_workload is None else recorded_original(dev_workload)
        if dev_workload is None or found is not None:
            return found
        workload = self.workload()
        is_asleep = workload is not None and remembered_replicas(workload) is not None
        progress.note(
            f"the annotation {ORIGINAL_ANNOTATION} of the Deployment '{dev_workload['metadata']['name']}' can't be"
            f" read: {self.name} gets its number of pods from the definition"
        )
        return OriginalWorkload(kind=self.kind, name=self.name, replicas=0 if is_asleep else self.planned_replicas)

    def _get(self, kind: str, name: str) -> Object | None:
        live = self.lists.get(kind)
        if live is None:
            return self.api.find(self._path(kind, name))
        # The objects of a list don't name their kind.
        return next(({**item, "kind": kind} for item in live.read(self.api) if item["metadata"]["name"] == name), None)

    def _path(self, kind: str, name: str) -> str:
        return api_path(kind, self.namespace, name)

    # replacing

    def replace(self, inputs: DevWorkloadInputs, lease: SessionLease) -> None:
        """Create the dev workload with the lease, end the original's pods, and start the dev workload's pod.

        The lease is checked at each write, as another session may take it, or give the service back, at any moment.
        """
        workload = self.deployed_workload()
        dev_workload = self.dev_workload()
        original = self._original(dev_workload)
        if original is None or read_replicas(workload) > 0:
            original = OriginalWorkload(kind=self.kind, name=self.name, replicas=read_replicas(workload))
        self._make_sync_volume(inputs)
        is_running = dev_workload is not None and read_replicas(dev_workload) > 0 and read_replicas(workload) == 0
        self._apply(make_dev_workload(workload, original, inputs, replicas=int(is_running)), lease, lease.may_take)
        # Another session may have restored it since it was read.
        workload = self.deployed_workload()
        if read_replicas(workload) > 0:
            self.api.patch(self._path(self.kind, self.name), replicas_patch(self.kind, 0))
        self._wait_until_ended(workload["metadata"]["uid"], "its own pods", "have")
        # They may have ended for longer than the lease lasts.
        self._apply(make_dev_workload(workload, original, inputs, replicas=1), lease, lease.may_keep)

    def _apply(self, manifest: Manifest, lease: SessionLease, check: Check) -> None:
        """Apply a dev workload with the lease, to the dev workload that the check has accepted."""
        metadata = manifest["metadata"]

        def is_applied() -> bool:
            seen = self.dev_workload()
            check(seen)
            version = {} if seen is None else {"resourceVersion": seen["metadata"]["resourceVersion"]}
            held = {LEASE_ANNOTATION: lease_text(lease.holder, self.api.server_time)}
            annotations = {**metadata["annotations"], **held}
            try:
                self.api.apply({**manifest, "metadata": {**metadata, **version, "annotations": annotations}})
            except ApiError as error:
                if error.status != http.client.CONFLICT or deadline.has_passed:
                    raise
                return False
            return True

        deadline = Deadline(_WRITE_TIMEOUT_S)
        poll(is_applied, deadline, interval_s=_POLL_INTERVAL_S)

    def _make_sync_volume(self, inputs: DevWorkloadInputs) -> None:
        """Create the sync volume unless there is one; the end of one that is being deleted is waited for."""
        name = sync_volume_name(self.name)

        def found() -> list[Object | None]:
            claim = self._get(CLAIM, name)
            return [] if claim and "deletionTimestamp" in claim["metadata"] else [claim]

        claims = poll(found, Deadline(_PODS_TIMEOUT_S), interval_s=_POLL_INTERVAL_S)
        if not claims:
            message = f"the sync volume '{name}' is being deleted, and was there after {_PODS_TIMEOUT_S:.0f} s still"
            raise ComposeplatError(message, "delete the pods that use it")
        if claims == [None]:
            self.api.apply(make_sync_volume(inputs))

    def _wait_until_ended(self, uid: str, subject: str, verb: str) -> None:
        """Wait for the end of a workload's pods: two programs on one volume could corrupt it."""
        with progress.step(f"{self.name}: waiting for the end of {subject}", is_transient=True):
            pods = pods_path(self.namespace, self.environment)
            if wait_for(self.api, pods, self._none_of(uid), Deadline(_PODS_TIMEOUT_S)):
                return
        raise ComposeplatError(
            f"{subject} of service '{self.name}' {verb} not ended after {_PODS_TIMEOUT_S:.0f} s", "run this again"
        )

    def _none_of(self, uid: str) -> Callable[[list[Object]], bool]:
        """Return a check that no pod of a workload, or of one of its ReplicaSets or Jobs, may run.

        The pods of a Job stay when they have ended, and so do those that a node has evicted.
        """
        controllers: dict[tuple[str, str], str] = {}

        def controller_of(kind: str, name: str) -> str:
            if (kind, name) not in controllers:
                found = self.api.find(f"{kind_path(_BETWEEN[kind], kind, self.namespace)}/{name}")
                owners = _owners(found) if found else []
                controllers[kind, name] = str(owners[0]["uid"]) if owners else ""
            return controllers[kind, name]

        def is_of(pod: Object) -> bool:
            return any(
                owner["uid"] == uid
                or (owner["kind"] in _BETWEEN and controller_of(owner["kind"], owner["name"]) == uid)
                for owner in _owners(pod)
            )

        return lambda pods: all(has_ended(pod) or not is_of(pod) for pod in pods)

    def wait_until_ready(
        self, watcher: Watcher, timeout: float, on_message: Callable[[str], None], check: Callable[[], None]
    ) -> None:
        """Wait until the dev workload's pod is ready; raises as soon as the cluster shows that it won't be.

        ``check`` is called often, and may raise to end the wait.
        """
        message = ""

        def is_ready() -> bool:
            nonlocal message
            check()
            snapshot = watcher.latest
            status = workload_status("Deployment", dev_workload_name(self.name), snapshot) if snapshot else None
            if status is None:
                return False
            if _is_ready(status):
                return True
            if status.message != message:
                message = status.message
                on_message(message)
            return False

        if not poll(is_ready, Deadline(timeout), interval_s=_POLL_INTERVAL_S):
            message = f"is not ready after {timeout:.0f} s: {message}"
            raise DevWorkloadFailed(
                Cause(code=CauseCode.TIMEOUT, message=message, hint="give it more time with --timeout")
            )

    # the lease

    def renew_lease(self, holder: Holder, seen: Object) -> None:
        """Renew the lease; refused if the dev workload is not as it was seen, as someone else may have it now."""
        self._annotate(lease_text(holder, self.api.server_time), seen)

    def release_lease(self, seen: Object) -> None:
        """Release the lease, as :meth:`renew_lease` renews it."""
        self._annotate(None, seen)

    def _annotate(self, lease: str | None, seen: Object) -> None:
        version = seen["metadata"]["resourceVersion"]
        change = {"resourceVersion": version, "annotations": {LEASE_ANNOTATION: lease}}
        self.api.patch(self._path("Deployment", dev_workload_name(self.name)), {"metadata": change})

    # restoring

    def restore(self, *, volumes: bool) -> bool:
        """Delete the dev workload and start the original's pods; returns whether there was a dev workload."""
        dev_workload = self.dev_workload()
        original = self._original(dev_workload)
        if dev_workload is not None and original is not None:
            self._stop(dev_workload)
            if original.replicas and self._get(original.kind, original.name) is not None:
                path = self._path(original.kind, original.name)
                self.api.patch(path, replicas_patch(original.kind, original.replicas))
                remove_scaling_owner(self.api, path)
        if dev_workload is not None:
            self.api.delete(self._path("Deployment", dev_workload_name(self.name)))
        if volumes:
            self.api.delete(self._path(CLAIM, sync_volume_name(self.name)))
        return dev_workload is not None

    def _stop(self, dev_workload: Object) -> None:
        """End the pod, and the lease: else a session on another machine would take the original's pods for a deploy."""
        path = self._path("Deployment", dev_workload["metadata"]["name"])
        self.api.patch(path, {"metadata": {"annotations": {LEASE_ANNOTATION: None}}, **replicas_patch("Deployment", 0)})
        self._wait_until_ended(dev_workload["metadata"]["uid"], "its development container", "has")


def _is_ready(status: ServiceStatus) -> bool:
    if status.state is WorkloadState.FAILED and status.cause is not None:
        raise DevWorkloadFailed(status.cause)
    return status.state is WorkloadState.READY


def _owners(found: Object) -> list[Object]:
    return found["metadata"].get("ownerReferences") or []
