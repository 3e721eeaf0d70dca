"""``platform deploy``: deploy the Compose file to the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.built_users import BuiltUsers
from composeplat.cli.console import write_unmasked
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import (
    Planned,
    failure_summary,
    outcome_document,
    plan_for,
    report_deploy,
    show_document,
    show_failures,
    show_refusal,
    stack_for,
)
from composeplat.cli.policies import pulumi_variables, show_violations, violation_rows
from composeplat.cli.preview import change_rows
from composeplat.cli.selection import OF_PULUMI, PLANNING, READING, WORKING, Choice, with_choice
from composeplat.diagnostics import Exit, printable
from composeplat.engine.events import Change, Operation
from composeplat.engine.operations import deploy as operation
from composeplat.engine.outcomes import DeployOptions, Outcome, Refused
from composeplat.plan import Plan
from composeplat.plan.providers import provided_key
from composeplat.plan.resource_keys import ResourceKind

app = App()


def run(choice: Choice, options: DeployOptions, *, as_json: bool) -> Exit:
    planned = plan_for(choice, start=True)
    if planned is None:
        return Exit.INVALID
    return deploy(planned, choice, options, as_json=as_json)


def deploy(planned: Planned, choice: Choice, options: DeployOptions, *, as_json: bool) -> Exit:
    """Deploy a definition that is already read and planned."""
    try:
        with progress.work(f"deploying {planned.where}"):
            report_deploy(planned, options.services, builds=options.build is not False)
            users = BuiltUsers.find(planned, options.services)
            outcome = users.build(options)
            if not outcome.failures:
                complete = users.make_plan(choice, outcome.images)
                if complete is None:
                    return Exit.INVALID
                planned = complete
                outcome = operation.deploy(stack_for(planned, pulumi_variables(choice)), planned.plan, options)
    except Refused as refused:
        return show_refusal(refused, as_json=choice.json_diagnostics)
    show_document(_result(outcome, planned), as_json=as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    if show_violations(outcome, planned, as_json=choice.json_diagnostics):
        progress.conclude(f"a policy refuses {planned.where}; nothing was changed")
        return Exit.FAILED
    if outcome.failures:
        progress.conclude(f"{failure_summary(outcome)}; the state has the other changes")
        return Exit.FAILED
    progress.conclude(_summary(outcome, planned.where))
    for name in left_providers(outcome.changes, planned.plan):
        progress.conclude(f"{_LEFT_PROVIDER} --project-name={planned.plan.environment} down {printable(name)}")
    if not as_json:
        # Addresses are public, and a masked address is useless.
        write_unmasked("".join(f"{printable(url)}\n" for url in outcome.urls))
    return Exit.DONE


#: The program is not known any more.
_LEFT_PROVIDER = "a provider is not in the file any more, and what it made stays; to release it: PROGRAM compose"


def left_providers(changes: Iterable[Change], plan: Plan) -> list[str]:
    """Return the services that left the file and were given by a provider."""
    declared = {provided_key(name) for name in plan.providers}
    return [
        change.key.name
        for change in changes
        if change.operation is Operation.DELETE
        and change.key is not None
        and change.key.kind is ResourceKind.PROVIDED
        and change.key not in declared
    ]


def _result(outcome: Outcome, planned: Planned) -> dict[str, object]:
    return outcome_document(
        "deploy",
        planned,
        outcome,
        changes=change_rows(outcome.changes, planned.plan),
        kept_volumes=outcome.kept,
        urls=list(outcome.urls),
        policy_violations=violation_rows(outcome, planned.plan),
    )


def _summary(outcome: Outcome, where: str) -> str:
    lines = [f"volume {name} is no longer used; it and its data stay in the cluster" for name in outcome.kept]
    lines += [f"removed {name}, which the file does not have" for name in outcome.removed]
    changes = count_changes(outcome)
    lines.append(f"deployed {where}: {changes}, {outcome.seconds:.1f} s")
    return "\n".join(lines)


def count_changes(outcome: Outcome) -> str:
    """Count the changes; a claim that leaves the state and stays in the cluster is not deleted."""
    kept = sum(change.kept for change in outcome.changes)
    counts = {**outcome.counts, "delete": outcome.counts.get("delete", 0) - kept}
    named = (("create", "created"), ("update", "updated"), ("replace", "replaced"), ("delete", "deleted"))
    return ", ".join(f"{counts[key]} {word}" for key, word in named if counts.get(key)) or "nothing changed"


@app.command(
    "deploy",
    guide=Guide(
        {
            "To the cluster that kubectl uses": "platform deploy --domain apps.example.com",
            "To a cluster of this machine, started if need be": "platform deploy --local",
            "One service and its dependencies, with a new build": "platform deploy web --build",
        },
        "deploying.md",
    ),
)
@with_choice(*PLANNING, "allow_providers", "builder", "pull_secret", "timeout", *OF_PULUMI, *READING, *WORKING)
def deploy_command(
    choice: Choice,
    services: opt.Services = None,
    build: Annotated[
        bool | None,
        typer.Option(
            "--build/--no-build", show_default=False, help="Build all images, or none; default: those that changed."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the objects and change nothing.")] = False,
    rerun_jobs: opt.RerunJobs = False,
    refresh_first: Annotated[
        bool, typer.Option("--refresh", help="First update the state with the changes of others.")
    ] = False,
    replace_volume: opt.ReplaceVolumes = None,
    take_over: opt.TakeOver = False,
    safe_checkpoints: Annotated[
        bool, typer.Option("--safe-checkpoints", help="Write the state after every step.")
    ] = False,
    as_json: opt.Json = False,
) -> int:
    """Deploy the Compose file to the cluster, and print the addresses."""
    if dry_run:
        if choice.policy_pack:
            raise typer.BadParameter("is not checked by --dry-run: platform preview does", param_hint="--policy-pack")
        from composeplat.cli.render import run as render_run

        return render_run(choice, folder="", as_json=as_json, services=services or ())

    options = DeployOptions(
        services=tuple(services or ()),
        wait=wait,
        timeout=choice.timeout,
        rerun_jobs=rerun_jobs,
        refresh=refresh_first,
        replaced_volumes=tuple(replace_volume or ()),
        take_over=take_over,
        safe_checkpoints=safe_checkpoints,
        build=build,
    )
    return run(choice, options, as_json=as_json)
