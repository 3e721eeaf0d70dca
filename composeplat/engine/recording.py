"""Record a deployment in the history of its environment, from before its first change until after its last.

Owns when a revision is written. It begins as unfinished, so that one whose process is killed is there too. One that
changed nothing, and in which no service failed, is removed again.
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.deployer import Deployer
from composeplat.engine.events import Change, Events
from composeplat.engine.history import (
    create_revision,
    delete_revision,
    kept_numbers,
    newest_of_other_state,
    note_other_state,
    pack_facts,
    read_facts,
    read_history,
    state_id,
    update_revision,
)
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.pulumi_process import Interrupted
from composeplat.engine.recorded_plan import Facts, record_plan
from composeplat.engine.revisions import Result, Revision, leaves_failure, limit_changes, part_changes, short, surplus
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan


@dataclass(slots=True, kw_only=True)
class Recording:
    """The revision of one deployment while it runs."""

    stack: Stack
    api: Api
    plan: Plan
    options: DeployOptions
    command: str
    has_failed: bool = False
    """Whether a service failed."""
    _before: list[Revision] = field(default_factory=list)
    _revision: Revision | None = None
    """None if the history can't be kept."""
    _deployer: Deployer = field(default_factory=lambda: Deployer(who=""))
    _runs: list[Events] = field(default_factory=list)
    _is_running: bool = False
    _started: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def watch_run(self) -> Iterator[None]:
        """Watch a run of Pulumi: where an error ends it, more may be changed than was noted."""
        self._is_running = True
        yield
        self._is_running = False

    def note_changes(self, events: Events) -> None:
        """Note the changes of a run of Pulumi, which may continue."""
        if not any(found is events for found in self._runs):
            self._runs.append(events)

    @property
    def _changes(self) -> list[Change]:
        """Those that were made. A run after a temporary failure reports some again."""
        return list({change.urn: change for found in self._runs for change in found.made_changes}.values())

    def begin(self) -> None:
        """Write the revision, before anything is changed."""
        self._deployer = self.stack.find_deployer()
        with self._tolerating():
            self._before = read_history(self.api, self.stack.namespace, self.stack.environment_name)
            newest = max((found.number for found in self._before), default=0)
            revision = Revision(
                number=newest + 1,
                command=self.command,
                result=Result.UNFINISHED,
                who=short(self._deployer.who),
                commit=self._deployer.commit,
                branch=short(self._deployer.branch),
                services=self.options.services,
                rolled_back_to=self.options.rolled_back_to,
                state=state_id(self.stack),
            )
            number = create_revision(self.api, self.stack, revision)
            self._revision = replace(revision, number=number)

    def follows_other_state(self) -> bool:
        """Return whether the state lacks the changes of the last revision, and note it."""
        return note_other_state(self.stack, self._before)

    def may_follow_failure(self) -> bool:
        """Return whether pods of earlier revisions may have failed, or nobody waited for them."""
        return leaves_failure(self._before) or any(found.result is Result.APPLIED for found in self._before[:1])

    def end(self, result: Result) -> None:
        """Write how it ended, or remove it if it changed nothing.

        After one that failed or was killed it stays: that what runs is good is known from this one. So it does after
        one with another state, as after a move: later runs need not compare this state with the cluster again.
        """
        if self._revision is None:
            return
        with self._tolerating():
            self.stack.health.require_answers()
            is_known_good = result.is_good and not self._leaves_failure()
            completes_another = is_known_good and (leaves_failure(self._before) or self._continues_other_state())
            if not (self._changes or self.has_failed or self._is_running or completes_another):
                delete_revision(self.api, self.stack, self._revision.number)
                return
            packed = pack_facts(self._facts()) if is_known_good and self.command != "destroy" else b""
            changes, omitted = limit_changes(part_changes(self._changes, self.plan))
            revision = replace(
                self._revision,
                result=result,
                seconds=round(time.monotonic() - self._started, 1),
                dirty=self._deployer.find_dirty(),
                changes=changes,
                omitted_changes=omitted,
                has_values=bool(packed),
                state=state_id(self.stack),
            )
            update_revision(self.api, self.stack, revision, packed)
            for found in surplus([*self._before, revision]):
                delete_revision(self.api, self.stack, found.number)

    def _leaves_failure(self) -> bool:
        """Whether an earlier deployment failed with services that this one leaves alone."""
        services = self.options.services
        return bool(services) and leaves_failure(self._before, self.plan.select_services(services))

    def _continues_other_state(self) -> bool:
        """Whether this run, of all services, has compared the state with what another one deployed."""
        is_of_all = not self.options.services and self.command != "destroy"
        return is_of_all and newest_of_other_state(self.stack, self._before) is not None

    def _facts(self) -> Facts:
        return record_plan(self.plan, self.stack.state, self.options.services, self._facts_before())

    def _facts_before(self) -> Facts | None:
        """Return the facts of the last revision, which a deploy of some services keeps for all others."""
        last = next((found for found in self._before if found.can_roll_back), None)
        if not self.options.services or last is None:
            return None
        with contextlib.suppress(ComposeplatError):
            return read_facts(self.api, self.stack, last)
        return None

    @contextlib.contextmanager
    def _tolerating(self) -> Iterator[None]:
        """Turn a failure to write the history into a note: it never makes a deployment fail."""
        try:
            yield
        except ComposeplatError as error:
            self._revision = None
            # There is no namespace to destroy an environment in.
            if not (isinstance(error, ApiError) and error.status == http.client.NOT_FOUND):
                self.stack.note(f"this deployment is not in the history: {error}")


@contextlib.contextmanager
def record_deployment(stack: Stack, api: Api, plan: Plan, options: DeployOptions, command: str) -> Iterator[Recording]:
    """Record a deployment that runs in the block; the namespace is there, and the lock of the stack is held."""
    recording = Recording(stack=stack, api=api, plan=plan, options=options, command=command)
    recording.begin()
    try:
        yield recording
    except (Interrupted, KeyboardInterrupt):
        recording.end(Result.INTERRUPTED)
        raise
    except BaseException:
        recording.end(Result.FAILED)
        raise
    if recording.has_failed:
        recording.end(Result.FAILED)
    else:
        recording.end(Result.DONE if options.wait else Result.APPLIED)


def forget_history(stack: Stack, api: Api) -> None:
    """Delete the history of an environment of which nothing stays; without permission, it stays."""
    with contextlib.suppress(ComposeplatError):
        for number in kept_numbers(api, stack):
            delete_revision(api, stack, number)
