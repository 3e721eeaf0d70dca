"""Find out without Pulumi that a deploy would change nothing, and keep the record by which the next run does.

Owns when Pulumi runs, and when a record is read, written and removed: it is written after a run that ended well, under
the lock of the stack, and removed before the next one begins. So a run that was killed leaves none.
Must not decide what a change is: :mod:`~composeplat.engine.no_change` does.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from composeplat.cluster.api import Api, ApiError
from composeplat.compose.variables import Variables
from composeplat.engine import pulumi_runs
from composeplat.engine.build_files import Doubt, last_change
from composeplat.engine.builder import builder_variables
from composeplat.engine.changed_parts import (
    ChangedParts,
    changing_facts,
    complete_counts,
    find_parts,
)
from composeplat.engine.monitor import Monitor
from composeplat.engine.no_change import (
    Digester,
    Record,
    changed_parts,
    digest_objects,
    doubt_about_digests,
    doubt_about_inputs,
    doubt_about_objects,
    doubt_about_options,
    doubt_about_plan,
    doubt_about_state,
    unchanged_resources,
)
from composeplat.engine.no_change_inputs import SWITCH, gather_inputs
from composeplat.engine.no_change_look import Look, find_silent_ports, take_look
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.provenance import record_key, recorded_project
from composeplat.engine.pulumi_flags import doubt_about_flags
from composeplat.engine.rollout import endpoint_ports
from composeplat.engine.stack import Stack
from composeplat.plan.desired import ImageBuild, Plan
from composeplat.system.atomic import write_private

logger = logging.getLogger(__name__)

#: By so much the time of a change may be behind the clock, which file systems read once in a tick.
_CLOCK_STEP_NS = 20_000_000


@dataclass(slots=True, kw_only=True)
class NoChangeCheck:
    """The check of one run: before it, whether it is needed; after it, what the next run may rely on."""

    stack: Stack
    plan: Plan
    digester: Digester
    began_ns: int
    """When the inputs began to be read."""
    inputs: Mapping[str, str]
    """The digests of all inputs as they were before the run; empty if this run can neither use nor leave a record."""
    parts: Mapping[str, str]
    """The digests of the parts that may change alone."""
    last: Record | None = None
    """The record of the last run, if nothing but some of these parts has changed since."""
    changed: frozenset[str] = frozenset()
    """The names of these parts."""

    @classmethod
    def begin(cls, stack: Stack, plan: Plan, options: DeployOptions) -> Self:
        if plan.images and options.build is not False:
            stack.workspace.builder = builder_variables(stack.variables, stack.target, stack.workspace.data_folder)
        digester, began_ns = make_digester(stack), time.time_ns()
        try:
            inputs = digest_inputs(stack, plan, options, digester)
        except Doubt as doubt:
            logger.debug("Pulumi has to look for changes: %s", doubt)
            inputs = {}
        parts = {name: digester.digest(facts) for name, facts in changing_facts(plan).items()} if inputs else {}
        return cls(stack=stack, plan=plan, digester=digester, began_ns=began_ns, inputs=inputs, parts=parts)

    # before a run

    def find_unchanged(self, what: str) -> Outcome | None:
        """Return the outcome of a run that would change nothing; none if Pulumi has to look."""
        if not self.inputs:
            return None
        with self.stack.workspace.hold_lock(what):
            try:
                last = self._confirm(is_deploy=what != "preview")
            except (Doubt, ApiError) as doubt:
                logger.debug("Pulumi has to look for changes: %s", doubt)
                return None
        self.stack.stop_if_interrupted()
        self.last = last
        if self.changed:
            return None
        return Outcome(counts={"same": last.resources}, urls=self.stack.target.urls_of(self.plan))

    def _confirm(self, *, is_deploy: bool) -> Record:
        """Return the record of the last run, or raise a :class:`Doubt` if more has changed than parts of the plan."""
        record = read_record(self.stack, self.stack.workspace.record_file)
        raise_doubt(doubt_about_inputs(record, self.inputs))
        self.changed = changed_parts(record, self.parts)
        if self.changed:
            names = ", ".join(sorted(self.changed))
            logger.debug("Pulumi has to look for changes: changed since the last run: %s", names)
            raise_doubt(find_parts(self.plan, self.changed).doubt(self.plan))
            pulumi_runs.load_ahead()
        raise_doubt("" if record.state == _digest_state(self.stack) else "the state has changed since the last run")
        look = self._look(pods=is_deploy and not self.changed)
        raise_doubt(doubt_about_digests(record, digest_objects(self.digester, look.objects)))
        if is_deploy and not self.changed:
            self._check_services(look)
        return record

    def _look(self, *, pods: bool) -> Look:
        more: list[Key] = [] if self.stack.claim is None else [record_key(self.plan.environment)]
        return take_look(self.stack.target.access, self.plan, more, pods=pods)

    def _check_services(self, look: Look) -> None:
        """Emit the status of each service if all are ready and their ports answer; else it is a :class:`Doubt`."""
        statuses = look.statuses(self.plan.services)
        for name, status in statuses.items():
            if not status.is_done or status.outdated:
                raise Doubt(f"{name}: {status.message}")
        pods = {name: status.pods[0] for name, status in statuses.items() if status.pods}
        routed = endpoint_ports(self.plan, pods.keys())
        asked = [(pods[service.name], port) for service, ports in routed for port in ports]
        for pod, port in find_silent_ports(self.stack.target.access, self.plan.namespace, asked):
            raise Doubt(f"nothing listens on port {port} of pod {pod}")
        monitor = Monitor(plan=self.plan, on_progress=self.stack.on_progress, chosen=frozenset(statuses))
        monitor.emit_unchanged(statuses)

    # a run

    def find_parts(self, plan: Plan) -> ChangedParts | None:
        """Return the parts of the plan that a run is about; none if it is about all. The lock of the stack is held."""
        if self.last is None or self.last.state != self._find_digest():
            return None
        parts = find_parts(plan, self.changed)
        logger.debug("Pulumi is given %d of %d services", len(parts.needed.services), len(plan.services))
        return parts

    def _find_digest(self) -> str:
        try:
            return _digest_state(self.stack)
        except Doubt:
            return ""

    def complete(self, counts: Mapping[str, int], parts: ChangedParts | None) -> dict[str, int]:
        """Return the counts of a run as if it were about all."""
        return dict(counts) if parts is None or self.last is None else complete_counts(counts, self.last.resources)

    # after a run

    def keep(self, counts: Mapping[str, int], *, has_changes: bool) -> None:
        """Write the record of a run that ended well, under its lock. Without one, the next run asks Pulumi."""
        try:
            self._keep(counts, has_changes=has_changes)
        except (Doubt, ApiError, OSError) as doubt:
            logger.debug("the next run has to ask Pulumi too: %s", doubt)

    def _keep(self, counts: Mapping[str, int], *, has_changes: bool) -> None:
        if not self.inputs or self.stack.is_interrupted:
            return
        if has_changes:
            raise_doubt(doubt_about_changes_since(self.began_ns, self.plan.images))
        raise_doubt(doubt_about_state(self.stack.state, has_changes=has_changes))
        look = self._look(pods=False)
        if self.stack.claim is not None:
            known = recorded_project(look.objects.get(record_key(self.plan.environment)))
            if known is None or known.key != self.stack.claim.project.key:
                raise Doubt("the namespace has no record of the project")
        raise_doubt(doubt_about_objects(self.plan, LiveState(object_metadata=look.objects)))
        record = Record(
            inputs=self.inputs,
            parts=self.parts,
            state=_digest_state(self.stack),
            objects=digest_objects(self.digester, look.objects),
            resources=unchanged_resources(counts),
        )
        write_private(self.stack.workspace.record_file, record.to_text())


def run_if_needed(
    stack: Stack,
    plan: Plan,
    options: DeployOptions,
    what: str,
    run: Callable[[Stack, Api, Plan, DeployOptions, NoChangeCheck], Outcome],
) -> Outcome:
    """Return the outcome of a run of Pulumi, or the same one without Pulumi if nothing has changed."""
    started = time.monotonic()
    with stack.interrupts:
        no_change = NoChangeCheck.begin(stack, plan, options)
        outcome = no_change.find_unchanged(what)
        if outcome is None:
            pulumi_runs.prepare(stack, plan, may_build=options.build is not False)
            with stack.lock(what), Api(stack.target.access) as api:
                outcome = run(stack, api, plan, options, no_change)
    outcome.seconds = time.monotonic() - started
    return outcome


def digest_inputs(stack: Stack, plan: Plan, options: DeployOptions, digester: Digester) -> dict[str, str]:
    """Return the digests of all inputs of a run, or raise a :class:`Doubt` if they can't be known at once."""
    if not Variables.from_layers(stack.variables, {}, {}).flag(SWITCH, default=True):
        raise Doubt(f"{SWITCH} is false")
    if stack.workspace.state_file is None:
        raise Doubt("the backend keeps the state elsewhere")
    raise_doubt(doubt_about_options(options))
    raise_doubt(doubt_about_flags(stack.variables))
    raise_doubt(doubt_about_plan(plan))
    try:
        inputs = gather_inputs(stack, plan)
    except OSError as error:
        raise Doubt(f"'{error.filename}' can't be read: {error.strerror}") from error
    return {name: digester.digest(value) for name, value in inputs.items()}


def doubt_about_changes_since(began_ns: int, images: Sequence[ImageBuild]) -> str:
    """Why an image may have other files than those that were read before a run: one has changed during it."""
    return "files of a build have changed during the run" if last_change(images) > began_ns - _CLOCK_STEP_NS else ""


def raise_doubt(reason: str) -> None:
    """Raise a :class:`Doubt` if there is a reason for one."""
    if reason:
        raise Doubt(reason)


def make_digester(stack: Stack) -> Digester:
    """Return a digester whose key is of this stack, from a secret that only this user can read; else no record fits."""
    workspace = stack.workspace
    try:
        secret = workspace.data_folder.passphrase.read_bytes()
    except OSError:
        secret = secrets.token_bytes()
    return Digester(hmac.digest(secret, f"no change: {workspace.folder}".encode(), "sha256"))


def read_record(stack: Stack, path: Path) -> Record:
    """Read the record of a run that ended well, or raise a :class:`Doubt`."""
    if (stack.workspace.folder / "running.json").exists():
        raise Doubt("processes of a run that was killed may be left")
    try:
        record = Record.from_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        record = None
    if record is None:
        raise Doubt("there is no record of a run that ended well")
    return record


def _digest_state(stack: Stack) -> str:
    """The digest of the state's file, which each run of Pulumi rewrites, on this machine or another."""
    path, name = stack.workspace.state_file, f"{stack.environment_name}/{stack.namespace}"
    if path is None or any((path.parents[2] / "locks").glob(f"*/{name}/*.json")):
        raise Doubt("another run of Pulumi holds the lock of the state, or was killed")
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise Doubt("there is no state") from error
