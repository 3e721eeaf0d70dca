"""Services are seen through until all are as they should be, or are known not to come to it.

Owns the waiting: for how long, and what is asked meanwhile. How each service stands is the monitor's to judge.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from composeplat.cluster.api import Api
from composeplat.cluster.conditions import ServiceStatus, WorkloadState, describe_outdated_pods, workload_status
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Watcher, probe_port
from composeplat.codes import CauseCode
from composeplat.diagnostics import MissingPiece
from composeplat.engine.events import Events
from composeplat.engine.job_retries import Retries
from composeplat.engine.monitor import Monitor
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.progress import Phase
from composeplat.system.deadline import Deadline

#: What has just begun may not listen yet.
_PORT_GRACE = 30.0
_BETWEEN_PORTS = 0.5
_LONGEST_REFUSAL = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    stack: Stack
    monitor: Monitor
    watcher: Watcher
    deadline: Deadline
    retries: Retries

    def handle(self, urn: str, events: Events) -> None:
        """Note what Pulumi tells; what is spent on building images is no waiting."""
        self.monitor.handle(urn, events, self.watcher.rounds)
        change = events.changes.get(urn) if urn in events.done else None
        if change is not None and change.kind == "Image":
            self.deadline.restart()

    def tick(self) -> None:
        self.monitor.judge_services(self.watcher.latest, self.watcher.rounds)
        self.retries.report(self.monitor.retries)

    def wait(self) -> None:
        """Wait until every service is as it should be, or is known not to come to it."""
        for name in self.monitor.chosen:
            self.monitor.applied.setdefault(name, self.watcher.rounds)
        while not self.stack.is_interrupted:
            snapshot, rounds = self.watcher.latest, self.watcher.rounds
            self.monitor.judge_services(snapshot, rounds)
            self.retries.report(self.monitor.retries)
            if self.monitor.is_over(snapshot, rounds) or self._has_given_up():
                return
            self.stack.health.check()
            refused_for = time.monotonic() - self.watcher.unreachable_since
            if self.watcher.unreachable and not self.stack.health.silence and refused_for > _LONGEST_REFUSAL:
                hint = "what was deployed is noted; run 'platform deploy' again"
                raise MissingPiece(self.watcher.unreachable, hint)
            self.stack.pause()

    def _has_given_up(self) -> bool:
        """Give up what has had its time; says whether that is all that was still waited for."""
        services = {service.name: service for service in self.monitor.plan.services}
        unready = self.monitor.unready(self.watcher.latest)
        late = {name for name in unready if self.deadline.has_passed_for(name)}
        for name in late:
            # Nobody waits for the end of a job that runs.
            if unready[name].state is not WorkloadState.STARTED or services[name].workload_kind != "Job":
                self.monitor.fail(name, _timeout(services[name], unready[name], self.deadline.seconds_for(name)))
        return self.deadline.has_passed and late == unready.keys()

    def note_outdated(self) -> None:
        """Say which pods keep the old revision, as their update policy is."""
        for name, standing in self.monitor.standings(self.watcher.latest).items():
            if standing.outdated:
                command = f"kubectl delete pod --namespace {self.stack.namespace} {' '.join(standing.outdated)}"
                self.stack.note(f"{name}: {describe_outdated_pods(standing.outdated)}, as on-delete says: {command}")

    def ask_ports(self, api: Api) -> None:
        """See that something listens where endpoints lead: without a health check nobody else would."""
        until = self.deadline.at_most(_PORT_GRACE)
        for service, endpoint, port in self._led_to():
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
        """Give the pod, once its time is over; nothing where someone answers, or there is no pod to ask."""
        while not self.stack.is_interrupted:
            snapshot = self.watcher.latest
            standing = workload_status(service.workload_kind, service.cluster_name, snapshot or Snapshot())
            pods = () if standing.waits_for_outdated else standing.pods
            if not pods or probe_port(api, self.stack.namespace, pods[0], port) is not False:
                break
            self.monitor.emit(service.name, Phase.WAITING, f"nothing answers on port {port} yet")
            if until.has_passed:
                return pods[0]
            time.sleep(_BETWEEN_PORTS)
        return ""

    def _led_to(self) -> Iterable[tuple[ServicePlan, str, int]]:
        plan = self.monitor.plan
        services = {service.name: service for service in plan.services}
        for endpoint in plan.endpoints:
            for name, number in endpoint.routes:
                service = services[name]
                if name in self.monitor.chosen and not service.has_health_check:
                    yield service, endpoint.name, service.container_port(number)


def _timeout(service: ServicePlan, standing: ServiceStatus, seconds: float) -> Cause:
    """A failure for want of time, with the lines of the pod that was waited for."""
    lacks = "has not completed" if service.workload_kind == "Job" else "is not ready"
    shown = standing.retry or Cause(
        code=CauseCode.TIMEOUT,
        message="",
        logs=bool(standing.pods),
        pod=standing.pods[-1] if standing.pods else "",
        container=service.cluster_name,
    )
    message = f"{lacks} after {seconds:.0f} s: {standing.message}"
    return replace(shown, code=CauseCode.TIMEOUT, message=message, hint=shown.hint or "give it longer with --timeout")


@contextlib.contextmanager
def open_rollout(stack: Stack, api: Api, plan: Plan, chosen: Collection[str], timeout: float) -> Iterator[Rollout]:
    """See some services of a plan through; what is asked of the cluster all the time ends with the block."""
    watcher = Watcher(stack.target.access, plan.namespace, plan.environment)
    monitor = Monitor(plan=plan, listener=stack.listener, chosen=frozenset(chosen))
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
