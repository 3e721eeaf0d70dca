"""Questions on a terminal: those with a few possible answers, asked until one is given, and confirmations.

Uses typer alone: click is no dependency of the package, although tools for development install it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from composeplat.cli.console import is_terminal, write_message
from composeplat.diagnostics import ComposeplatError


@contextmanager
def end_of_input_refuses(refusal: str = "no answer was given", *, hidden: bool = False) -> Iterator[None]:
    """Let the end of the input (Ctrl-D) refuse; typer's exception for it is that for Ctrl-C.

    After a question with a hidden answer, typer has ended the line already.
    """
    try:
        yield
    except typer.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        if not hidden:
            write_message("\n")
        raise ComposeplatError(refusal) from None


def ask_number(question: str, count: int) -> int:
    """Ask for a number from 1 to ``count``; 1 is the default."""

    def parse(text: str) -> int:
        if text.strip().isdecimal() and 1 <= int(text) <= count:
            return int(text)
        raise typer.BadParameter(f"it must be a number from 1 to {count}")

    with end_of_input_refuses():
        return int(typer.prompt(question, value_proc=parse, default="1", err=True))


def ask_name(question: str, names: Sequence[str]) -> str:
    """Ask for one of a few names."""

    def parse(text: str) -> str:
        if text.strip() in names:
            return text.strip()
        raise typer.BadParameter(f"it must be one of: {', '.join(names)}")

    with end_of_input_refuses():
        return str(typer.prompt(f"{question} ({', '.join(names)})", value_proc=parse, err=True))


def confirm(question: str, no_terminal: ComposeplatError, *, refused: str, default: bool = False) -> None:
    """Ask before something is changed; raise an error without a terminal, and after a no."""
    if not is_terminal(sys.stdin):
        raise no_terminal
    with end_of_input_refuses(refused):
        if typer.confirm(question, default=default, err=True):
            return
    raise ComposeplatError(refused)
