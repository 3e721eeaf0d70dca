"""Wait for a rollout: until all services are ready or have failed, or the deadline has passed.

Owns the wait: its deadline, and the questions to the cluster during it.
Must not judge a service: :mod:`~composeplat.engine.monitor` does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, describe_outdated_pods, service_status
from composeplat.cluster.probes import probe_port
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Watcher
from composeplat.codes.causes import CauseCode
from composeplat.diagnostics import MissingPiece
from composeplat.engine.events import Events
from composeplat.engine.job_retries import Retries
from composeplat.engine.monitor import Monitor
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.progress import Phase
from composeplat.system.deadline import Deadline, poll
from composeplat.system.records import record

#: A container that has just started may not listen yet.
_PORT_TIMEOUT_S = 30.0
#: For the other ports of a service that answers on one.
_OTHER_PORTS_TIMEOUT_S = 5.0
_PORT_POLL_INTERVAL_S = 0.5
_MAX_REFUSAL_S = 60.0


@record(kw_only=True)
class Rollout:
    stack: Stack
    monitor: Monitor
    watcher: Watcher
    deadline: Deadline
    retries: Retries

    def handle(self, urn: str, events: Events) -> None:
        """Handle an event about a resource; the deadline starts again after each image build."""
        self.monitor.handle(urn, events, partial(self.watcher.request_round, may_wait=True))
        change = events.changes.get(urn) if urn in events.done else None
        if change is not None and change.kind == "Image":
            self.deadline.restart()

    def tick(self) -> None:
        self._judge()

    def _judge(self) -> tuple[Snapshot | None, int]:
        """Judge the services by the latest snapshot, and return it with its round."""
        rounds, snapshot = self.watcher.rounds, self.watcher.latest
        self.monitor.judge_news(snapshot, rounds)
        self.retries.report(self.monitor.retries)
        return snapshot, rounds

    def wait(self) -> None:
        """Wait until every service is ready or has failed.

        Each service has a deadline of its own, and one that is late fails while the wait for the others lasts.
        """
        if self.monitor.chosen - self.monitor.applied.keys():
            shown_by = self.watcher.request_round()
            for name in self.monitor.chosen:
                self.monitor.applied.setdefault(name, shown_by)
        self.watcher.hurry()
        while not self.stack.is_interrupted:
            snapshot, rounds = self._judge()
            self.monitor.fail_deleted(snapshot, rounds)
            if self.monitor.is_over(snapshot, rounds) or self._fail_late_services(snapshot, rounds):
                # What the last judgement did not show yet.
                self.monitor.judge_services(snapshot, rounds)
                return
            self.stack.health.check()
            refused_for = time.monotonic() - self.watcher.unreachable_since
            if self.watcher.unreachable and not self.stack.health.silence and refused_for > _MAX_REFUSAL_S:
                hint = "the state has what was deployed; run 'platform deploy' again"
                raise MissingPiece(self.watcher.unreachable, hint)
            self.stack.pause()

    def _fail_late_services(self, snapshot: Snapshot | None, rounds: int) -> bool:
        """Fail the services whose deadline has passed, and return whether no other service is waited for.

        Before a round shows what was applied, all may look ready as they were; of ready ones, only the wait itself says
        that they have been ready for long enough.
        """
        if not self.deadline.has_passed or not self.monitor.is_shown(rounds):
            # No service has less time than all have.
            return False
        services = {service.name: service for service in self.monitor.plan.services}
        unready = self.monitor.unready(snapshot)
        late = {name for name in unready if self.deadline.has_passed_for(name)}
        for name in late:
            # A deployment does not wait for the end of a running Job.
            if unready[name].state is not WorkloadState.STARTED or services[name].workload_kind != "Job":
                self.monitor.fail(name, _timeout(services[name], unready[name], self.deadline.seconds_for(name)))
        return bool(late) and late == unready.keys()

    def note_outdated(self) -> None:
        """Emit a note for pods that keep the old revision, because of their update policy."""
        for name, status in self.monitor.statuses(self.watcher.latest).items():
            if status.outdated:
                command = f"kubectl delete pod --namespace {self.stack.namespace} {' '.join(status.outdated)}"
                self.stack.note(f"{name}: {describe_outdated_pods(status.outdated)}, as on-delete says: {command}")

    def check_ports(self, api: Api) -> None:
        """Fail services without a health check if nothing listens on the ports of their endpoints.

        Beside a port that answers, one that does not is worth a note: a server with HTTPS switched off has such a port.
        """
        until = self.deadline.at_most(_PORT_TIMEOUT_S)
        for service, ports in endpoint_ports(self.monitor.plan, self.monitor.chosen):
            pod, silent = self._silent_ports(api, service, tuple(ports), until)
            messages = [f"nothing listens on port {port}, where endpoint '{ports[port]}' leads" for port in silent]
            if len(silent) == len(ports):
                self.monitor.fail(service.name, _wrong_port(service, pod, messages[0]))
                continue
            for message in messages:
                self.stack.note(f"{service.name}: {message}")

    def _silent_ports(
        self, api: Api, service: ServicePlan, ports: tuple[int, ...], until: Deadline
    ) -> tuple[str, tuple[int, ...]]:
        """Ask a pod until all its ports answer; return it, with those that don't in time."""
        others = until.at_most(_OTHER_PORTS_TIMEOUT_S)
        pod, silent = "", ports

        def is_over() -> bool:
            nonlocal pod, silent
            pod = self._pod_to_ask(service)
            asked = () if self.stack.is_interrupted or not pod else ports
            silent = tuple(port for port in asked if probe_port(api, self.stack.namespace, pod, port) is False)
            if silent:
                self.monitor.emit(service.name, Phase.WAITING, f"nothing answers on port {silent[0]} yet")
            return not silent or (len(silent) < len(ports) and others.has_passed)

        poll(is_over, until, interval_s=_PORT_POLL_INTERVAL_S)
        return pod, silent

    def _pod_to_ask(self, service: ServicePlan) -> str:
        status = service_status(*service.workload, service.cluster_name, self.watcher.latest or Snapshot())
        return status.pods[0] if status.pods and not status.waits_for_outdated else ""


def endpoint_ports(plan: Plan, chosen: Collection[str]) -> list[tuple[ServicePlan, dict[int, str]]]:
    """List the services that are ready only if their ports answer, each with the ports that endpoints route to."""
    services = {service.name: service for service in plan.services}
    found: dict[str, dict[int, str]] = {}
    for endpoint in plan.endpoints:
        for name, number in endpoint.routes:
            if name in chosen and not services[name].has_health_check:
                found.setdefault(name, {}).setdefault(services[name].container_port(number), endpoint.name)
    return [(services[name], ports) for name, ports in found.items()]


def _wrong_port(service: ServicePlan, pod: str, message: str) -> Cause:
    return Cause(
        code=CauseCode.WRONG_PORT,
        origin=("ports",),
        logs=True,
        pod=pod,
        container=service.cluster_name,
        message=message,
        has_subject=True,
        hint="name the port that the program listens on, on all its addresses",
    )


def _timeout(service: ServicePlan, status: ServiceStatus, seconds: float) -> Cause:
    """The cause of a service that is late, with the log of its last pod."""
    lacks = "has not completed" if service.workload_kind == "Job" else "is not ready"
    shown = status.retry or Cause(
        code=CauseCode.TIMEOUT,
        message="",
        # Its node would not give it.
        logs=bool(status.pods) and not status.unreachable_node,
        pod=status.pods[-1] if status.pods else "",
        container=service.cluster_name,
    )
    message = f"{lacks} after {seconds:.0f} s: {status.retry.message if status.retry else status.message}"
    return replace(
        shown,
        code=CauseCode.TIMEOUT,
        message=message,
        hint=shown.hint or status.hint or "give it more time with --timeout",
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
