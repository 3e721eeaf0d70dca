"""Take over the objects that others have made for the services of a plan, then deploy it.

Owns the order: find the objects, preview, label them, deploy while workloads are handed over, delete what is left.
"""

from __future__ import annotations

import time

from composeplat.cluster.api import Api
from composeplat.diagnostics import Report
from composeplat.engine import pulumi_runs
from composeplat.engine.adoption import Action, Adoption, LiveObjects, decide
from composeplat.engine.adoption_look import read_live_objects
from composeplat.engine.adoption_steps import AdoptionSteps
from composeplat.engine.operations.deploy import deploy
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import Key
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.system.records import record


@record
class Found:
    """The live objects, and the decision on each."""

    live: LiveObjects
    entries: tuple[Adoption, ...]

    @property
    def taken(self) -> list[Adoption]:
        """The objects that would change."""
        return [entry for entry in self.entries if entry.action in (Action.ADOPT, Action.HAND_OVER, Action.FOLLOW)]

    def is_begun(self, environment: str) -> bool:
        """Whether the environment has objects already: an earlier run may have stopped half way."""
        return bool(self.live.state.ours(environment))


def find_objects(stack: Stack, plan: Plan) -> Found:
    """Look at the namespace, and decide on its objects. Changes nothing."""
    with Api(stack.target.access) as api:
        stack.check_project("import", api)
        live = read_live_objects(api, plan)
        return Found(live, tuple(decide(plan, live)))


def report_refusals(stack: Stack, found: Found) -> Report:
    """Report the objects that can't be taken over, each at the part of the file that it is for."""
    report = Report()
    for entry in found.entries:
        if entry.action is Action.REFUSE and stack.origins is not None:
            where, name = stack.origins.at(*entry.path), ".".join(str(step) for step in entry.path)
            message = f"{name} can't take over {entry.kind} '{entry.name}', which {entry.reason}"
            report.add("import-conflict", where, entry.path, message, entry.hint)
    return report


def replaced_workloads(found: Found) -> frozenset[Key]:
    """Return the workloads whose names the deploy needs."""
    taken = (entry for entry in found.entries if entry.action is Action.HAND_OVER)
    return frozenset(entry.key for entry in taken if entry.key == entry.successor)


def import_objects(stack: Stack, plan: Plan, found: Found, options: DeployOptions) -> Outcome:
    """Take over the objects that were found, and deploy the plan."""
    started = time.monotonic()
    steps = AdoptionSteps(
        access=stack.target.access, plan=plan, live=found.live, entries=found.entries, interrupts=stack.interrupts
    )
    with stack.interrupts, Api(stack.target.access) as api:
        pulumi_runs.prepare(stack, plan)
        with stack.lock("import"):
            steps.rehearse(api)
            stack.stop_if_interrupted()
            steps.mark(api)
        stack.stop_if_interrupted("labeled objects stay as they are; 'platform import' continues from there")
    stack.before_create = steps.hand_over
    is_done = False
    try:
        outcome = deploy(stack, plan, options)
        is_done = not (outcome.failures or outcome.is_refused)
    finally:
        with Api(stack.target.access) as api:
            if not is_done:
                for name in steps.restore(api):
                    stack.note(f"{name} is scaled up again: nothing took its place")
    with Api(stack.target.access) as api:
        outcome.removed += steps.finish(api) if is_done else []
    outcome.seconds = time.monotonic() - started
    return outcome
