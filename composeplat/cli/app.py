"""The entry point of the process: it answers a shell's completion, or runs a command.

Owns the start and the end of the process.
Must not import the commands for a completion: a shell waits, and building them takes longer than the answer.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composeplat.cli.commands import app

__all__ = ["app", "main"]

_SHELL_VARIABLE = "_PLATFORM_COMPLETE"
"""Completion scripts set it to the name of their shell."""
_ON_WINDOWS = """\
error: platform runs on Linux and macOS, not on Windows itself
  hint: install it in WSL 2: wsl --install, then in the new terminal: pip install composeplat
"""
_INTERRUPTED = 130
"""The status :attr:`composeplat.diagnostics.Exit.INTERRUPTED`, without an import."""
_COLLECTION_THRESHOLD = 100_000
"""Most objects are modules, classes and manifests, which live as long as the process: looking for garbage is rare.

A short run never looks, which saves a twentieth of its time; 100,000 objects of garbage are some 10 MB.
"""


def __getattr__(name: str) -> Any:
    if name != "app":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from composeplat.cli import commands

    return commands.app


def main() -> None:
    if sys.stderr is None:  # the parent process has closed it
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for as long as the process lives
    if sys.platform == "win32":
        # Locks and terminals of Unix are missing, as they would be from the first import on.
        sys.stderr.write(_ON_WINDOWS)
        sys.exit(1)
    ended: list[Any] = []
    # Registered first, it runs last.
    atexit.register(_leave_threads, ended)
    gc.set_threshold(_COLLECTION_THRESHOLD)
    # The interpreter would look for garbage in all modules before it ends; the kernel frees them anyway.
    atexit.register(gc.freeze)
    try:
        if shell := os.environ.get(_SHELL_VARIABLE):
            from composeplat.cli.completion import answer

            answer(shell, sys.argv[1:])
            return
        status = _run_command()
        _exit_at_interrupts(status)
    except KeyboardInterrupt:
        status = _INTERRUPTED
        _exit_at_interrupts(status)
    ended.append(status)
    sys.exit(status)


def _run_command() -> Any:
    """Run the command of this process, and return its status."""
    if sys.stdout is None:
        # Pulumi's library flushes it. Each write fails, as to a full disk: a result must not be lost without a message.
        nowhere = io.FileIO(os.open(os.devnull, os.O_RDONLY), "w")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(nowhere), encoding="utf-8")
    # A Ctrl-C whose exception Python drops meanwhile is handled once its handler is there.
    dropped: list[Any] = []
    sys.unraisablehook = dropped.append
    from composeplat.cli.interrupts import is_interrupt, listen

    listen()
    for exception in dropped:
        sys.unraisablehook(exception)
    try:
        from composeplat.cli.commands import app

        app(prog_name="platform")
    except SystemExit as ended:
        # The library ends with 1 where the reader of help or of the version has gone, which is no failure.
        return 0 if isinstance(ended.__context__, BrokenPipeError) else ended.code
    except Exception as error:
        if is_interrupt(error):
            return _INTERRUPTED
        if not isinstance(error, OSError) or error.filename is not None:
            raise
        return _show_write_error(error)
    return 0


def _show_write_error(error: OSError) -> int:
    """Show why help or the version can't be written, which the library does outside the body of a command.

    The message about a mistake of use, which is written so too, goes to standard error: its status is returned.
    """
    from composeplat.cli.console import lost_result, silence, write_message

    mistake = getattr(error.__context__, "exit_code", None)
    if mistake is not None:
        silence(sys.stderr)
        return int(mistake)
    silence(sys.stdout)
    write_message(f"error: {lost_result(error)}\n")
    return 1


def _exit_at_interrupts(status: Any) -> None:
    """Make a later Ctrl-C end the process at once, with its status: the command is done."""

    def leave(*_: object) -> None:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(_as_number(status))

    signal.signal(signal.SIGINT, leave)
    # While the interpreter shuts down no handler runs, and the signal would kill the process.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _leave_threads(ended: list[Any]) -> None:
    """End the process at once if threads still run, such as those that ask registries after a Ctrl-C.

    OpenSSL crashes the process if a thread uses it while the C library ends.
    """
    if not ended:
        return
    import threading

    from composeplat.cli.interrupts import WAKER

    if any(thread.daemon and thread.name != WAKER for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(_as_number(ended[0]))


def _as_number(status: Any) -> int:
    return status if isinstance(status, int) else int(bool(status))
