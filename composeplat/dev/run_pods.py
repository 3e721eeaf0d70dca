"""The life of a one-off pod: created from the deployed workload, awaited, and deleted.

Owns the requests to the API server, and what is left of earlier runs.
Must not know its manifest, nor the streams of its command.
"""

from __future__ import annotations

import contextlib
import http.client
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from composeplat import progress
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.cause import Cause
from composeplat.cluster.failure_causes import describe_termination, pod_failure_cause
from composeplat.cluster.jobs import describe_disruption
from composeplat.cluster.kinds import kind_path, named_list_path
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, Snapshot, container_statuses, has_ended, with_status_of
from composeplat.cluster.watching import pods_path
from composeplat.codes.causes import CauseCode
from composeplat.dev.holder import ARCHITECTURES
from composeplat.dev.run_pod import (
    KEPT_ANNOTATION,
    RunOptions,
    claims_of,
    make_holder_object,
    make_pod,
    node_of_claims,
    pod_name,
)
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.names import RUN_LABEL
from composeplat.plan.desired import ServicePlan
from composeplat.system.deadline import Deadline, poll

#: Between looks at what the watches have brought.
_CHECK_INTERVAL_S = 0.05
_INTERRUPT_GRACE_S = 10
_READ_WRITE_ONCE = ["ReadWriteOnce"]
_WRONG_ARCHITECTURE = "exec format error"


@dataclass(slots=True)
class RunPods:
    """The one-off pods of one service."""

    api: Api
    namespace: str
    environment: str
    service: ServicePlan
    aliases: Collection[str] = ()
    """The further names of the services in its pods."""
    _seen: dict[str, float] = field(default_factory=dict)
    _is_interrupted: bool = False
    """Whether a command was ended by its user."""

    def workload(self) -> Object:
        """Read the deployed workload: it has the image, the files and the settings of the last deploy."""
        # Its kind is another one if the definition has changed since, or a rollback came.
        for kind in dict.fromkeys((self.service.workload_kind, *WORKLOAD_KINDS)):
            found = self._find(kind)
            if found is not None and belongs_to(found, self.environment):
                # The API server leaves it out of an object that was asked for by its path.
                return {**found, "kind": kind}
        raise ComposeplatError(f"service '{self.service.name}' is not deployed", "platform deploy")

    def _find(self, kind: str) -> Object | None:
        try:
            return self.api.find(api_path(kind, self.namespace, self.service.workload_name))
        except ApiError as error:
            # A role need not have the kinds that the definition lacks.
            if kind == self.service.workload_kind or error.status != http.client.FORBIDDEN:
                raise
            return None

    @contextlib.contextmanager
    def running(self, workload: Object, options: RunOptions, args: list[str], deadline: Deadline) -> Iterator[str]:
        """Create a pod that waits for a command, and delete it at the end, unless it is kept."""
        for architecture in ARCHITECTURES:
            pod = self.create(workload, options, args)
            name = str(pod["metadata"]["name"])
            try:
                self.api.create(make_holder_object(pod, architecture))
                if self._runs(name, deadline, may_retry=architecture != ARCHITECTURES[-1]):
                    yield name
                    return
            finally:
                self._discard(name, options)

    def create(self, workload: Object, options: RunOptions, args: list[str]) -> Object:
        name = pod_name(self.service.cluster_name, secrets.token_hex(3))
        owner = self.api.get(api_path("Service", self.namespace, self.service.cluster_name))
        owner = {**owner, "apiVersion": "v1", "kind": "Service"}
        node = self._node(workload)
        manifest = make_pod(workload, owner, options, name=name, args=args, node=node, aliases=self.aliases)
        return {**self.api.create(manifest), "apiVersion": "v1", "kind": "Pod"}

    def _node(self, workload: Object) -> str:
        """The node where a volume of the service is used that only one node can use."""
        claims = {
            name: self.api.find(api_path("PersistentVolumeClaim", self.namespace, name)) for name in claims_of(workload)
        }
        single = {
            name for name, claim in claims.items() if claim and claim["spec"].get("accessModes") == _READ_WRITE_ONCE
        }
        return node_of_claims(self._pods(), single) if single else ""

    def _pods(self) -> list[Object]:
        return self.api.items(pods_path(self.namespace, self.environment))

    def _path(self, name: str) -> str:
        return f"{kind_path('v1', 'Pod', self.namespace)}/{name}"

    def _list_path(self, name: str) -> str:
        return named_list_path("v1", "Pod", self.namespace, name)

    def _events_path(self, name: str) -> str:
        return f"{kind_path('v1', 'Event', self.namespace)}?fieldSelector=involvedObject.name%3D{name}"

    def _discard(self, name: str, options: RunOptions) -> None:
        """Delete the pod of a command that has ended, whose status counts also if that fails."""
        pods: list[Object] | None = None
        with contextlib.suppress(ApiError):
            pods = self.api.items(self._list_path(name))
        if pods is not None and not self._is_interrupted and (why := describe_disruption(pods) if pods else "is gone"):
            progress.note(f"the pod '{name}' {why}, and its command ended with it")
        try:
            if not (options.kept and (pods is None or any(not has_ended(pod) for pod in pods))):
                # It may be interrupted, and then has more time: the command has ended.
                self.api.delete(self._path(name), grace_s=1)
        except ApiError as error:
            progress.note(f"the pod '{name}' can't be deleted, and ends within a day: {error}")

    def delete(self, name: str) -> None:
        self.api.delete(self._path(name))

    def interrupt(self, name: str) -> None:
        """Send SIGINT to the command in a pod, which ends with the pod if it does not end by itself."""
        self._is_interrupted = True
        with Api(self.api.access) as api:
            api.delete(self._path(name), grace_s=_INTERRUPT_GRACE_S)

    def delete_ended(self) -> None:
        """Delete what earlier runs left: pods whose command line was killed, and whose time is over."""
        for pod in self._pods():
            head = pod["metadata"]
            is_ours = RUN_LABEL in (head.get("labels") or {}) and KEPT_ANNOTATION not in (head.get("annotations") or {})
            if is_ours and has_ended(pod):
                self.delete(head["name"])

    def _runs(self, name: str, deadline: Deadline, *, may_retry: bool) -> bool:
        """Wait until the pod runs; false if its node has another architecture."""
        pods = LiveList(self.api.access, self._list_path(name))
        events = LiveList(self.api.access, self._events_path(name))

        def state() -> str:
            listed = pods.read(self.api)
            if not listed:
                raise ComposeplatError(f"the pod '{name}' was deleted", "run the command again")
            return self._state(listed[0], events, may_retry=may_retry)

        try:
            found = poll(state, deadline, interval_s=_CHECK_INTERVAL_S)
        finally:
            pods.stop()
            events.stop()
        if not found:
            message = f"the pod for service '{self.service.name}' does not run after {deadline.seconds:.0f} s"
            raise ComposeplatError(message, "give it more time with --timeout")
        return found == "running"

    def _state(self, pod: Object, events: LiveList, *, may_retry: bool) -> str:
        for container in container_statuses(with_status_of(pod, self.service.cluster_name)):
            state: Mapping[str, Object] = container.get("state") or {}
            if "running" in state:
                return "running"
            if "terminated" in state or "message" in state.get("waiting", {}):
                text = str((state.get("terminated") or state.get("waiting") or {}).get("message", ""))
                if may_retry and _WRONG_ARCHITECTURE in text:
                    return "retry"
            if "terminated" in state:
                raise self._error(describe_termination(state["terminated"], "ended", CauseCode.NOT_STARTED))
        if has_ended(pod):
            # A node may refuse a pod that the scheduler gave it, for want of resources or a device.
            status = pod["status"]
            why = f"{status.get('reason') or 'no reason'}: {status.get('message') or 'no message'}"
            raise ComposeplatError(f"{self.service.name}: its pod ended before it began: {why}", "run it again")
        cause = pod_failure_cause(pod, self._snapshot(pod, events), is_job=True)
        if cause is not None:
            raise self._error(cause)
        return ""

    def _error(self, cause: Cause) -> ComposeplatError:
        return ComposeplatError(f"{self.service.name}: {cause.message}", cause.hint)

    def _snapshot(self, pod: Object, events: LiveList) -> Snapshot:
        listed: list[Object] = []
        with contextlib.suppress(ApiError):
            listed = events.read(self.api)
        return Snapshot(pods=[pod], events=listed, age=self._age)

    def _age(self, key: str) -> float:
        return time.monotonic() - self._seen.setdefault(key, time.monotonic())
