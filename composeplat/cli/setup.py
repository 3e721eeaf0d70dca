"""``platform setup``: find, download or build the programs, and list them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import table, write_json, write_message, write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.selection import working
from composeplat.diagnostics import Exit, printable
from composeplat.local.packages import install_packages, missing_packages
from composeplat.toolchain.setup import Origin, Toolchain
from composeplat.toolchain.tools import CLUSTER_TOOLS, DEPLOY_TOOLS, DEVELOPMENT_TOOLS, SIMULATION_TOOLS, Tool

app = App()


def run(*, check: bool, cluster: bool, install: bool, as_json: bool) -> Exit:
    toolchain = Toolchain(os.environ)
    tools: tuple[Tool, ...] = (*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS)
    tools += (*CLUSTER_TOOLS, *SIMULATION_TOOLS) if cluster else ()
    if check:
        rows = toolchain.report(dict.fromkeys(tools))
        packages = sorted(missing_packages(os.environ)) if cluster else []
        if as_json:
            data = {"schema": "platform/setup/1", "programs": rows, "missing_packages": packages}
            write_json(data)
        else:
            head = ("PROGRAM", "VERSION", "SOURCE", "PATH")
            write_output(table([head, *((r["name"], r["version"], r["source"], r["path"]) for r in rows)]))
            write_message("".join(f"{printable(row['ignored'])}\n" for row in rows if "ignored" in row))
            if packages:
                write_message(f"missing packages: {' '.join(packages)}\n")
        # Go is needed only to build what is missing.
        missing = [row["name"] for row in rows if row["source"] == Origin.MISSING and row["name"] != "go"]
        return Exit.MISSING if packages or missing else Exit.DONE
    with ended_by_signals():
        if install:
            install_packages(os.environ)
        found = toolchain.need_all(tools)
    for program in found.values():
        if program.origin is Origin.CACHE and (passed_over := toolchain.passed_over(program.tool)):
            progress.note(passed_over)
    progress.conclude(f"{len(found)} programs are ready")
    return Exit.DONE


@app.command(
    "setup",
    guide=Guide(
        {
            "List the programs, and what is missing": "platform setup --check",
            "All that the local cluster needs": "platform setup --cluster --install",
        },
        "local-cluster.md",
    ),
)
def setup_command(
    check: Annotated[
        bool, typer.Option("--check", help="Only list the programs, their sources and what is missing.")
    ] = False,
    for_cluster: Annotated[bool, typer.Option("--cluster", help="The local cluster's programs too.")] = False,
    install: Annotated[
        bool, typer.Option("--install", help="With --cluster: install missing system packages too, as root.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print JSON.")] = False,
    progress: opt.Progress = opt.ProgressMode.AUTO,
    debug: opt.Debug = False,
) -> None:
    """Find, download or build the programs that deploying needs. Slow the first time only."""
    if install and not for_cluster:
        raise typer.BadParameter("goes with --cluster", param_hint="--install")
    if as_json and not check:
        raise typer.BadParameter("goes with --check", param_hint="--json")

    with working("setup", progress, debug=debug) as run_:
        run_.status = int(run(check=check, cluster=for_cluster, install=install, as_json=as_json))
