"""A stack during an operation.

Owns the common ground of all operations: the lock, the health of the cluster, interrupts, and the check that the state
belongs to the target cluster.
Must not know the operations: they are :mod:`~composeplat.engine.operations`'.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.health import HealthMonitor
from composeplat.cluster.identity import address_identity
from composeplat.cluster.live_list import wait_for
from composeplat.cluster.snapshot import Object
from composeplat.compose.origins import Origins
from composeplat.diagnostics import ComposeplatError, join_and_count
from composeplat.engine.builder import DOCKER_HOST, with_docker_host
from composeplat.engine.deployer import Deployer
from composeplat.engine.monitor import ProgressHandler
from composeplat.engine.outcomes import Failure
from composeplat.engine.preflight import cluster_of, resources_of_others
from composeplat.engine.provenance import Claim, check_record, notice_of_other
from composeplat.engine.provider_values import Providers
from composeplat.engine.pulumi_process import Interrupted, Interrupts
from composeplat.engine.target import Target
from composeplat.engine.workspace import Workspace
from composeplat.system.deadline import Deadline, poll

_POLL_INTERVAL_S = 0.1
_MAX_LISTED = 5


@dataclass(slots=True, kw_only=True)
class Stack:
    """One environment in a namespace of a cluster, and the handlers of an operation's messages."""

    environment_name: str
    namespace: str
    target: Target
    variables: Mapping[str, str]
    """Those of the process."""
    claim: Claim | None = None
    """The project of this run; none if it is unknown, as in plain Pulumi."""
    origins: Origins | None = None
    """The places of the definition's parts, for messages about them."""
    on_progress: ProgressHandler = field(default=lambda _: None)
    note: Callable[[str], None] = field(default=lambda _: None)
    warn: Callable[[Failure], None] = field(default=lambda _: None)
    """Called for failures that are not final."""
    before_create: Callable[[tuple[str, str]], None] | None = None
    """Called with kind and name of a workload, when it is about to be created."""
    providers: Providers = field(default_factory=Providers)
    hide_secrets: Callable[[Iterable[tuple[str, str]]], None] = field(default=lambda _: None)
    """Called with the secrets of an earlier deployment, which the definition need not have, by their names."""
    find_deployer: Callable[[], Deployer] = field(default=lambda: Deployer(who=""))
    """Finds who deploys, and from which commit, for the history."""
    interrupts: Interrupts = field(default_factory=Interrupts)
    health: HealthMonitor = field(init=False)
    _workspace: Workspace | None = None

    def __post_init__(self) -> None:
        self.health = HealthMonitor(self.target.access, self.namespace, self.note)

    @property
    def workspace(self) -> Workspace:
        """The workspace on this machine; made on first use, since it asks the cluster for its identity."""
        if self._workspace is None:
            self._workspace = Workspace(
                environment_name=self.environment_name,
                namespace=self.namespace,
                target=self.target,
                environment=self.variables,
                interrupts=self.interrupts,
            )
        return self._workspace

    @property
    def state(self) -> dict[str, Any]:
        return self.workspace.read_state() or {}

    def mend_state(self) -> None:
        """Remove pending operations from the state, repair its order, and note the Docker host of this run in it."""
        if self.workspace.repair_order():
            self.note("repaired the state: a resource came before another one that it depends on")
        self.workspace.drop_pending()
        self.workspace.change_state(lambda state: with_docker_host(state, self.variables.get(DOCKER_HOST, "")))

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack, and watch the health of the cluster."""
        with self.workspace.lock(what), self.health:
            yield

    @property
    def is_interrupted(self) -> bool:
        return self.interrupts.count > 0

    def stop_if_interrupted(self, hint: str = "") -> None:
        if self.is_interrupted:
            raise Interrupted("interrupted", hint)

    def check_can_continue(self) -> None:
        """Raise if the user has interrupted, or the cluster has not answered for too long."""
        self.stop_if_interrupted()
        self.health.check()

    def poll(self, check: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait until ``check`` is true; return whether it was before the deadline.

        An interrupt raises. A cluster that does not answer is waited for, for as long as its health monitor does.
        """

        def check_if_possible() -> bool:
            self.check_can_continue()
            if self.health.is_silent:
                return False
            try:
                return check()
            except ApiError as error:
                self.health.bear(error)
                return False

        return poll(check_if_possible, deadline, interval_s=_POLL_INTERVAL_S)

    def watch(self, api: Api, path: str, check: Callable[[list[Object]], bool], deadline: Deadline) -> bool:
        """Wait until ``check`` is true of the objects of a path; return whether it was before the deadline.

        The objects are watched: while none changes, next to nothing is requested. An interrupt raises, and a cluster
        that does not answer is waited for, as :meth:`poll` does.
        """

        def check_if_possible(objects: list[Object]) -> bool:
            self.check_can_continue()
            return check(objects)

        return wait_for(api, path, check_if_possible, deadline, self.health)

    def pause(self) -> None:
        """Sleep for a moment between two checks."""
        time.sleep(_POLL_INTERVAL_S)

    def not_deployed_error(self) -> ComposeplatError:
        return ComposeplatError(
            f"environment '{self.environment_name}' is not deployed in namespace '{self.namespace}'", "platform deploy"
        )

    def check_project(self, command: str, api: Api | None = None) -> None:
        """Refuse an environment that was made from another project, before a command changes anything of it."""
        with contextlib.ExitStack() as opened:
            api = api or opened.enter_context(Api(self.target.access))
            check_record(api, self.claim, self.environment_name, self.namespace, command=command)

    def notice_of_other_project(self) -> str:
        """The notice for a command that only reads an environment of another project."""
        with Api(self.target.access) as api:
            return notice_of_other(api, self.claim, self.environment_name, self.namespace)

    def _check_program(self) -> None:
        """Refuse a state with resources of another program, which each run of this one would delete."""
        others = resources_of_others(self.state, self.environment_name)
        if others:
            raise ComposeplatError(
                f"the state of environment '{self.environment_name}' in namespace '{self.namespace}' has resources of"
                f" another Pulumi program, which would be deleted: {join_and_count(others, _MAX_LISTED)}",
                "give another --name or --namespace, or a state of its own (PULUMI_BACKEND_URL)",
            )

    def check_cluster(self) -> None:
        """Refuse the state of another program, or of another cluster: Pulumi would look for its objects in this one."""
        self._check_program()
        known, address = cluster_of(self.state), address_identity(self.target.access)
        if known == address:
            # It was deployed by someone who could only see the address; from now on it has the cluster's identity.
            self.workspace.cluster = known
        if not known or known == self.workspace.cluster:
            return
        whose = f"the state of environment '{self.environment_name}' in namespace '{self.namespace}' is of"
        if self.workspace.cluster == address:
            raise ComposeplatError(
                f"can't check whether {whose} this cluster: you may not read its namespace kube-system",
                "let those who deploy read that one object: kubectl create clusterrole know-the-cluster --verb=get"
                " --resource=namespaces --resource-name=kube-system, and bind it",
            )
        raise ComposeplatError(
            f"{whose} another cluster than this one, and both would share it",
            "give another --name or --namespace, or a state of its own (PULUMI_BACKEND_URL); if that cluster is"
            f" gone for good: pulumi stack rm --force --stack {self.namespace}",
        )
