"""The commands of ``platform``, each loaded from its own module when it is asked for.

Owns which module has which command, and the help that lists them all.
Must not import those modules: each imports what its command runs, and a start pays for one command alone. The summaries
of the listing are those that ``make docs`` writes into ``grammar.json`` from the commands. Lines that ask for help are
answered from ``help_pages.json``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Annotated, Any

import typer
import typer.main

from composeplat import __version__
from composeplat.cli.arguments import App, usage_explained
from composeplat.cli.completion import read_grammar
from composeplat.cli.compose_commands import message_for, message_for_option_before
from composeplat.cli.help_pages import HELP_OPTIONS, page_for, write_page
from composeplat.cli.help_text import SECTIONS, Guide, Guided

#: Commands that are not in the module of their own name.
_MODULES = {
    "bug-report": "bug_report",
    "completion": "scripts",
    "down": "up",
    "import": "import_objects",
    "open": "endpoints",
    "wake": "sleep",
}
#: Other names, which are not listed -> their modules.
_HIDDEN = {"ps": "status"}
MODULES: Mapping[str, str] = {
    **{name: _MODULES.get(name, name) for names in SECTIONS.values() for name in names},
    **_HIDDEN,
}


def load_app(name: str) -> App:
    """Import the module of a command."""
    app: App = importlib.import_module(f"composeplat.cli.{MODULES[name]}").app
    return app


class _Commands(MutableMapping[str, Any]):
    """The commands by name; each is made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            group: Any = typer.main.get_group(load_app(name))
            self._made[name] = group if group.name == name else group.commands[name]
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]


class Commands(Guided):
    """All commands, listed under what they are for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], HELP_OPTIONS[-1]]
        page = page_for(args)
        if page:
            typer.echo(write_page(page, ctx.make_formatter()))
            ctx.exit()
        with usage_explained(ctx, message_for_option_before):
            return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- as the library calls it
        return self.commands[cmd_name] if cmd_name in MODULES else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        message = message_for(args[0])
        if message:
            ctx.fail(message)
        return super().resolve_command(ctx, args)

    def list_commands(self, _: Any) -> list[str]:
        return [name for name in MODULES if name not in _HIDDEN]

    def format_commands(self, _: Any, formatter: Any) -> None:
        grammar = read_grammar()
        for title, names in SECTIONS.items():
            summaries = {name: grammar.get(f"platform {name}", {}).get("help", "") for name in names}
            self.write_section(formatter, title, summaries)


app = App(
    "platform",
    guide=Guide(
        {
            "Print the Kubernetes objects of the Compose file in this folder": "platform render",
            "Run it on a cluster of this machine (Linux, as root)": "platform deploy --local",
            "Run it on the cluster that kubectl uses": "platform deploy --domain apps.example.com",
        },
        "tutorial.md",
    ),
    cls=Commands,
    help="Run a Docker Compose file on Kubernetes through Pulumi.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": list(HELP_OPTIONS), "max_content_width": 100},
)


def load_guides() -> dict[str, Guide]:
    """Return the guides of all commands, by their names; it imports all modules."""
    apps = [load_app(name) for name in MODULES]
    return {name: guide for group in (app, *apps) for name, guide in group.guides.items()}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def platform(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run a Docker Compose file on Kubernetes through Pulumi."""
