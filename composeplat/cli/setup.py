"""``platform setup``: find or make the programs, and say what is there."""

from __future__ import annotations

import json
import os

from composeplat import progress
from composeplat.cli.console import show_result, table, tell
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
            show_result(json.dumps(data, indent=2) + "\n")
        else:
            head = ("PROGRAM", "VERSION", "SOURCE", "PATH")
            show_result(table([head, *((r["name"], r["version"], r["source"], r["path"]) for r in rows)]))
            tell("".join(f"{printable(row['ignored'])}\n" for row in rows if "ignored" in row))
            if packages:
                tell(f"missing packages: {' '.join(packages)}\n")
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
