"""Questions with a few possible answers, asked on a terminal until one of them is given.

Uses typer alone: click is no dependency of the package, although tools for development install it.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer


def ask_number(question: str, count: int) -> int:
    """Ask for a number from 1 to ``count``; 1 is the default."""

    def parse(text: str) -> int:
        if text.strip().isdecimal() and 1 <= int(text) <= count:
            return int(text)
        raise typer.BadParameter(f"it must be a number from 1 to {count}")

    return int(typer.prompt(question, value_proc=parse, default="1", err=True))


def ask_name(question: str, names: Sequence[str]) -> str:
    """Ask for one of a few names."""

    def parse(text: str) -> str:
        if text.strip() in names:
            return text.strip()
        raise typer.BadParameter(f"it must be one of: {', '.join(names)}")

    return str(typer.prompt(f"{question} ({', '.join(names)})", value_proc=parse, err=True))
