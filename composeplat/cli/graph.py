"""``platform graph``: the services and what ties them together, as a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from composeplat.cli.arguments import App
from composeplat.cli.console import show_report, write_unmasked
from composeplat.cli.help_text import Guide
from composeplat.cli.image_users import look_up_users
from composeplat.cli.selection import PLANNING, READING, Choice, request_for, with_choice
from composeplat.compose.load import load
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.diagnostics import Exit
from composeplat.plan import make_plan
from composeplat.plan.service_graph import Graph, make_graph
from composeplat.render.graph_svg import render_svg
from composeplat.render.graph_text import render_dot, render_mermaid

app = App()


class Format(StrEnum):
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


_RENDERERS: Mapping[Format, Callable[[Graph], str]] = {
    Format.MERMAID: render_mermaid,
    Format.DOT: render_dot,
    Format.SVG: render_svg,
}


def run(choice: Choice, *, form: Format, services: Sequence[str]) -> Exit:
    """Print nothing of an invalid definition, as ``render``."""
    loaded = look_up_users(load(request_for(choice)))
    settings = replace(loaded.settings, domain=loaded.settings.domain or UNKNOWN_DOMAIN)
    plan = make_plan(loaded.project, settings, loaded.origins, loaded.report)
    failed = show_report(loaded.report, strict=choice.strict, verbose=choice.verbose, as_json=choice.json_diagnostics)
    if failed:
        return Exit.INVALID
    graph = make_graph(loaded.project, plan.limited_to(services), with_urls=bool(loaded.settings.domain))
    write_unmasked(_RENDERERS[form](graph))
    return Exit.DONE


@app.command(
    "graph",
    guide=Guide(
        {
            "A picture for a browser": "platform graph --format svg > services.svg",
            "One service and what it needs": "platform graph web",
        },
        "living.md",
    ),
)
@with_choice(*PLANNING, *READING, cluster=False)
def graph_command(
    choice: Choice,
    services: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these services, and what they need.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Notation of the graph.")] = Format.MERMAID,
) -> int:
    """Print the services, and what ties them together, as a graph. Needs no cluster, and changes nothing."""
    return run(choice, form=form, services=services or ())
