"""Arguments that a command does not take, and what was probably meant by them.

Owns that message: a Compose file without its option is the usual mistake, as other programs take one so.
It is apart from the commands so that all of them say it alike, those of groups too.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from composeplat.diagnostics import printable, quoted

_ENDINGS = (".yaml", ".yml", ".json")
_STANDARD_INPUT = "-"


class StrictCommand(TyperCommand):
    """A command that says which argument is one too many, and how a Compose file is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        unexpected: list[str] = super().parse_args(ctx, args)
        if unexpected and not ctx.resilient_parsing:
            ctx.fail(_message(ctx.command_path, unexpected, _file_option(self.params)))
        return unexpected


class App(typer.Typer):
    """Commands that are all so."""

    def command(self, *name: Any, **settings: Any) -> Callable[[Any], Any]:
        return super().command(*name, cls=StrictCommand, **settings)


def _message(command: str, unexpected: list[str], option: str) -> str:
    shown = ", ".join(quoted(printable(argument)) for argument in unexpected)
    message = f"Got unexpected argument{'s' if len(unexpected) > 1 else ''} {shown}"
    file = next(filter(_is_compose_file, unexpected), "") if option else ""
    if not file:
        return message
    return f"{message}\n  hint: name a Compose file with {option}: {command} {option} {shlex.quote(printable(file))}"


def _file_option(parameters: Iterable[Any]) -> str:
    """The shortest name of the option for Compose files; empty where a command has none."""
    return next((min(one.opts, key=len) for one in parameters if one.name == "file"), "")


def _is_compose_file(argument: str) -> bool:
    return argument == _STANDARD_INPUT or argument.endswith(_ENDINGS) or os.path.isfile(argument)
