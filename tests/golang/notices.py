"""The notices of the libraries in the agent, out of their own files: ``python -m tests.golang.notices`` writes them.

They are kept with the module, as the helper image is also built where Go has no sources of them any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from composeplat.dev.helper import NOTICES
from composeplat.toolchain.tools import AGENT
from tests.golang.modules import go

_FILES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS*")
_TERMS = ("TERMS AND CONDITIONS", "Permission is hereby granted", "Redistribution and use")
_HEADING = "The program platform-agent has in it the libraries below, under these terms."
_LINE = "=" * 80


def make_notices() -> str:
    """One part for each library: its name and version, and the texts that it asks to be kept with it."""
    found: dict[str, dict[str, None]] = {}
    for name, texts in _texts():
        found.setdefault(name, {}).update(dict.fromkeys(texts))
    parts = ("\n\n".join((f"{_LINE}\n{name}\n{_LINE}", *texts)) for name, texts in sorted(found.items()))
    return "\n\n".join((_HEADING, *parts)) + "\n"


def _texts() -> Iterator[tuple[str, list[str]]]:
    """The library of each package, and the terms that are about it."""
    for package in _packages():
        module = package.get("Module", {})
        if package.get("Standard"):
            yield "Go", _kept_in(Path(_go("env", "GOROOT").strip()))
        elif not module.get("Main"):
            folder, top = Path(package["Dir"]), Path(module["Dir"])
            above = [folder, *folder.parents]
            texts = [text for item in above[above.index(top) :: -1] for text in _kept_in(item)]
            headers = [_header(folder / name) for name in package.get("GoFiles", ())]
            yield f"{module['Path']} {module['Version']}", texts + [text for text in headers if text]


def _kept_in(folder: Path) -> list[str]:
    files = [path for pattern in _FILES for path in sorted(folder.glob(pattern)) if path.is_file()]
    return [path.read_text(encoding="utf-8").strip() for path in files]


def _header(file: Path) -> str:
    """The comment at the top of a file that came from elsewhere, if it has terms in it."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").removeprefix(" "))
    text = "\n".join(lines).strip()
    return text if any(term in text for term in _TERMS) else ""


def _packages() -> Iterator[dict[str, Any]]:
    rest, decoder = _go("list", "-deps", "-json=Dir,Standard,Module,GoFiles", AGENT.package), json.JSONDecoder()
    while rest := rest.lstrip():
        package, length = decoder.raw_decode(rest)
        rest = rest[length:]
        yield package


def _go(*args: str) -> str:
    done = go(AGENT.module, *args, GOOS="linux", GOARCH="amd64")
    done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    NOTICES.write_text(make_notices(), encoding="utf-8")
