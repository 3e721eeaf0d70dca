"""One service under development: from the deployed service to a session in its container, and back.

Owns the order: take the lease, replace the workload, connect, watch the lease while the session lasts, and restore.
Must not know a terminal, nor how a definition is read: the command line gives it a plan and prints its events.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.node_processors import node_processors
from composeplat.cluster.snapshot import container_of
from composeplat.cluster.watching import Watcher, environment_selector
from composeplat.compose.options import DEFAULT_TIMEOUT_S
from composeplat.dev.dev_workload import DevWorkloadInputs, selector
from composeplat.dev.helper import HelperBuild, HelperImage
from composeplat.dev.holder import ARCHITECTURES
from composeplat.dev.lease import (
    Holder,
    LeaseRenewal,
    SessionLease,
    describe_holder,
    has_lease,
    lease_holder,
    may_be_running,
)
from composeplat.dev.link import Event, Link, Place, Session
from composeplat.dev.replacement import Replacement
from composeplat.dev.sync_rules import SyncPath
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend import find_data_folder, writing
from composeplat.engine.dev_workloads import planned_replicas
from composeplat.engine.preflight import KINDS
from composeplat.engine.scaling import remembered_replicas
from composeplat.engine.target import Target
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.plan.identity import Identity
from composeplat.plan.templates import pod_template
from composeplat.system.machine import architecture
from composeplat.system.processes import ProcessId
from composeplat.system.records import record
from composeplat.system.signals import handle_signals
from composeplat.system.threads import start_thread
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import LINK

_RENEWAL_INTERVAL_S = 8.0
#: While the cluster can't be watched, and until a lease is renewed that could not be.
_CHECK_INTERVAL_S = 3.0
_TERMINATION_GRACE_S = 15.0
_WATCHER_TIMEOUT_S = 5.0


@record(kw_only=True)
class UpOptions:
    """The options of a development container that a user may choose."""

    session: Session
    helper: str = ""
    registry: str = ""
    size: str = "5Gi"
    timeout: float = DEFAULT_TIMEOUT_S
    take_over: bool = False


@dataclass(slots=True, kw_only=True)
class Development:
    plan: Plan
    service: ServicePlan
    paths: tuple[SyncPath, ...]
    target: Target
    environment: Mapping[str, str]
    note: Callable[[str], None]
    _id: str = field(default_factory=lambda: secrets.token_hex(8))
    _ended: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Event = field(default_factory=threading.Event)
    """Set when a workload may have changed, and at the end of the session."""
    _end_reason: str = ""
    """Why the session must end, if someone else took the service over or gave it back."""
    _failure: Exception | None = None

    @property
    def identity(self) -> Identity:
        return self.plan.identity

    def is_deployed(self) -> bool:
        with Api(self.target.access) as api:
            return self._replacement(api).workload() is not None

    def is_asleep(self) -> bool:
        with Api(self.target.access) as api:
            workload = self._replacement(api).workload()
        return workload is not None and remembered_replicas(workload) is not None

    def image(self) -> str:
        """The image of the service's container, as deployed."""
        with Api(self.target.access) as api:
            workload = self._replacement(api).deployed_workload()
        return str(container_of(pod_template(workload)["spec"], self.service.cluster_name)["image"])

    def _replacement(self, api: Api) -> Replacement:
        return Replacement(
            api=api,
            namespace=self.plan.namespace,
            environment=self.plan.environment,
            kind=self.service.workload_kind,
            name=self.service.workload_name,
            planned_replicas=planned_replicas(self.plan, self.service.workload_name),
        )

    # up

    def up(self, options: UpOptions, on_event: Callable[[Event], None]) -> int:
        """Develop until the session ends; returns its exit status."""
        toolchain = Toolchain(self.environment)
        program = toolchain.need(LINK)
        with Api(self.target.access) as api:
            replacement = self._replacement(api)
            self._end_other_session(replacement, replacement.dev_workload(), take_over=options.take_over)
            inputs = self._inputs(api, toolchain, replacement, options)
            link = Link(program.path, self._place(), self.paths, options.session)
            replacement.replace(inputs, self._new_lease(replacement, options))
        with self._lease_kept(inputs, link):
            self._wait_until_ready(options.timeout)
            with _interrupts_left_to(link):
                status = link.run(self.environment, on_event)
        self._raise_end()
        return status

    @contextlib.contextmanager
    def _lease_kept(self, inputs: DevWorkloadInputs, link: Link) -> Iterator[None]:
        """Keep the lease until the block ends: also while the container starts, which may take minutes."""
        watcher = start_thread("lease", lambda: self._watch(inputs, link), lambda error: self._fail(error, link))
        try:
            yield
        finally:
            self._ended.set()
            self._changed.set()
            watcher.join(timeout=_WATCHER_TIMEOUT_S)
            self._release_lease()

    def _raise_end(self) -> None:
        """Raise what has ended the session from outside, if anything has."""
        if self._failure is not None:
            raise self._failure
        if self._end_reason:
            raise ComposeplatError(self._end_reason)

    def _fail(self, error: Exception, link: Link) -> None:
        self._failure = error
        link.end()

    def _inputs(
        self, api: Api, toolchain: Toolchain, replacement: Replacement, options: UpOptions
    ) -> DevWorkloadInputs:
        build = HelperBuild(
            toolchain=toolchain,
            target=self.target,
            data_folder=find_data_folder(self.environment),
            registry=options.registry,
            architectures=node_processors(api) or self._possible_architectures(),
        )
        helper = HelperImage(options.helper) if options.helper else build.provide(api)
        return DevWorkloadInputs(
            identity=self.identity,
            service=self.service.workload_name,
            container=self.service.cluster_name,
            paths=self.paths,
            helper=helper.reference,
            helper_pull_policy=helper.pull_policy,
            claims=replacement.claims(),
            size=options.size,
            keeps_limits=replacement.has_limit_policies(),
        )

    def _possible_architectures(self) -> tuple[str, ...]:
        """Return those of nodes that may not be listed: a cluster on this machine has that of this machine."""
        is_here = self.target.other is not None or self.target.layout is not None
        return (architecture(),) if is_here else ARCHITECTURES

    def _wait_until_ready(self, timeout: float) -> None:
        watcher = Watcher(self.target.access, self.plan.namespace, self.plan.environment, ("Deployment",))

        def note(message: str) -> None:
            self.note(f"{self.service.name}: {message}")

        try:
            with Api(self.target.access) as api:
                self._replacement(api).wait_until_ready(watcher, timeout, note, self._raise_end)
        finally:
            watcher.stop()

    def _place(self) -> Place:
        data_folder = find_data_folder(self.environment)
        cluster = self.target.identity()
        key = f"{cluster}\0{self.plan.namespace}\0{self.plan.environment}\0{self.service.cluster_name}"
        state = data_folder.path / "up" / hashlib.sha256(key.encode()).hexdigest()[:16]
        with writing(state):
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Place(
            namespace=self.plan.namespace,
            selector=selector(self.identity, self.service.workload_name),
            container=self.service.cluster_name,
            state=state,
            kubeconfig=self.target.kubeconfig_for(state),
        )

    # the lease

    def _holder(self) -> Holder:
        return {
            "id": self._id,
            "host": socket.gethostname(),
            "user": self.environment.get("USER", ""),
            **ProcessId.from_pid(os.getpid()).to_data(),
        }

    def is_held_by_another(self) -> bool:
        """Return whether another session develops the service now: this one was refused, or taken over."""
        with Api(self.target.access) as api:
            holder = self._replacement(api).holder()
        return holder is not None and holder.get("id") != self._id and may_be_running(holder)

    def is_left(self) -> bool:
        """Return whether the service is under development, by no other session; also if the cluster can't say it."""
        with contextlib.suppress(ComposeplatError), Api(self.target.access) as api:
            return self._replacement(api).dev_workload() is not None and not self.is_held_by_another()
        return True

    def _new_lease(self, replacement: Replacement, options: UpOptions) -> SessionLease:
        """Return a lease that no other session may have taken, as the helper may have been built for minutes."""

        def check(seen: Mapping[str, Any] | None) -> None:
            if not options.take_over:
                self._end_other_session(replacement, seen, take_over=False)

        return replace(self._kept_lease(replacement), may_take=check)

    def _kept_lease(self, replacement: Replacement) -> SessionLease:
        def check(seen: Mapping[str, Any] | None) -> None:
            if loss := self._loss_by(seen, replacement):
                raise ComposeplatError(loss)

        return SessionLease(self._holder(), may_take=check, may_keep=check)

    def _end_other_session(self, replacement: Replacement, seen: Mapping[str, Any] | None, *, take_over: bool) -> None:
        """End the session that has the lease, if the user asked for that; an error otherwise."""
        holder = lease_holder(seen, replacement.api.server_time)
        if holder is None or not may_be_running(holder):
            return
        who = f"{describe_holder(holder)} (process {holder.get('pid')})"
        if not take_over:
            raise ComposeplatError(
                f"service '{self.service.name}' is being developed already, by {who}", "--take-over ends that session"
            )
        self.note(f"taking {self.service.name} over from {who}")
        _terminate(holder)

    def _watch(self, inputs: DevWorkloadInputs, link: Link) -> None:
        """Renew the lease until the session ends, and replace the workload again after someone else's deploy."""
        renewal = LeaseRenewal(self.service.name, self.note)
        with Api(self.target.access) as api, self._watched_workloads() as lists:
            replacement = self._replacement(api)
            while not self._ended.is_set():
                try:
                    self._end_reason = self._check(replacement, replace(replacement, lists=lists), renewal, inputs)
                except ComposeplatError as error:
                    # The link reports a cluster that can't be reached; the next round tries again.
                    renewal.fail(error)
                if self._end_reason:
                    link.end()
                    return
                due_in = _RENEWAL_INTERVAL_S - renewal.age
                is_watched = due_in > 0 and not any(live.is_broken for live in lists.values())
                self._changed.wait(due_in if is_watched else _CHECK_INTERVAL_S)
                self._changed.clear()

    @contextlib.contextmanager
    def _watched_workloads(self) -> Iterator[dict[str, LiveList]]:
        """Lists of the environment's Deployments, and of the kind of the service's own workload."""
        selector = environment_selector(self.plan.environment)
        lists = {
            kind: LiveList(
                self.target.access, kind_path(KINDS[kind], kind, self.plan.namespace) + selector, self._changed
            )
            for kind in ("Deployment", self.service.workload_kind)
        }
        try:
            yield lists
        finally:
            for live in lists.values():
                live.stop()

    def _check(
        self, replacement: Replacement, watched: Replacement, renewal: LeaseRenewal, inputs: DevWorkloadInputs
    ) -> str:
        """Check by what is ``watched``; return why the session must end, or an empty text."""
        dev_workload = watched.dev_workload()
        if dev_workload is None or self._loss_by(dev_workload, replacement) or watched.is_outdated(dev_workload):
            # What is watched may be old. `down` removes the lease before the service has pods of its own again.
            dev_workload = replacement.dev_workload()
            loss = self._loss_by(dev_workload, replacement)
            if dev_workload is None or loss:
                return loss
        if renewal.age > _RENEWAL_INTERVAL_S:
            replacement.renew_lease(self._holder(), dev_workload)
            renewal.succeed()
        if watched.is_outdated(dev_workload):
            self.note(f"{self.service.name} was deployed again; its development container follows")
            replacement.replace(inputs, self._kept_lease(replacement))
        return ""

    def _loss_by(self, dev_workload: Mapping[str, Any] | None, replacement: Replacement) -> str:
        """Return why this session has lost the service; an empty text if it has not."""
        if dev_workload is None or not has_lease(dev_workload):
            return f"{self.service.name} is not under development any more: it was restored or destroyed"
        holder = lease_holder(dev_workload, replacement.api.server_time)
        if holder is not None and holder.get("id") != self._id:
            return f"{self.service.name} was taken over by {describe_holder(holder)}"
        return ""

    def _release_lease(self) -> None:
        with contextlib.suppress(ApiError), Api(self.target.access) as api:
            replacement = self._replacement(api)
            dev_workload = replacement.dev_workload()
            holder = lease_holder(dev_workload, api.server_time)
            if dev_workload is not None and holder is not None and holder.get("id") == self._id:
                replacement.release_lease(dev_workload)

    # down

    def down(self, *, volumes: bool) -> bool:
        """End any session, and restore the service's own workload; returns whether it was under development."""
        with Api(self.target.access) as api:
            replacement = self._replacement(api)
            holder = replacement.holder()
            if holder is not None:
                _terminate(holder)
            return replacement.restore(volumes=volumes)


def _terminate(holder: Mapping[str, Any]) -> None:
    """End another session on this machine, and wait for its end; a session elsewhere sees the new holder by itself."""
    process = ProcessId.from_data(holder)
    if process is None or process.is_current or not process.is_running:
        return
    process.terminate(grace_s=_TERMINATION_GRACE_S)


@contextlib.contextmanager
def _interrupts_left_to(link: Link) -> Iterator[None]:
    """Leave Ctrl-C to the program in the container once it runs; SIGTERM and SIGHUP end the session."""

    def end(_number: int, _frame: object) -> None:
        link.end()

    with handle_signals({signal.SIGINT: lambda *_: link.interrupt(), signal.SIGTERM: end, signal.SIGHUP: end}):
        yield
