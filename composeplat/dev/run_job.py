"""A run of a service with a schedule that a person starts: a Job from the template of its CronJob.

Owns the manifest of the Job, the wait for its pod, its log and its exit status.
The Job belongs to the CronJob, which keeps it in its history, and removes it with the older ones.
Its pod has the labels of a one-off pod: no Service selects it.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import secrets
import socket
import time
from collections.abc import Generator, Iterator

from composeplat import progress
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.conditions import WorkloadState, workload_status
from composeplat.cluster.connection import end_connection
from composeplat.cluster.jobs import describe_disruption
from composeplat.cluster.kinds import kind_path, named_list_path
from composeplat.cluster.live_list import LiveList, wait_for
from composeplat.cluster.log_cursor import Cursor
from composeplat.cluster.logs import UNAVAILABLE
from composeplat.cluster.schedules import MANUAL, MANUAL_ANNOTATION
from composeplat.cluster.snapshot import (
    Object,
    container_statuses,
    end_of_job,
    has_ended,
    last_termination,
    with_status_of,
)
from composeplat.cluster.watching import Watcher
from composeplat.dev.run_pod import KEPT_ANNOTATION, pod_name, reference, remove_own_names, run_labels
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.preflight import api_path
from composeplat.plan.desired import Manifest, Plan, ServicePlan
from composeplat.system.deadline import Deadline, poll
from composeplat.system.records import record

#: Between looks at what the watches have brought; and between two connections to a log.
_CHECK_INTERVAL_S = 0.1
_POLL_INTERVAL_S = 0.3
#: The kubelet reports the end of a container a moment after its log ends.
_END_TIMEOUT_S = 60.0
#: So soon after the end of a pod its Job has counted it.
_RECORDED_WITHIN_S = 10.0
#: In place of pods: those that are gone.
_GONE: list[Object] = [{}]


def make_run(cron_job: Object, name: str) -> Manifest:
    """Make a Job with one try of one pod, as its exit status is the command's."""
    made = copy.deepcopy(cron_job["spec"]["jobTemplate"])
    head, service = made.get("metadata") or {}, str(cron_job["metadata"]["name"])
    template = made["spec"]["template"]
    remove_own_names(template, service)
    pod_head = template.get("metadata") or {}
    annotations = {**(pod_head.get("annotations") or {}), KEPT_ANNOTATION: "true"}
    template["metadata"] = {"labels": run_labels(pod_head, service), "annotations": annotations}
    rest = {key: value for key, value in made["spec"].items() if key not in ("completions", "parallelism")}
    owner = {**cron_job, "apiVersion": "batch/v1", "kind": "CronJob"}
    metadata = {
        "name": name,
        "namespace": cron_job["metadata"]["namespace"],
        "labels": head.get("labels") or {},
        "annotations": {**(head.get("annotations") or {}), MANUAL_ANNOTATION: MANUAL},
        "ownerReferences": [{**reference(owner), "controller": True}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**rest, "backoffLimit": 0, "template": template},
    }


@record(kw_only=True)
class RunJob:
    """The runs of one service that are started by hand."""

    api: Api
    plan: Plan
    service: ServicePlan

    def create(self, cron_job: Object) -> str:
        """Start a run, and return the name of its Job."""
        name = pod_name(self.service.cluster_name, secrets.token_hex(3))
        self.api.create(make_run(cron_job, name))
        return name

    @contextlib.contextmanager
    def deleted_unless_ended(self, name: str) -> Iterator[None]:
        """Delete a run whose end was not awaited."""
        has_returned = False
        try:
            yield
            has_returned = True
        finally:
            if not has_returned:
                self.api.delete(api_path("Job", self.plan.namespace, name))

    def wait_until_started(self, name: str, deadline: Deadline) -> str:
        """Wait until the pod of a run has started, and return its name; raises if it can't."""
        watcher = Watcher(self.api.access, self.plan.namespace, self.plan.environment)

        def started() -> str:
            snapshot = watcher.latest
            if snapshot is None:
                return ""
            status = workload_status("Job", name, snapshot)
            pods = [pod for pod in snapshot.pods if pod["metadata"]["name"] in status.pods and _has_started(pod)]
            if not pods and status.state is WorkloadState.FAILED and status.cause:
                raise ComposeplatError(status.cause.sentence(self.service.name), status.cause.hint)
            return str(pods[0]["metadata"]["name"]) if pods else ""

        try:
            found = poll(started, deadline, interval_s=_CHECK_INTERVAL_S)
        finally:
            watcher.stop()
        if not found:
            message = (
                f"the run '{name}' of service '{self.service.name}' has not started after {deadline.seconds:.0f} s"
            )
            raise ComposeplatError(message, "give it more time with --timeout")
        return found

    def lines(self, pod: str) -> Generator[str, None, None]:
        """Yield the lines of a pod's log until its container ends, through broken connections and failing servers.

        A connection that is held open and forwards nothing is known by that of a watch, which is never idle for long.
        """
        opened: list[socket.socket] = []

        def end_connections() -> None:
            for sock in opened:
                end_connection(sock)

        live = LiveList(self.api.access, self._list_path(pod), on_silence=end_connections)
        try:
            yield from self._lines(pod, live, opened)
        finally:
            live.stop()

    def _lines(self, pod: str, live: LiveList, opened: list[socket.socket]) -> Iterator[str]:
        cursor = Cursor()
        end: Deadline | None = None
        has_reported = False
        while True:
            try:
                # This begins the watch. Its objects may be old while it is silent, so the pod is asked for.
                live.read(self.api)
                if end is None and self._has_ended(self._pod(pod)):
                    end = Deadline(_END_TIMEOUT_S)
                for part in self.api.lines(self._log_path(pod, cursor), opened.append):
                    taken = cursor.take(part)
                    if taken is not None:
                        yield taken[1]
                # Once it has ended, one more read has the last lines.
                if end is not None:
                    return
                has_reported = False
            except ApiError as error:
                if error.status == http.client.NOT_FOUND:
                    # Its node was drained, or somebody deleted it: its log is gone.
                    return
                if error.status not in UNAVAILABLE or (end is not None and end.has_passed):
                    raise
                if not has_reported and error.status:
                    progress.note(f"the log of {pod} can't be read: {error}; trying again")
                    has_reported = True
            opened.clear()
            cursor.begin()
            time.sleep(_POLL_INTERVAL_S)

    def _log_path(self, pod: str, cursor: Cursor) -> str:
        since = f"&sinceTime={cursor.since}" if cursor.since else ""
        query = f"container={self.service.cluster_name}&follow=true&timestamps=true{since}"
        return f"{kind_path('v1', 'Pod', self.plan.namespace)}/{pod}/log?{query}"

    def _list_path(self, pod: str) -> str:
        return named_list_path("v1", "Pod", self.plan.namespace, pod)

    def _pod(self, name: str) -> Object:
        return self.api.get(f"{kind_path('v1', 'Pod', self.plan.namespace)}/{name}")

    def _has_ended(self, pod: Object) -> bool:
        """Whether the service's container has ended: another one in the pod may run on."""
        return has_ended(pod) or bool(last_termination(with_status_of(pod, self.service.cluster_name)))

    def exit_status(self, name: str, pod: str) -> int:
        """Return the exit status of a run, with a note if its pod was ended from outside."""
        deadline = Deadline(_END_TIMEOUT_S)
        while True:
            try:
                pods = wait_for(self.api, self._list_path(pod), self._ended_pods, deadline)
            except ApiError as error:
                if error.status not in UNAVAILABLE or deadline.has_passed:
                    raise
                time.sleep(_POLL_INTERVAL_S)
                continue
            if not pods:
                raise ComposeplatError(f"the end of pod '{pod}' is not reported", "platform status shows its run")
            if pods == _GONE:
                return self._status_without_pod(name, pod)
            if disruption := describe_disruption(pods):
                progress.note(f"pod '{pod}' {disruption}")
            end = last_termination(with_status_of(pods[0], self.service.cluster_name)) or {}
            return int(end.get("exitCode", 1))

    def _ended_pods(self, pods: list[Object]) -> list[Object]:
        """Return pods whose container has ended; none while it runs."""
        ended = [pod for pod in pods if last_termination(with_status_of(pod, self.service.cluster_name))]
        return ended if pods else _GONE

    def _status_without_pod(self, name: str, pod: str) -> int:
        """Return 0 if a run has completed although its pod is gone; an error otherwise."""
        path, deadline = api_path("Job", self.plan.namespace, name), Deadline(_RECORDED_WITHIN_S)
        found = poll(lambda: end_of_job(self.api.find(path) or {}), deadline, interval_s=_POLL_INTERVAL_S)
        if found and found["type"] == "Complete":
            return 0
        raise ComposeplatError(f"pod '{pod}' was evicted from its node, or deleted, while it ran", "run it again")


def _has_started(pod: Object) -> bool:
    return any(set(status.get("state") or {}) & {"running", "terminated"} for status in container_statuses(pod))
