"""Refresh the state from the cluster."""

from __future__ import annotations

import time

from composeplat.engine import pulumi_runs
from composeplat.engine.dev_workloads import workloads_without_pods
from composeplat.engine.outcomes import Outcome
from composeplat.engine.pulumi_args import repeat_flag
from composeplat.engine.stack import Stack


def refresh(stack: Stack, *, preview_only: bool) -> Outcome:
    """Update the state from the cluster; the outcome has the drift."""
    started = time.monotonic()
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        with stack.lock("refresh --preview" if preview_only else "refresh"):
            stack.check_project("refresh")
            if not stack.state.get("resources"):
                raise stack.not_deployed_error()
            stack.workspace.make_stack()
            stack.mend_state()
            stack.check_cluster()
            mode = ["--preview-only"] if preview_only else ["--yes", "--skip-preview"]
            events, result = pulumi_runs.run(
                stack, ["refresh", *mode, "--stack", stack.namespace, *pulumi_runs.NO_PROGRAM_ARGS]
            )
            stack.stop_if_interrupted()
            if result.status:
                raise pulumi_runs.run_error(result, events)
    return Outcome(changes=events.drifted, counts=events.count_operations(), seconds=time.monotonic() - started)


def refresh_replicas(stack: Stack, *services: str) -> None:
    """Refresh workloads that have pods again, if the state has them without pods."""
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        with stack.lock("down"):
            urns = workloads_without_pods(stack.state, services)
            if not urns:
                return
            stack.workspace.make_stack()
            stack.check_cluster()
            args = ["refresh", "--yes", "--skip-preview", "--stack", stack.namespace, *pulumi_runs.NO_PROGRAM_ARGS]
            events, result = pulumi_runs.run(stack, [*args, *repeat_flag("--target", urns.values())])
    stack.stop_if_interrupted()
    if result.status:
        raise pulumi_runs.run_error(result, events)
