"""Preview: what a deploy would change, with nothing changed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from composeplat.cluster.api import Api, kind_path
from composeplat.engine import runs
from composeplat.engine.checks import check
from composeplat.engine.outcomes import Options, Outcome
from composeplat.engine.preflight import Present, missing_from_cluster, rename_replaced, volumes_to_replace
from composeplat.engine.sleeping import services_of, sleepers_in
from composeplat.engine.stack import Stack
from composeplat.engine.twins import held_back_in, hold_back, twins_by_service
from composeplat.engine.words import words_for
from composeplat.plan.desired import Plan


def preview(stack: Stack, plan: Plan, options: Options) -> Outcome:
    started = time.monotonic()
    plan.chosen(options.services)
    with stack.interrupts:
        runs.prepare(stack, plan)
        with stack.held("preview"), Api(stack.target.access) as api:
            present = check(stack, api, plan, options)
            stack.space.make_stack()
            stack.check_cluster()
            replaced = volumes_to_replace(plan, present, options.replaced_volumes)
            losing = [name for name, has_to_be in replaced.items() if has_to_be]
            words = ["preview", *words_for(plan, stack.state, present, options)]
            if missing_from_cluster(stack.state, present):
                words.append("--refresh")
            twins = twins_by_service(present.heads, plan.environment)
            shown = as_shown(api, hold_back(plan, held_back_in(stack.state, twins)), losing)
            events, ended = runs.run_program(stack, shown, words, plan.chosen(options.services))
    stack.stop_if_interrupted()
    if ended.status:
        raise runs.failed(ended, events)
    return Outcome(
        changes=events.changing, counts=events.counted(), kept=events.kept, notes=list(_notes(plan, present, losing)),
        urls=stack.target.urls_of(plan), seconds=time.monotonic() - started,
    )  # fmt: skip


def as_shown(api: Api, plan: Plan, losing: Collection[str]) -> Plan:
    """The plan that a preview can be shown of: what is made anew has another name in it."""
    live = api.items(kind_path("v1", "Service", plan.namespace))
    return rename_replaced(plan, live, losing)


def _notes(plan: Plan, present: Present, losing: Iterable[str]) -> Iterable[str]:
    for volume in losing:
        users = ", ".join(one.name for one in plan.users_of(volume)) or "no service"
        yield f"volume {volume} is made anew and all it holds deleted; {users} is made anew with it"
    asleep = services_of(plan, sleepers_in(present, plan.environment).keys())
    if asleep:
        yield f"asleep: {', '.join(asleep.values())}; a deploy wakes them, and so does 'platform wake'"
