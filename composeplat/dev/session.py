"""One service under development: from the deployed service to a session in its container, and back.

Owns the order: see that nobody else is at it, put the dev workload in place, link, keep all of it so, and give it back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.watching import Watcher
from composeplat.compose.options import DEFAULT_TIMEOUT_S
from composeplat.dev.dev_workload import Object, Wanted, selector
from composeplat.dev.helper import architectures, helper_image
from composeplat.dev.link import Event, Link, Place, Session
from composeplat.dev.swap import HOLDER_GONE_AFTER, Swap, holder_of
from composeplat.dev.sync_rules import SyncPath
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend import find_data_folder, writing
from composeplat.engine.target import Target
from composeplat.plan.desired import Identity, Plan, ServicePlan
from composeplat.system.processes import ProcessId
from composeplat.system.threads import start_thread
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import LINK

_RENEWED_EVERY = 8.0
_LOOKED_EVERY = 3.0
_OLD_ENDS_WITHIN = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What a user may choose of a development container."""

    session: Session
    helper: str = ""
    registry: str = ""
    size: str = "5Gi"
    timeout: float = DEFAULT_TIMEOUT_S
    take_over: bool = False


@dataclass(slots=True)
class Claim:
    """When our claim on a service was renewed, and what is told where it can't be."""

    service: str
    say: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _renewed: float = 0.0
    _is_lost: bool = False

    def __post_init__(self) -> None:
        self._renewed = self.now()

    @property
    def age(self) -> float:
        return self.now() - self._renewed

    def renew(self) -> None:
        if self._is_lost:
            self.say(f"the claim on {self.service} is renewed again")
        self._renewed, self._is_lost = self.now(), False

    def fail(self, error: Exception) -> None:
        if not self._is_lost and self.age > HOLDER_GONE_AFTER:
            self._is_lost = True
            self.say(f"the claim on {self.service} can't be renewed, and others may take it over: {error}")


@dataclass(slots=True, kw_only=True)
class Development:
    plan: Plan
    service: ServicePlan
    paths: tuple[SyncPath, ...]
    target: Target
    environment: Mapping[str, str]
    say: Callable[[str], None]
    _id: str = field(default_factory=lambda: secrets.token_hex(8))
    _ended: threading.Event = field(default_factory=threading.Event)
    _over: str = ""
    """Why there is nothing to develop any more, where someone else has seen to that."""
    _failure: Exception | None = None

    @property
    def identity(self) -> Identity:
        return Identity(environment=self.plan.environment, namespace=self.plan.namespace)

    def is_deployed(self) -> bool:
        with Api(self.target.access) as api:
            return self._swap(api).workload() is not None

    def _swap(self, api: Api) -> Swap:
        return Swap(
            api=api,
            namespace=self.plan.namespace,
            environment=self.plan.environment,
            kind=self.service.workload_kind,
            name=self.service.cluster_name,
        )

    # up

    def up(self, options: UpOptions, on_event: Callable[[Event], None]) -> int:
        """Develop until the session ends; gives the status it ends with."""
        toolchain = Toolchain(self.environment)
        link = toolchain.need(LINK)
        with Api(self.target.access) as api:
            swap = self._swap(api)
            self._see_to_holder(swap, take_over=options.take_over)
            wanted = self._wanted(api, toolchain, swap, options)
            swap.take_place(wanted)
            swap.hold(self._holder())
            self._wait(swap, options.timeout)
        running = Link(link.path, self._place(), self.paths, options.session)
        keeper = start_thread(
            "keeper", lambda: self._keep(wanted, running), lambda error: self._give_up(error, running)
        )
        try:
            with _interrupts_left_to(running):
                status = running.run(self.environment, on_event)
        finally:
            self._ended.set()
            keeper.join(timeout=5)
            self._let_go()
        if self._failure is not None:
            raise self._failure
        if self._over:
            raise ComposeplatError(self._over)
        return status

    def _give_up(self, error: Exception, link: Link) -> None:
        self._failure = error
        link.end()

    def _wanted(self, api: Api, toolchain: Toolchain, swap: Swap, options: UpOptions) -> Wanted:
        helper = options.helper or helper_image(
            toolchain, self.target, find_data_folder(self.environment), options.registry, architectures(api)
        )
        return Wanted(
            identity=self.identity,
            service=self.service.cluster_name,
            paths=self.paths,
            helper=helper,
            claims=swap.claims(),
            size=options.size,
            keeps_limits=swap.counts_limits(),
        )

    def _wait(self, swap: Swap, timeout: float) -> None:
        watcher = Watcher(self.target.access, self.plan.namespace, self.plan.environment)
        try:
            swap.until_ready(watcher, timeout, lambda words: self.say(f"{self.service.name}: {words}"))
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
            selector=selector(self.identity, self.service.cluster_name),
            container=self.service.cluster_name,
            state=state,
            kubeconfig=self.target.kubeconfig_for(state),
        )

    # who is at it

    def _holder(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "host": socket.gethostname(),
            "user": self.environment.get("USER", ""),
            **ProcessId.from_pid(os.getpid()).to_data(),
        }

    def _see_to_holder(self, swap: Swap, *, take_over: bool) -> None:
        held = holder_of(swap.dev_workload(), swap.api.server_time)
        if held is None or not may_be_running(held):
            return
        who = f"{held.get('user') or 'someone'} on {held.get('host')} (process {held.get('pid')})"
        if not take_over:
            raise ComposeplatError(
                f"service '{self.service.name}' is being developed already, by {who}", "--take-over ends that one"
            )
        self.say(f"taking {self.service.name} over from {who}")
        _end(held)

    def _keep(self, wanted: Wanted, link: Link) -> None:
        """Renew our claim, and put the dev workload in place again where someone has deployed meanwhile."""
        claim = Claim(self.service.name, self.say)
        with Api(self.target.access) as api:
            swap = self._swap(api)
            while not self._ended.wait(_LOOKED_EVERY):
                try:
                    dev_workload = swap.dev_workload()
                    if dev_workload is None:
                        self._over = (
                            f"{self.service.name} is not under development any more: it was given back or destroyed"
                        )
                    elif claim.age > _RENEWED_EVERY:
                        self._over = self._renew(swap, dev_workload)
                        claim.renew()
                    if self._over or dev_workload is None:
                        link.end()
                        return
                    if swap.is_behind(dev_workload):
                        self.say(f"{self.service.name} was deployed anew; its development container follows")
                        swap.take_place(wanted)
                except ComposeplatError as error:
                    # The link says of a cluster that can't be reached; here the next round sees to it.
                    claim.fail(error)

    def _renew(self, swap: Swap, dev_workload: Object) -> str:
        """Say that we are at it still; gives the words where it is someone else now."""
        held = holder_of(dev_workload, swap.api.server_time)
        if held is not None and held.get("id") != self._id:
            return f"{self.service.name} was taken over by {held.get('user') or 'someone'} on {held.get('host')}"
        swap.hold(self._holder())
        return ""

    def _let_go(self) -> None:
        with contextlib.suppress(ApiError), Api(self.target.access) as api:
            swap = self._swap(api)
            held = holder_of(swap.dev_workload(), swap.api.server_time)
            if held is not None and held.get("id") == self._id:
                swap.let_go()

    # down

    def down(self, *, volumes: bool) -> bool:
        with Api(self.target.access) as api:
            swap = self._swap(api)
            held = holder_of(swap.dev_workload(), swap.api.server_time)
            if held is not None:
                _end(held)
            return swap.give_back(volumes=volumes)


def may_be_running(held: Mapping[str, Any]) -> bool:
    """Say whether a holder may be at it still: only of a process of this machine can it be known that it is not."""
    process = ProcessId.from_data(held)
    return process is None or not (process.has_ended or process.is_current)


def _end(held: Mapping[str, Any]) -> None:
    """Ask another run on this machine to end, and wait until it has; one elsewhere sees the new holder by itself."""
    process = ProcessId.from_data(held)
    if process is None or process.is_current or not process.is_running:
        return
    process.terminate(grace_s=_OLD_ENDS_WITHIN)


@contextlib.contextmanager
def _interrupts_left_to(link: Link) -> Iterator[None]:
    """Ctrl-C is the program's in the container, once that is there; a wish to end is passed on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, lambda *_: link.interrupt())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: link.end())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
