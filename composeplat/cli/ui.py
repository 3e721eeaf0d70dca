"""``platform ui``: a page that shows the environment in a browser, or the same page as files.

Owns the options, what an export has, and the message of a missing extra.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App
from composeplat.cli.console import write_unmasked
from composeplat.cli.endpoints import has_display
from composeplat.cli.environment_view import view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.selection import OF_PULUMI, PLANNING, READING, Choice, with_choice
from composeplat.cluster.kubeconfig import read_kubeconfig
from composeplat.diagnostics import Exit, MissingPiece
from composeplat.engine.backend import find_data_folder
from composeplat.engine.target import find_target
from composeplat.system.files import is_shell_pipe

if TYPE_CHECKING:
    from composeplat.ui.site import Site

app = App()

_PACKAGES = ("starlette", "uvicorn")


def run(choice: Choice, *, port: int, read_only: bool, opens: bool) -> Exit:
    """Serve the page of the environment here."""
    _check_packages()
    view = view_environment(choice, ())
    if view is None:
        return Exit.INVALID
    from composeplat.cli.ui_live import LiveEnvironment

    return _serve(LiveEnvironment(choice, view).site(read_only=read_only), port=port, opens=opens)


def run_for_cluster(choice: Choice, *, port: int, opens: bool) -> Exit:
    """Serve the page of all environments of the cluster; no definition is read."""
    _check_packages()
    from composeplat.cli.ui_cluster import ClusterSite

    target = find_target(os.environ, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local)
    # The error of a cluster that does not answer belongs in the terminal.
    target.identity()
    # Those that are shown if objects of all namespaces may not be listed.
    given = (choice.namespace,) if choice.namespace else ()
    of_contexts = read_kubeconfig(os.environ, choice.kubeconfig).namespaces(choice.context) if not target.layout else ()
    return _serve(ClusterSite(target, (*given, *of_contexts)).site(), port=port, opens=opens)


def _serve(site: Site, *, port: int, opens: bool) -> Exit:
    from composeplat.ui.serving import address_of, gate_of, listen, open_browser, serve, sign_in_file

    data = find_data_folder(os.environ)
    data.prepare()
    with listen(port) as sock:
        gate = gate_of(sock)
        with ended_by_signals(), sign_in_file(data.path / "ui", gate) as path:
            # The address and the code are of no use if they are masked.
            write_unmasked(f"address: {address_of(gate)}\ncode:    {gate.token}\n")
            if opens and has_display(os.environ, sys.platform):
                open_browser(path)
            progress.conclude("Ctrl-C ends the page")
            serve(site, gate, sock)
    return Exit.DONE


def _check_packages() -> None:
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPiece(
            f"the page needs packages that are not installed: {', '.join(missing)}",
            "pip install 'composeplat[ui]'; platform ui --export DIR needs none",
        )


def export(choice: Choice, folder: Path) -> Exit:
    """Write the page with what there is now; what can't be read is left out, and the page says so."""
    from composeplat.cli.ui_export import export_data
    from composeplat.ui.export import write_page

    data = export_data(choice)
    if data is None:
        return Exit.INVALID
    write_page(folder, data)
    progress.conclude(f"wrote {folder / 'index.html'}")
    return Exit.DONE


@app.command(
    "ui",
    guide=Guide(
        {
            "The page of the environment here": "platform ui",
            "All environments of the cluster": "platform ui --all",
            "The page as files, for a pull request": "platform ui --export page",
        },
        "ui.md",
    ),
)
@with_choice(*PLANNING, "allow_providers", "builder", "pull_secret", "timeout", *OF_PULUMI, *READING)
def ui_command(
    choice: Choice,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port on this machine; 0 is any free one.")
    ] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no actions.")] = False,
    all_environments: Annotated[
        bool, typer.Option("--all", help="Show all environments of the cluster; needs no Compose file.")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    export_folder: Annotated[
        str, typer.Option("--export", metavar="DIR", help="Write the page as files instead of serving it.")
    ] = "",
) -> int:
    """Show the environment as a page in a browser, or write the page as files."""
    if "-" in (choice.file or ()):
        raise typer.BadParameter("can't be standard input: the page reads the file again", param_hint="--file")
    has_actions = not (read_only or all_environments or export_folder)
    if has_actions and any(map(is_shell_pipe, choice.env_file or ())):
        raise typer.BadParameter("can't be a pipe without --read-only: actions read it again", param_hint="--env-file")
    if all_environments and export_folder:
        raise typer.BadParameter("can't be given along with --export", param_hint="--all")
    if all_environments:
        return run_for_cluster(choice, port=port, opens=browser)
    if export_folder:
        return export(choice, Path(export_folder))
    return run(choice, port=port, read_only=read_only, opens=browser)
