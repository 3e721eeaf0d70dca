"""Where the process begins: a Tab in a shell is answered, everything else is a command.

Owns the process's way in and out.
Must not import the commands before they are wanted: to build them takes longer than to answer a shell, which waits.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composeplat.cli.commands import app

__all__ = ["app", "main"]

_ASKED = "_PLATFORM_COMPLETE"
"""A completion script sets it, to the name of its shell."""


def __getattr__(name: str) -> Any:
    if name != "app":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from composeplat.cli import commands  # noqa: PLC0415 -- only where a command is run

    return commands.app


def main() -> None:
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for as long as the process lives
    try:
        if shell := os.environ.get(_ASKED):
            from composeplat.cli.completion import answer  # noqa: PLC0415 -- for a shell alone

            answer(shell, sys.argv[1:])
        else:
            from composeplat.cli.commands import app  # noqa: PLC0415 -- for a command alone

            app(prog_name="platform")
    except KeyboardInterrupt:
        from composeplat.diagnostics import Exit  # noqa: PLC0415 -- a shell needs it for nothing else

        sys.exit(int(Exit.INTERRUPTED))
