"""The processes of the page's actions: the same command lines that a user would type.

Owns which options of ``platform ui`` each command gets: those that it has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from enum import Enum

from composeplat.cli.completion import read_grammar
from composeplat.cli.selection import Choice

#: Without -P, Python would import modules from the project's folder.
_PROGRAM = ("-P", "-c", "from composeplat.cli.app import main; main()")
_OWN = ("progress", "quiet", "debug", "json_diagnostics", "named_services", "verbose")


def action_arguments(choice: Choice, command: str, services: Sequence[str]) -> list[str]:
    options = {name for option in read_grammar()[f"platform {command}"]["options"] for name in option["names"]}
    given = [text for name, *values in _given(choice) if name in options for text in (name, *values)]
    named = ["--", *services] if services else []
    return [sys.executable, *_PROGRAM, command, *given, "--json", "--progress", "json", *named]


def _given(choice: Choice) -> Iterator[tuple[str, ...]]:
    """Yield the options that differ from their defaults, as a command line has them."""
    default = Choice()
    for entry in fields(Choice):
        value = getattr(choice, entry.name)
        if entry.name in _OWN or value in (getattr(default, entry.name), None, ()):
            continue
        name = "--" + entry.name.replace("_", "-")
        if isinstance(value, bool):
            yield (name,) if value else (name.replace("--", "--no-", 1),)
        elif isinstance(value, tuple):
            yield from ((name, str(item)) for item in value)
        else:
            yield name, str(value.value if isinstance(value, Enum) else value)
