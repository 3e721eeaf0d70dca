"""Rewrite ``checksums.txt``: ``make pins`` runs this on a machine that reaches the hosts of the releases.

Owns which releases are pinned.
A checksum that is there already never changes, and may have been recorded without a download: a release that has
another one was replaced, or recorded wrongly, and that is an error.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from composeplat import progress
from composeplat.system.atomic import write_file
from composeplat.toolchain.downloads import (
    MACHINES,
    SYSTEMS,
    archive_name,
    read_checksums,
    release_checksum,
    release_url,
)
from composeplat.toolchain.tools import CHECKSUMS, TOOLS, Tool
from composeplat.toolchain.transfer import BadDownload


def pin(tools: Iterable[Tool], path: Path, environment: Mapping[str, str]) -> list[str]:
    """Pin every release of some tools. If that fails, return the problems and change nothing."""
    known = read_checksums(path)
    pinned: dict[str, str] = {}
    problems: list[str] = []
    for url, tool in _releases(tools).items():
        name = archive_name(url)
        try:
            with progress.transfer(f"downloading {name}") as show:
                found = release_checksum(url, environment, show)
        except BadDownload as error:
            problems.append(f"{tool.name} {tool.version} {error}")
            continue
        if known.get(name, found) != found:
            problems.append(
                f"{name} is pinned with another checksum: {known[name]}, and is {found} now;"
                " find out which one is right, and remove the line if it is the new one"
            )
        pinned[name] = found
        progress.note(f"{found}  {name}")
    if not problems:
        write_file(path, _text(path, pinned))
    return problems


def _releases(tools: Iterable[Tool]) -> dict[str, Tool]:
    machines = itertools.product(tools, SYSTEMS, MACHINES)
    return {
        release_url(tool, system, machine): tool
        for tool, system, machine in machines
        if tool.download and (system == "linux" or not tool.only_linux)
    }


def _text(path: Path, pinned: dict[str, str]) -> str:
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return "".join(f"{line}\n" for line in (*head, *(f"{pinned[name]}  {name}" for name in sorted(pinned))))


def main() -> None:
    problems = pin(TOOLS, CHECKSUMS, os.environ)
    if problems:
        raise SystemExit("\n".join(["nothing was pinned:", *problems]))


if __name__ == "__main__":
    main()
