"""Runs of Pulumi on a stack, with a program of this process or with none.

Owns that a run goes on where it broke off: what came in between, a dead process's lock or a cluster that did not
answer, passes by itself.
What is made of its events is whoever's who asks for it.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.events import KEEP, Events
from composeplat.engine.own_processes import is_locked_out
from composeplat.engine.pulumi_process import Ended
from composeplat.engine.stack import Stack
from composeplat.engine.workspace import broke_off, explain, is_refused
from composeplat.plan.desired import Plan

#: So often Pulumi is run where something comes in between that passes by itself.
_MOST_RUNS = 10
#: So often it is run again where a credential had ended before it was said to.
_MOST_REFUSALS = 3
#: For operations that no program is needed for.
WITHOUT_PROGRAM = ("--exec-kind", "auto.local")
#: For operations that go on with the rest where a part fails.
WITHOUT_ASKING = ("--yes", "--skip-preview", "--continue-on-error")
#: Of more objects than these, Pulumi's state is written once, at the end: after each step it would be most of the time.
_MOST_CHECKPOINTED = 40
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RunHandlers:
    """Who hears of a run: of each object that Pulumi tells of, and now and then of nothing."""

    take: Callable[[str, Events], None] = lambda _urn, _events: None
    tick: Callable[[], None] = lambda: None


_NOBODY = RunHandlers()


def prepare(stack: Stack, plan: Plan) -> None:
    """Put in place what a run with the plan's program needs."""
    threading.Thread(target=_load_ahead, args=(plan,), daemon=True).start()
    builds = bool(plan.images)
    if builds:
        stack.workspace.builder = builder_variables(stack.variables, stack.target, stack.workspace.data_folder)
    stack.workspace.prepare(builds=builds)


def _load_ahead(plan: Plan) -> None:
    """Import what the program will use, while the cluster and the command line are waited for."""
    from composeplat.components import program  # noqa: F401, PLC0415 -- loads Pulumi
    from composeplat.components.resource_types import load_classes  # noqa: PLC0415 -- the same

    load_classes({(str(desired.manifest["apiVersion"]), desired.kind) for desired in plan.objects})


def checkpoints(objects: float) -> Mapping[str, str]:
    """The variables that say how often the state of so many objects is written."""
    return NOTHING if objects <= _MOST_CHECKPOINTED else {"PULUMI_SKIP_CHECKPOINTS": "true"}


def run_program(
    stack: Stack,
    plan: Plan,
    words: list[str],
    building: Collection[str],
    *,
    gate: Any = None,
    listening: RunHandlers = _NOBODY,
    more: Mapping[str, str] = NOTHING,
) -> tuple[Events, Ended]:
    """Run the plan's program under Pulumi; of its images, those of the services named are what all else waits for."""
    from composeplat.components.program import declare  # noqa: PLC0415 -- loads Pulumi
    from composeplat.engine.inline_program import serve  # noqa: PLC0415 -- the same

    def program() -> None:
        declare(
            plan,
            cluster=stack.workspace.cluster,
            gate=gate,
            builder=stack.workspace.builder.get(BUILDER, ""),
            building=building,
        )

    with serve(program) as address:
        return run(stack, [*words, f"--client={address}", "--exec-kind", "auto.inline"], listening, more)


def run(
    stack: Stack, words: list[str], listening: RunHandlers = _NOBODY, more: Mapping[str, str] = NOTHING
) -> tuple[Events, Ended]:
    """Run an operation, and go on with it where what came in between has passed."""
    events = Events()

    def on_event(event: dict[str, Any]) -> None:
        urn = events.take(event)
        if urn:
            listening.take(urn, events)

    def on_tick() -> None:
        stack.health.check()
        listening.tick()

    for number in range(_MOST_RUNS):
        before, events = events, Events()
        ended = stack.workspace.follow(words, on_event, on_tick, more)
        _add_done(events, before)
        if not ended.status or stack.is_interrupted or not _has_passed(stack, events, ended, number):
            break
    return events, ended


def failed(ended: Ended, events: Events) -> ComposeplatError:
    """Say why a run as a whole has failed."""
    texts = _texts(events)
    return explain("\n".join(texts) if texts and not is_locked_out(ended.output) else ended.output)


def _has_passed(stack: Stack, events: Events, ended: Ended, number: int) -> bool:
    """Say whether what was in the way is so no more: a dead process's lock, a credential, a cluster that broke off."""
    if is_locked_out(ended.output):
        if stack.workspace.unlock(ended.output):
            stack.note("broke the lock of a process that is gone")
            return True
        return False
    text = "\n".join([ended.output, *_texts(events)])
    if is_refused(text) and number < _MOST_REFUSALS and _is_let_in(stack):
        stack.note("the cluster refused a credential that had ended; going on with another one")
        return True
    if not broke_off(text):
        return False
    stack.note("the cluster broke off; going on once it answers")
    stack.health.mark_silent()
    while stack.health.silence and not stack.is_interrupted:
        stack.health.check()
        stack.pause()
    return True


def _is_let_in(stack: Stack) -> bool:
    """Say whether the cluster accepts the credentials that there are now."""
    with Api(stack.target.access) as api:
        try:
            api.get(f"/api/v1/namespaces/{stack.namespace}")
        except ApiError as error:
            return error.status not in (0, http.client.UNAUTHORIZED)
    return True


def _texts(events: Events) -> list[str]:
    return [text for texts in events.messages.values() for text in texts]


def _add_done(events: Events, before: Events) -> None:
    """Count what the run before did as well: this one finds it done."""
    for urn, change in before.changes.items():
        known = events.changes.get(urn)
        if urn in before.done and change.operation != KEEP and (known is None or known.operation == KEEP):
            events.changes[urn] = change
            events.done.add(urn)
