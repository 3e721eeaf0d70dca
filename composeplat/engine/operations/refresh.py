"""Refresh: the cluster read into the state."""

from __future__ import annotations

import time

from composeplat.engine import pulumi_runs
from composeplat.engine.dev_workloads import workloads_without_pods
from composeplat.engine.outcomes import Outcome
from composeplat.engine.pulumi_args import repeat_flag
from composeplat.engine.stack import Stack


def refresh(stack: Stack, *, preview_only: bool) -> Outcome:
    """Read all of the cluster into the state; the outcome has what was found to be otherwise."""
    started = time.monotonic()
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        with stack.held("refresh"):
            stack.check_project("refresh")
            if not stack.state.get("resources"):
                raise stack.not_deployed()
            stack.workspace.make_stack()
            stack.workspace.drop_pending(stack.state)
            stack.check_cluster()
            mode = ["--preview-only"] if preview_only else ["--yes", "--skip-preview"]
            events, ended = pulumi_runs.run(
                stack, ["refresh", *mode, "--stack", stack.namespace, *pulumi_runs.WITHOUT_PROGRAM]
            )
    stack.stop_if_interrupted()
    if ended.status:
        raise pulumi_runs.failed(ended, events)
    return Outcome(changes=events.drifted, counts=events.counted(), seconds=time.monotonic() - started)


def refresh_replicas(stack: Stack, *services: str) -> None:
    """Where the state has no pods for services that have theirs back, read anew how many there are."""
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        with stack.held("down"):
            urns = workloads_without_pods(stack.state, services)
            if not urns:
                return
            stack.workspace.make_stack()
            stack.check_cluster()
            words = ["refresh", "--yes", "--skip-preview", "--stack", stack.namespace, *pulumi_runs.WITHOUT_PROGRAM]
            events, ended = pulumi_runs.run(stack, [*words, *repeat_flag("--target", urns.values())])
    stack.stop_if_interrupted()
    if ended.status:
        raise pulumi_runs.failed(ended, events)
