"""``platform setup``: find or make the programs, and say what is there."""

from __future__ import annotations

import os

from composeplat import progress
from composeplat.cli.console import table, write_json, write_message, write_output
from composeplat.diagnostics import Exit, printable
from composeplat.local.packages import install_packages, missing_packages
from composeplat.toolchain.setup import CACHED, Toolchain
from composeplat.toolchain.tools import CLUSTER_TOOLS, DEPLOY_TOOLS, DEVELOPMENT_TOOLS, SIMULATION_TOOLS, Tool


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
        missing = [row["name"] for row in rows if row["source"] == "missing" and row["name"] != "go"]
        return Exit.MISSING if packages or missing else Exit.DONE
    if install:
        install_packages(os.environ)
    found = toolchain.need_all(tools)
    for one in found.values():
        if one.origin == CACHED and (passed_over := toolchain.passed_over(one.tool)):
            progress.note(passed_over)
    progress.conclude(f"{len(found)} programs are ready")
    return Exit.DONE
