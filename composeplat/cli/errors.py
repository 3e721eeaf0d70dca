"""Where exceptions become exit statuses: the body of every command runs inside :func:`show_errors` or :func:`logged`.

What the user can fix ends with its message and status. Anything else is a bug of this project: its traceback is shown,
masked, and kept in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from composeplat import progress
from composeplat.cli.console import show_error, write_json_lines, write_message
from composeplat.cli.interrupts import is_interrupt
from composeplat.diagnostics import ComposeplatError, Exit
from composeplat.system.records import mutable

if TYPE_CHECKING:
    from composeplat.cli.run_log import RunLog

#: Failures whose message leaves nothing to look for in a log.
_EXPLAINED = (Exit.USAGE, Exit.INVALID, Exit.INTERRUPTED)


@mutable
class Run:
    """One run of a command: how it ends."""

    status: int = 0
    has_failed: bool = False
    """Not so if the status is that of the user's own program."""


@contextmanager
def show_errors(*, as_json: bool = False) -> Iterator[Run]:
    """Run a command that needs no cluster: only a bug leaves a log."""
    with progress.forget_values():
        try:
            yield Run()
        except (ComposeplatError, KeyboardInterrupt) as error:
            raise typer.Exit(_show(error, as_json=as_json)) from error
        except Exception as error:
            if is_interrupt(error):
                _leave_question(error)
                raise typer.Exit(int(Exit.INTERRUPTED)) from error
            if _is_for_typer(error):
                raise
            from composeplat.cli.run_log import run_log

            progress.hide(())
            with run_log("crash", {}) as log:
                status = _show_bug(error, log)
            _show_path(log, as_json=as_json)
            raise typer.Exit(status) from error


@contextmanager
def logged(
    command: str,
    options: Mapping[str, object],
    *,
    as_json: bool,
    debug: bool,
    is_kept: bool,
) -> Iterator[Run]:
    """Run a command with a log. It is kept if the command changes something, and if it fails."""
    from composeplat.cli.run_log import run_log

    run = Run()
    with progress.forget_values():
        with run_log(command, options, debug=_debug_writer(as_json=as_json) if debug else None, is_kept=is_kept) as log:
            try:
                yield run
            except (Exception, KeyboardInterrupt) as error:
                if _is_for_typer(error) and not is_interrupt(error):
                    log.discard()
                    raise
                _end(run, error, log, as_json=as_json)
            if run.has_failed:
                log.keep()
            elif run.status == Exit.INVALID or not progress.values_are_known():
                log.discard()
        if run.has_failed:
            _show_path(log, as_json=as_json)
    if run.status:
        raise typer.Exit(run.status)


def _end(run: Run, error: BaseException, log: RunLog, *, as_json: bool) -> None:
    """Show what ended a run, and note how it ended."""
    if isinstance(error, ComposeplatError | KeyboardInterrupt):
        run.status = _show(error, as_json=as_json)
        run.has_failed = run.status not in _EXPLAINED
        log.record_error(error)
    elif is_interrupt(error):
        _leave_question(error)
        run.status = Exit.INTERRUPTED
    else:
        run.status, run.has_failed = _show_bug(error, log), True


def _show(error: BaseException, *, as_json: bool) -> int:
    if not isinstance(error, ComposeplatError):
        return int(Exit.INTERRUPTED)
    show_error(error, as_json=as_json)
    return int(error.exit_code)


def _show_bug(error: BaseException, log: RunLog) -> int:
    from traceback import format_exception

    log.record_error(error)
    log.keep()
    write_message("".join(format_exception(error)))
    return int(Exit.FAILED)


def _leave_question(error: BaseException) -> None:
    """End the line of a question that a Ctrl-C has answered."""
    if isinstance(error, typer.Abort):
        write_message("\n")


def _is_for_typer(error: BaseException) -> bool:
    """Return whether an exception is the library's own: a mistake of use, an end, an abort."""
    return type(error).__module__.partition(".")[0] in ("click", "typer")


def _debug_writer(*, as_json: bool) -> Callable[[str], None]:
    def write(line: str) -> None:
        _write_line("debug", line, as_json=as_json)

    return write


def _show_path(log: RunLog, *, as_json: bool) -> None:
    if log.exists:
        _write_line("note", f"log of this run: {log.path}", as_json=as_json)


def _write_line(event: str, message: str, *, as_json: bool) -> None:
    if as_json:
        write_json_lines([{"event": event, "message": message}])
    else:
        write_message(f"{message}\n")
