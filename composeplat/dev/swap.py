"""Replace a service's workload with its dev workload, and restore the original.

Owns the order of the steps. A kill at any moment leaves a state that :meth:`Swap.give_back` can repair: the dev
workload, which records the original, is created before the original changes, and is deleted last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from composeplat import progress
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.conditions import WorkloadState, workload_status
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.watching import Watcher
from composeplat.codes import CauseCode
from composeplat.dev.dev_workload import (
    HELD_BY,
    Object,
    Wanted,
    claim_name,
    dev_workload_name,
    fingerprint,
    make_claim,
    make_dev_workload,
    original_of,
    template_of,
)
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.dev_workloads import OriginalWorkload, is_dev_workload, read_replicas, replicas_patch
from composeplat.engine.preflight import CLAIM, api_path, belongs_to
from composeplat.engine.scaling import remove_scaling_owner
from composeplat.system.deadline import Deadline, poll

_DELETION_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2
#: A holder that has not been heard of for so long has gone.
HOLDER_GONE_AFTER = 30.0


class Failed(ComposeplatError):
    """The development container does not come up."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence("the development container"), cause.hint)
        self.cause = cause


@dataclass(slots=True, kw_only=True)
class Swap:
    """One service of an environment, and what stands in for it."""

    api: Api
    namespace: str
    environment: str
    kind: str
    name: str
    """The cluster name of the service; its workload has the same."""

    # looking

    def workload(self) -> Object | None:
        return self._get(self.kind, self.name)

    def dev_workload(self) -> Object | None:
        found = self._get("Deployment", dev_workload_name(self.name))
        if found is not None and not is_dev_workload(found):
            raise ComposeplatError(
                f"a Deployment '{dev_workload_name(self.name)}' is there that is no development container",
                "rename or delete it",
            )
        return found

    def claims(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.api.object_metadata(kind_path("v1", CLAIM, self.namespace))}

    def counts_limits(self) -> bool:
        """Say whether the namespace may refuse containers without limits, or give them limits of its own."""
        try:
            kinds = ("ResourceQuota", "LimitRange")
            return any(self.api.object_metadata(kind_path("v1", kind, self.namespace)) for kind in kinds)
        except ApiError:
            # Not everyone may look, and limits that are kept are refused by none.
            return True

    def _get(self, kind: str, name: str) -> Object | None:
        return self.api.find(self._path(kind, name))

    def _path(self, kind: str, name: str) -> str:
        return api_path(kind, self.namespace, name)

    # taking the place

    def take_place(self, wanted: Wanted) -> None:
        """Make the dev workload, send the original's pods away, and let the dev workload's come."""
        workload = self._must_be_there()
        dev_workload = self.dev_workload()
        original = original_of(dev_workload) if dev_workload is not None else None
        if original is None or read_replicas(workload) > 0:
            original = OriginalWorkload(kind=self.kind, name=self.name, replicas=read_replicas(workload))
        if self._get(CLAIM, claim_name(self.name)) is None:
            self.api.apply(make_claim(wanted))
        running = dev_workload is not None and read_replicas(dev_workload) > 0 and read_replicas(workload) == 0
        self.api.apply(make_dev_workload(workload, original, wanted, replicas=int(running)))
        if read_replicas(workload) > 0:
            self.api.patch(self._path(self.kind, self.name), replicas_patch(self.kind, 0))
        self._until_away(workload["metadata"]["uid"], "its own pods")
        if not running:
            self.api.apply(make_dev_workload(workload, original, wanted, replicas=1))

    def _must_be_there(self) -> Object:
        workload = self.workload()
        if workload is None or not belongs_to(workload, self.environment):
            raise ComposeplatError(f"service '{self.name}' is not deployed", "platform deploy")
        return workload

    def _until_away(self, uid: str, what: str) -> None:
        """Wait for the pods of one: two programs on one volume could spoil it."""
        with progress.step(f"{self.name}: waiting for the end of {what}", is_transient=True):
            if poll(lambda: not self._pods_of(uid), Deadline(_DELETION_TIMEOUT_S), interval_s=_POLL_INTERVAL_S):
                return
        raise ComposeplatError(
            f"{what} of service '{self.name}' {'have' if what.endswith('s') else 'has'} not ended after"
            f" {_DELETION_TIMEOUT_S:.0f} s",
            "run this again",
        )

    def _pods_of(self, uid: str) -> list[Object]:
        owners = {uid, *(_uid(one) for one in self._owned("ReplicaSet", "apps/v1", {uid}))}
        return self._owned("Pod", "v1", owners)

    def _owned(self, kind: str, version: str, owners: set[str]) -> list[Object]:
        found = self.api.object_metadata(kind_path(version, kind, self.namespace))
        return [one for one in found if {ref["uid"] for ref in one["metadata"].get("ownerReferences") or []} & owners]

    def until_ready(self, watcher: Watcher, timeout: float, tell: Callable[[str], None]) -> None:
        """Wait until the dev workload's pod runs; why it does not is raised as soon as the cluster knows."""
        deadline = Deadline(timeout)
        words = ""
        while True:
            snapshot = watcher.latest
            standing = workload_status("Deployment", dev_workload_name(self.name), snapshot) if snapshot else None
            if standing is not None and standing.state is WorkloadState.READY:
                return
            if standing is not None and standing.state is WorkloadState.FAILED and standing.cause is not None:
                raise Failed(standing.cause)
            if standing is not None and standing.message != words:
                words = standing.message
                tell(words)
            if deadline.has_passed:
                raise Failed(
                    Cause(
                        code=CauseCode.TIMEOUT,
                        message=f"is not ready after {timeout:.0f} s: {words}",
                        hint="give it more time with --timeout",
                    )
                )
            time.sleep(_POLL_INTERVAL_S)

    def is_behind(self, dev_workload: Object) -> bool:
        """Say whether someone has deployed meanwhile: the original has other pods now, or pods at all."""
        workload = self.workload()
        return workload is not None and (
            read_replicas(workload) > 0 or template_of(dev_workload) != fingerprint(workload)
        )

    # who holds it

    def hold(self, holder: dict[str, Any]) -> None:
        self._annotate(json.dumps({**holder, "seen": round(self.api.server_time)}))

    def let_go(self) -> None:
        self._annotate(None)

    def _annotate(self, value: str | None) -> None:
        path = self._path("Deployment", dev_workload_name(self.name))
        self.api.patch(path, {"metadata": {"annotations": {HELD_BY: value}}})

    # giving back

    def give_back(self, *, volumes: bool) -> bool:
        """Take the dev workload away and let the original's pods come; says whether there was a dev workload."""
        dev_workload = self.dev_workload()
        original = original_of(dev_workload) if dev_workload is not None else None
        if original is not None:
            self._send_away(dev_workload or {})
            if original.replicas and self._get(original.kind, original.name) is not None:
                path = self._path(original.kind, original.name)
                self.api.patch(path, replicas_patch(original.kind, original.replicas))
                remove_scaling_owner(self.api, path)
        if dev_workload is not None:
            self.api.delete(self._path("Deployment", dev_workload_name(self.name)))
        if volumes:
            self.api.delete(self._path(CLAIM, claim_name(self.name)))
        return dev_workload is not None

    def _send_away(self, dev_workload: Object) -> None:
        if read_replicas(dev_workload):
            self.api.patch(self._path("Deployment", dev_workload["metadata"]["name"]), replicas_patch("Deployment", 0))
        self._until_away(dev_workload["metadata"]["uid"], "its development container")


def holder_of(dev_workload: Object | None, now: float) -> dict[str, Any] | None:
    """Who develops the service now, by its dev workload's annotation; ``now`` is a time of the API server's clock.

    The clocks of the machines of two developers may be minutes apart.
    """
    try:
        held: dict[str, Any] = json.loads((dev_workload or {})["metadata"]["annotations"][HELD_BY])
        return held if now - float(held["seen"]) < HOLDER_GONE_AFTER else None
    except (KeyError, ValueError, TypeError):
        return None


def _uid(item: Object) -> str:
    return str(item["metadata"]["uid"])
