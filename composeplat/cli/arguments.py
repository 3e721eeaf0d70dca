"""The message about arguments that a command does not take.

Owns its hint: a Compose file without ``--file`` is the usual mistake, as other programs take files as arguments.
It is apart from the commands because all of them show it, those of groups too.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from composeplat.cli.compose_commands import message_for_option
from composeplat.cli.help_text import FittingContext, Guide
from composeplat.diagnostics import printable, quoted

_ENDINGS = (".yaml", ".yml", ".json")
_STANDARD_INPUT = "-"
_MAX_SHOWN_CHARS = 80
Parsed = TypeVar("Parsed")
#: The library's names of types -> the names in messages. The only numbers with a fraction are times to wait.
_TYPES = {"float range": "number of seconds", "int range": "whole number"}


@contextmanager
def usage_explained(ctx: Any, message_for: Callable[[str], str | None]) -> Iterator[None]:
    """Replace the library's message about an unknown option where there is a better one, and its names of types."""
    try:
        yield
    except typer.BadParameter as error:
        for name, meaning in _TYPES.items():
            error.message = error.message.replace(f"is not a valid {name}", f"is not a {meaning}")
        raise
    except Exception as error:
        message = message_for(getattr(error, "option_name", ""))
        if message is None:
            raise
        ctx.fail(message)


class StrictCommand(TyperCommand):
    """A command that names each unexpected argument, and the option for a Compose file."""

    context_class = FittingContext

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        with usage_explained(ctx, lambda option: message_for_option(str(self.name), option)):
            unexpected: list[str] = super().parse_args(ctx, args)
        if unexpected and not ctx.resilient_parsing:
            ctx.fail(_message(ctx.command_path, unexpected, _file_option(self.params)))
        return unexpected


class App(typer.Typer):
    """Commands of one module, or a group of commands, each with its guide."""

    def __init__(self, group: str = "", *, guide: Guide | None = None, **settings: Any) -> None:
        self.guides: dict[str, Guide] = {group: guide} if guide else {}
        self._group = group
        epilog = guide.epilog if guide else None
        super().__init__(name=group or None, epilog=epilog, add_completion=False, rich_markup_mode=None, **settings)

    def command(self, name: str, *, guide: Guide | None = None, **settings: Any) -> Callable[[Any], Any]:  # type: ignore[override]
        """Add a command; one without a guide is another name of one that has it."""
        if guide:
            self.guides[f"{self._group} {name}".strip()] = guide
        epilog = guide.epilog if guide else None
        return super().command(name, cls=StrictCommand, epilog=epilog, **settings)


def without_dashes(command: list[str]) -> list[str]:
    """Leave out a ``--`` before a command; a second one belongs to the command."""
    return command[1:] if command[:1] == ["--"] else command


def parsed(parse: Callable[[str], Parsed], text: str, option: str) -> Parsed:
    """Parse the value of an option as a value of the file; one that is none is a mistake of usage."""
    from composeplat.compose.values import BadValue

    try:
        return parse(text)
    except BadValue as error:
        shown = printable(text)[:_MAX_SHOWN_CHARS]
        raise typer.BadParameter(f"{error}, not '{shown}'", param_hint=option) from error


def utf8_texts(texts: Iterable[str], parameter: str) -> tuple[str, ...]:
    return tuple(utf8_text(text, parameter) for text in texts)


def utf8_text(text: str, parameter: str, *, variable: str = "") -> str:
    """Refuse a text for a container that is not UTF-8: on its way, JSON would change it.

    The value of a variable is not shown: it may be a secret.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = f"; the value of {printable(variable)} is not" if variable else f", not {quoted(printable(text))}"
        message = f"must be UTF-8, as Kubernetes takes nothing else{shown}"
        raise typer.BadParameter(message, param_hint=parameter) from error
    return text


def _message(command: str, unexpected: list[str], option: str) -> str:
    shown = ", ".join(quoted(printable(argument)) for argument in unexpected)
    message = f"Got unexpected argument{'s' if len(unexpected) > 1 else ''} {shown}"
    file = next(filter(_is_compose_file, unexpected), "") if option else ""
    if not file:
        return message
    return f"{message}\n  hint: name a Compose file with {option}: {command} {option} {shlex.quote(printable(file))}"


def _file_option(parameters: Iterable[Any]) -> str:
    """Return the shortest name of the option for Compose files; empty if a command has none."""
    return next((min(option.opts, key=len) for option in parameters if option.name == "file"), "")


def _is_compose_file(argument: str) -> bool:
    return argument == _STANDARD_INPUT or argument.endswith(_ENDINGS) or os.path.isfile(argument)
