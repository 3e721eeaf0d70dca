"""Wait for a rollout: until all services are ready or have failed, or the deadline has passed.

Owns the wait: its deadline, and the questions to the cluster during it.
Must not judge a service: :mod:`~composeplat.engine.monitor` does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from composeplat.cluster.api import Api
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, describe_outdated_pods, service_status
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Watcher, probe_port
from composeplat.codes.causes import CauseCode
from composeplat.diagnostics import MissingPiece
from composeplat.engine.events import Events
from composeplat.engine.job_retries import Retries
from composeplat.engine.monitor import Monitor
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.progress import Phase
from composeplat.system.deadline import Deadline, poll

#: A container that has just started may not listen yet.
_PORT_TIMEOUT_S = 30.0
_PORT_POLL_INTERVAL_S = 0.5
_MAX_REFUSAL_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    stack: Stack
    monitor: Monitor
    watcher: Watcher
    deadline: Deadline
    retries: Retries

    def handle(self, urn: str, events: Events) -> None:
        """Handle an event about a resource; the deadline starts again after each image build."""
        self.monitor.handle(urn, events, self.watcher.rounds)
        change = events.changes.get(urn) if urn in events.done else None
        if change is not None and change.kind == "Image":
            self.deadline.restart()

    def tick(self) -> None:
        self.monitor.judge_services(self.watcher.latest, self.watcher.rounds)
        self.retries.report(self.monitor.retries)

    def wait(self) -> None:
        """Wait until every service is ready or has failed.

        Each service has a deadline of its own, and one that is late fails while the wait for the others lasts.
        """
        for name in self.monitor.chosen:
            self.monitor.applied.setdefault(name, self.watcher.rounds)
        while not self.stack.is_interrupted:
            snapshot, rounds = self.watcher.latest, self.watcher.rounds
            self.monitor.judge_services(snapshot, rounds)
            self.retries.report(self.monitor.retries)
            if self.monitor.is_over(snapshot, rounds) or self._fail_late_services():
                return
            self.stack.health.check()
            refused_for = time.monotonic() - self.watcher.unreachable_since
            if self.watcher.unreachable and not self.stack.health.silence and refused_for > _MAX_REFUSAL_S:
                hint = "the state has what was deployed; run 'platform deploy' again"
                raise MissingPiece(self.watcher.unreachable, hint)
            self.stack.pause()

    def _fail_late_services(self) -> bool:
        """Fail the services whose deadline has passed, and return whether no other service is waited for."""
        services = {service.name: service for service in self.monitor.plan.services}
        unready = self.monitor.unready(self.watcher.latest)
        late = {name for name in unready if self.deadline.has_passed_for(name)}
        for name in late:
            # A deployment does not wait for the end of a running Job.
            if unready[name].state is not WorkloadState.STARTED or services[name].workload_kind != "Job":
                self.monitor.fail(name, _timeout(services[name], unready[name], self.deadline.seconds_for(name)))
        return self.deadline.has_passed and late == unready.keys()

    def note_outdated(self) -> None:
        """Emit a note for pods that keep the old revision, because of their update policy."""
        for name, status in self.monitor.statuses(self.watcher.latest).items():
            if status.outdated:
                command = f"kubectl delete pod --namespace {self.stack.namespace} {' '.join(status.outdated)}"
                self.stack.note(f"{name}: {describe_outdated_pods(status.outdated)}, as on-delete says: {command}")

    def check_ports(self, api: Api) -> None:
        """Fail services without a health check if nothing listens on the port of an endpoint."""
        until = self.deadline.at_most(_PORT_TIMEOUT_S)
        for service, endpoint, port in self._endpoint_ports():
            pod = self._pod_nobody_answers_in(api, service, port, until)
            if pod:
                self.monitor.fail(
                    service.name,
                    Cause(
                        code=CauseCode.WRONG_PORT,
                        origin=("ports",),
                        logs=True,
                        pod=pod,
                        container=service.cluster_name,
                        message=f"nothing listens on port {port}, where endpoint '{endpoint}' leads",
                        has_subject=True,
                        hint="name the port that the program listens on, on all its addresses",
                    ),
                )

    def _pod_nobody_answers_in(self, api: Api, service: ServicePlan, port: int, until: Deadline) -> str:
        """The pod, if its port does not answer in time; empty if it answers, or without a pod."""
        pod = ""

        def is_answered() -> bool:
            nonlocal pod
            snapshot = self.watcher.latest
            status = service_status(*service.workload, service.cluster_name, snapshot or Snapshot())
            pod = status.pods[0] if status.pods and not status.waits_for_outdated else ""
            if self.stack.is_interrupted or not pod:
                return True
            if probe_port(api, self.stack.namespace, pod, port) is not False:
                return True
            self.monitor.emit(service.name, Phase.WAITING, f"nothing answers on port {port} yet")
            return False

        return "" if poll(is_answered, until, interval_s=_PORT_POLL_INTERVAL_S) else pod

    def _endpoint_ports(self) -> Iterable[tuple[ServicePlan, str, int]]:
        plan = self.monitor.plan
        services = {service.name: service for service in plan.services}
        for endpoint in plan.endpoints:
            for name, number in endpoint.routes:
                service = services[name]
                if name in self.monitor.chosen and not service.has_health_check:
                    yield service, endpoint.name, service.container_port(number)


def _timeout(service: ServicePlan, status: ServiceStatus, seconds: float) -> Cause:
    """The cause of a service that is late, with the log of its last pod."""
    lacks = "has not completed" if service.workload_kind == "Job" else "is not ready"
    shown = status.retry or Cause(
        code=CauseCode.TIMEOUT,
        message="",
        logs=bool(status.pods),
        pod=status.pods[-1] if status.pods else "",
        container=service.cluster_name,
    )
    message = f"{lacks} after {seconds:.0f} s: {status.message}"
    return replace(
        shown, code=CauseCode.TIMEOUT, message=message, hint=shown.hint or "give it more time with --timeout"
    )


@contextlib.contextmanager
def open_rollout(stack: Stack, api: Api, plan: Plan, chosen: Collection[str], timeout: float) -> Iterator[Rollout]:
    """Start to watch some services of a plan; the watch ends with the block."""
    watcher = Watcher(stack.target.access, plan.namespace, plan.environment, plan.workload_kinds)
    monitor = Monitor(plan=plan, on_progress=stack.on_progress, chosen=frozenset(chosen))
    try:
        yield Rollout(
            stack=stack,
            monitor=monitor,
            watcher=watcher,
            deadline=Deadline(timeout, plan.start_delays),
            retries=Retries(stack=stack, api=api),
        )
    finally:
        watcher.stop()
