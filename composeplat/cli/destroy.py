"""``platform destroy``: take an environment down, and say what stays."""

from __future__ import annotations

import sys

import typer

from composeplat.cli.choice import Choice
from composeplat.cli.console import show_result, tell
from composeplat.cli.operating import operator_for, plan_for, to_json
from composeplat.cli.progress import Screen
from composeplat.diagnostics import ComposeplatError, Exit


def run(choice: Choice, *, volumes: bool, yes: bool, wait: bool, as_json: bool) -> Exit:
    planned = plan_for(choice, start=False, needs_domain=False)
    if planned is None:
        return Exit.INVALID
    plan = planned.plan
    where = f"{plan.environment} in namespace {plan.namespace}"
    if volumes and not yes:
        _confirm(plan.environment, where)
    with Screen(as_json=False, quiet=as_json) as screen:
        outcome = operator_for(planned, screen).destroy(volumes=volumes, wait=wait)
    deleted = len([c for c in outcome.changes if not c.kept and c.kind != "Image"]) + len(outcome.removed)
    if as_json:
        show_result(to_json({
            "environment": plan.environment, "namespace": plan.namespace, "kept_volumes": outcome.kept,
            "deleted": deleted, "seconds": round(outcome.seconds, 1),
        }))  # fmt: skip
        return Exit.DONE
    tell(f"destroyed {where}: {deleted} objects deleted, {outcome.seconds:.1f} s\n")
    for name in outcome.kept:
        tell(f"volume {name} and its data stay; the next deploy takes them up, --volumes deletes them\n")
    return Exit.DONE


def _confirm(name: str, where: str) -> None:
    """To delete data takes the environment's name, typed, or ``--yes``."""
    if not sys.stdin.isatty():
        raise ComposeplatError(
            f"--volumes deletes all data of {where}, and there is no terminal to confirm that on", "give --yes too"
        )
    typed = typer.prompt(f"This deletes all data of {where}. Type the environment's name to go on", err=True)
    if typed.strip() != name:
        raise ComposeplatError("that is not the environment's name: nothing was changed")
