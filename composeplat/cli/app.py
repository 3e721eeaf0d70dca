"""Where the process begins: a Tab in a shell is answered, everything else is a command.

Owns the process's way in and out.
Must not import the commands before they are wanted: to build them takes longer than to answer a shell, which waits.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composeplat.cli.commands import app

__all__ = ["app", "main"]

_ASKED = "_PLATFORM_COMPLETE"
"""A completion script sets it, to the name of its shell."""
_INTERRUPTED = 130
"""The status :attr:`composeplat.diagnostics.Exit.INTERRUPTED`, known before anything is imported."""


def __getattr__(name: str) -> Any:
    if name != "app":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from composeplat.cli import commands

    return commands.app


def main() -> None:
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for as long as the process lives
    try:
        if shell := os.environ.get(_ASKED):
            from composeplat.cli.completion import answer

            answer(shell, sys.argv[1:])
            return
        status = _run_command()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    _take_no_more(status)
    sys.exit(status)


def _run_command() -> Any:
    """Run the command that the process was called with; gives the status."""
    from composeplat.cli.interrupts import is_interrupt, listen

    listen()
    try:
        from composeplat.cli.commands import app

        app(prog_name="platform")
    except SystemExit as ended:
        return ended.code
    except Exception as error:
        if is_interrupt(error):
            return _INTERRUPTED
        raise
    return 0


def _take_no_more(status: Any) -> None:
    """All is done and said: a Ctrl-C that comes now only spares what is left, and can't change the status."""

    def leave(*_: object) -> None:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(status if isinstance(status, int) else int(bool(status)))

    signal.signal(signal.SIGINT, leave)
    # Where the interpreter takes itself apart no handler is heard, and the signal would kill.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
