"""``platform config``: the resolved definition, or one view of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import show_report, table, to_json, write_unmasked
from composeplat.cli.definition_report import show_definition_report
from composeplat.cli.help_text import Guide
from composeplat.cli.image_users import look_up_users
from composeplat.cli.selection import READING, Choice, request_for, with_choice
from composeplat.compose.load import Loaded, load, read
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.compose.resolved import limited_definition, plain_definition, resolved_definition, variable_rows
from composeplat.diagnostics import Exit
from composeplat.plan import Plan, make_plan
from composeplat.render.manifests import to_yaml

app = App()


class View(Enum):
    SERVICES = "services"
    IMAGES = "images"
    VOLUMES = "volumes"
    VARIABLES = "variables"
    DEFINITION = "definition"


def run(
    choice: Choice, *, view: View, as_json: bool, substitute: bool, quiet: bool, services: Sequence[str] = ()
) -> Exit:
    request = request_for(choice)
    if substitute:
        loaded = look_up_users(load(request))
        # A definition can be sound before anyone has chosen a domain: that is for render and deploy to say.
        settings = replace(loaded.settings, domain=loaded.settings.domain or UNKNOWN_DOMAIN)
        plan = make_plan(loaded.project, settings, loaded.origins, loaded.report)
        content = _content(loaded, plan, view, services)
        failed = show_definition_report(loaded, plan, choice)
    else:
        reading = read(request, substitute=False)
        content = _plain_content(plain_definition(reading.document), view)
        failed = show_report(
            reading.report, strict=choice.strict, verbose=choice.verbose, as_json=choice.json_diagnostics
        )
    if failed:
        return Exit.INVALID
    if not quiet:
        write_unmasked(_text(content, view, as_json=as_json))
    return Exit.DONE


def _content(loaded: Loaded, plan: Plan, view: View, names: Sequence[str]) -> Any:
    if loaded.report.errors:
        return None
    plan = plan.limited_to(names) if names else plan
    match view:
        case View.SERVICES:
            return [service.name for service in plan.services]
        case View.IMAGES:
            return list(dict.fromkeys(str(service.image) for service in plan.services))
        case View.VOLUMES:
            return [volume.name for volume in plan.volumes]
        case View.VARIABLES:
            return variable_rows(loaded.references)
        case View.DEFINITION if names:
            chosen = [service.name for service in plan.services]
            used = [provider for name in chosen for provider in loaded.project.services[name].provided]
            return limited_definition(loaded, (*chosen, *used))
        case View.DEFINITION:
            return resolved_definition(loaded)


def _plain_content(definition: Any, view: View) -> Any:
    """Return the definition without substitution, or the names of its services: keys are never substituted."""
    if view is View.DEFINITION:
        return definition
    services = definition.get("services") if isinstance(definition, dict) else None
    return list(services) if isinstance(services, dict) else []


def _text(content: Any, view: View, *, as_json: bool) -> str:
    if as_json:
        return to_json(content)
    if view is View.DEFINITION:
        return to_yaml(content)
    if view is View.VARIABLES:
        return table([("NAME", "VALUE", "FROM"), *((r["name"], r["value"] or "", r["from"]) for r in content)])
    return "".join(f"{line}\n" for line in content)


@app.command(
    "config",
    guide=Guide(
        {
            "Only check the file, and treat warnings as errors": "platform config --quiet --strict",
            "Some services, and what they depend on": "platform config web",
            "Where each variable's value comes from": "platform config --variables",
        },
        "compose-file.md",
    ),
)
@with_choice("domain", "registry", *READING, cluster=False)
def config_command(
    choice: Choice,
    services: opt.Services = None,
    form: Annotated[str, typer.Option("--format", metavar="yaml|json", help="Form of the output.")] = "yaml",
    no_interpolate: Annotated[bool, typer.Option("--no-interpolate", help="Leave variables as they are.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but messages.")] = False,
    list_services: Annotated[bool, typer.Option("--services", help="Print the names of the services.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Print the images.")] = False,
    volumes: Annotated[bool, typer.Option("--volumes", help="Print the names of the volumes.")] = False,
    variables: Annotated[
        bool, typer.Option("--variables", help="Print each variable, its value and where that came from.")
    ] = False,
) -> int:
    """Check a Compose file, and print it with files merged and variables substituted."""
    if form not in ("yaml", "json"):
        raise typer.BadParameter("must be yaml or json", param_hint="--format")
    chosen = [view for view, wanted in zip(View, (list_services, images, volumes, variables), strict=False) if wanted]
    if len(chosen) > 1:
        raise typer.BadParameter("give only one of --services, --images, --volumes and --variables")
    if services and no_interpolate:
        raise typer.BadParameter("can't be given with --no-interpolate", param_hint="SERVICE")
    view = chosen[0] if chosen else View.DEFINITION
    if no_interpolate and view not in (View.DEFINITION, View.SERVICES):
        raise typer.BadParameter("can't be given with --no-interpolate", param_hint=f"--{view.value}")
    return run(
        choice,
        view=view,
        as_json=form == "json",
        substitute=not no_interpolate,
        quiet=quiet,
        services=services or (),
    )
